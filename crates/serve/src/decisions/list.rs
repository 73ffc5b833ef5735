//! Lists of decisions and differences.

use api::decisions::{API_VERSION, DecisionRecord, DifferenceList, VERSION};
use bytes::Bytes;
use http::Response;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{ResponseForm, table};
use crate::body::{self, Body, BodyError};
use crate::response::{self, JSON};

/// The size of a chunk.
const CHUNK_BYTES: usize = 64 * 1024;

/// The resource version of a record: the time of its last decision.
pub(super) fn version(record: &DecisionRecord) -> i64 {
    record.last.as_microsecond()
}

/// Decisions in the negotiated form.
pub(super) fn decisions(
    group: &str,
    records: Vec<DecisionRecord>,
    form: ResponseForm,
    now: Timestamp,
) -> Response<Body> {
    let newest = records.iter().map(version).max().unwrap_or(1).to_string();
    match form {
        ResponseForm::Table(style) => response::json(200, &table::decisions(&records, style, &newest, now)),
        ResponseForm::Json => {
            response::with_type(200, JSON, body::pieces(DecisionListChunks::new(group, records, &newest)))
        }
    }
}

/// Differences in the negotiated form.
pub(super) fn differences(found: &DifferenceList, form: ResponseForm, now: Timestamp) -> Response<Body> {
    let newest = found.items.iter().map(|record| record.last.as_microsecond()).max().unwrap_or(1).to_string();
    if let ResponseForm::Table(style) = form {
        return response::json(200, &table::differences(found, style, &newest, now));
    }
    let mut list =
        json!({"apiVersion": API_VERSION, "kind": "DifferenceList", "metadata": {"resourceVersion": newest}});
    if let (Some(list), Ok(Value::Object(fields))) = (list.as_object_mut(), serde_json::to_value(found)) {
        list.extend(fields.into_iter().filter(|(key, _)| key != "apiVersion" && key != "kind"));
    }
    response::json(200, &list)
}

/// The JSON text of a list, made while it is sent: there may be ten thousand large records.
struct DecisionListChunks {
    head: Option<String>,
    records: std::vec::IntoIter<DecisionRecord>,
    first: bool,
    ended: bool,
}

impl DecisionListChunks {
    fn new(group: &str, records: Vec<DecisionRecord>, newest: &str) -> Self {
        let head = format!(
            "{{\"apiVersion\":\"{group}/{VERSION}\",\"kind\":\"DecisionList\",\"metadata\":{{\"resourceVersion\":\
             \"{newest}\"}},\"items\":["
        );
        Self { head: Some(head), records: records.into_iter(), first: true, ended: false }
    }
}

impl Iterator for DecisionListChunks {
    type Item = Result<Bytes, BodyError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let mut text = self.head.take().unwrap_or_default().into_bytes();
        while text.len() < CHUNK_BYTES {
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
