//! Requests in Flux and SQL, and their responses: a CSV table, or JSON rows.

use serde_json::{Value, json};

use crate::ScalerError;
use crate::responses::{excerpt, hidden, json as read, kind, parsed};
use crate::web::escaped;

/// The request body of a Flux query.
pub(super) fn flux_question(server: &str, organization: &str, query: &str) -> (String, String) {
    let url = format!("{}/api/v2/query?org={}", server.trim_end_matches('/'), escaped(organization));
    let dialect = json!({"header": true, "delimiter": ",", "annotations": ["datatype"]});
    (url, json!({"query": query, "type": "flux", "dialect": dialect}).to_string())
}

/// The request body of an SQL or InfluxQL query.
pub(super) fn rows_question(server: &str, database: &str, query: &str, language: &str) -> (String, String) {
    let language = if language.eq_ignore_ascii_case("flightsql") { "sql" } else { "influxql" };
    let url = format!("{}/api/v3/query_{language}", server.trim_end_matches('/'));
    (url, json!({"db": database, "q": query, "format": "json"}).to_string())
}

/// The value of the first record of a table.
pub(super) fn table(status: u16, body: &[u8]) -> Result<f64, ScalerError> {
    if status != 200 {
        return Err(refused(status, body));
    }
    let text = std::str::from_utf8(body).map_err(|_| scaler_error!("the answer of InfluxDB is not text"))?;
    let (mut types, mut header): (Vec<String>, Option<Vec<String>>) = (Vec::new(), None);
    for line in records(text) {
        match (line.first().map(String::as_str), &header) {
            (Some("#datatype"), _) => (types, header) = (line, None),
            (Some(first), _) if first.starts_with('#') => {}
            (_, None) => header = Some(line),
            (_, Some(header)) => {
                let Some(at) = header.iter().position(|name| name == "_value") else {
                    if let Some(at) = header.iter().position(|name| name == "error") {
                        let message = line.get(at).map_or_else(String::new, |text| excerpt(text));
                        bail!("InfluxDB answered with an error: {message}");
                    }
                    bail!("the first record has no _value");
                };
                let type_ = types.get(at).map_or("", String::as_str);
                let value = line.get(at).and_then(|text| parsed(text));
                return match type_ {
                    "double" | "long" | "unsignedLong" | "" => {
                        value.ok_or_else(|| scaler_error!("the value of the first record is not a number"))
                    }
                    _ => {
                        Err(scaler_error!("the value of the first record has a type which is not a number's"))
                    }
                };
            }
        }
    }
    Err(scaler_error!("no results found from query"))
}

/// The value of the column in the last row; 0 without rows.
pub(super) fn rows(status: u16, body: &[u8], column: &str) -> Result<f64, ScalerError> {
    if status != 200 {
        return Err(refused(status, body));
    }
    let answer = read(body)?;
    let Some(rows) = answer.as_array() else {
        bail!("the answer is {} instead of a list of rows", kind(Some(&answer)));
    };
    let Some(last) = rows.last() else { return Ok(0.0) };
    let value = last.get(column);
    value.and_then(Value::as_f64).ok_or_else(|| scaler_error!("the last row has {} as {column}", kind(value)))
}

fn refused(status: u16, body: &[u8]) -> ScalerError {
    let answer = read(body).ok();
    let message = answer.as_ref().and_then(|answer| answer.get("message").or_else(|| answer.get("error")));
    let message = message.and_then(Value::as_str).map_or_else(|| hidden(body), excerpt);
    scaler_error!("InfluxDB returned {status}: {message}")
}

/// Parses CSV records (RFC 4180); empty lines are skipped.
fn records(text: &str) -> impl Iterator<Item = Vec<String>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        rest = rest.trim_start_matches(['\r', '\n']);
        if rest.is_empty() {
            return None;
        }
        let (mut fields, mut field, mut quoted) = (Vec::new(), String::new(), false);
        let mut chars = rest.char_indices().peekable();
        let mut end = rest.len();
        while let Some((at, c)) = chars.next() {
            match c {
                '"' if quoted && chars.peek().is_some_and(|(_, next)| *next == '"') => {
                    chars.next();
                    field.push('"');
                }
                '"' => quoted = !quoted,
                ',' if !quoted => fields.push(std::mem::take(&mut field)),
                '\n' if !quoted => {
                    end = at;
                    break;
                }
                '\r' if !quoted => {}
                c => field.push(c),
            }
        }
        fields.push(field);
        rest = rest.get(end..).unwrap_or_default();
        Some(fields)
    })
}
