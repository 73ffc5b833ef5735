//! Many at once.

use api::decisions::{API_VERSION, DecisionRecord, DifferenceList, VERSION};
use bytes::Bytes;
use http::Response;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Form, table};
use crate::response::{self, Body, BodyError, JSON};
use crate::stream;

/// How much is sent at a time.
const PIECE: usize = 64 * 1024;

/// What counts as the version of a record: when it was last made.
pub(super) fn version(record: &DecisionRecord) -> i64 {
    record.last.as_microsecond()
}

/// Decisions in the form asked for.
pub(super) fn decisions(group: &str, records: Vec<DecisionRecord>, form: Form) -> Response<Body> {
    let newest = records.iter().map(version).max().unwrap_or(1).to_string();
    match form {
        Form::Table(style) => {
            response::json(200, &table::decisions(&records, style, &newest, Timestamp::now()))
        }
        Form::Json => response::with_type(200, JSON, stream::pieces(Pieces::new(group, records, &newest))),
    }
}

/// Differences in the form asked for.
pub(super) fn differences(found: &DifferenceList, form: Form) -> Response<Body> {
    let newest = found.items.iter().map(|record| record.last.as_microsecond()).max().unwrap_or(1).to_string();
    if let Form::Table(style) = form {
        return response::json(200, &table::differences(found, style, &newest, Timestamp::now()));
    }
    let mut list =
        json!({"apiVersion": API_VERSION, "kind": "DifferenceList", "metadata": {"resourceVersion": newest}});
    if let (Some(list), Ok(Value::Object(fields))) = (list.as_object_mut(), serde_json::to_value(found)) {
        list.extend(fields.into_iter().filter(|(key, _)| key != "apiVersion" && key != "kind"));
    }
    response::json(200, &list)
}

/// The JSON text of a list, made while it is read: there may be ten thousand, each with all its arithmetic.
struct Pieces {
    head: Option<String>,
    records: std::vec::IntoIter<DecisionRecord>,
    first: bool,
    ended: bool,
}

impl Pieces {
    fn new(group: &str, records: Vec<DecisionRecord>, newest: &str) -> Self {
        let head = format!(
            "{{\"apiVersion\":\"{group}/{VERSION}\",\"kind\":\"DecisionList\",\"metadata\":{{\"resourceVersion\":\
             \"{newest}\"}},\"items\":["
        );
        Self { head: Some(head), records: records.into_iter(), first: true, ended: false }
    }
}

impl Iterator for Pieces {
    type Item = Result<Bytes, BodyError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let mut text = self.head.take().unwrap_or_default().into_bytes();
        while text.len() < PIECE {
            let Some(record) = self.records.next() else {
                text.extend_from_slice(b"]}\n");
                self.ended = true;
                break;
            };
            if !std::mem::take(&mut self.first) {
                text.push(b',');
            }
            if let Err(error) = serde_json::to_writer(&mut text, &record) {
                self.ended = true;
                return Some(Err(error.into()));
            }
        }
        Some(Ok(text.into()))
    }
}
