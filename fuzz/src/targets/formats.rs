//! The four response formats of the scaler metrics-api: JSON, YAML, XML and the text format of Prometheus.

use scalers::metrics_api::query::{Format, read};

/// The first line of the input is a value location, the rest is the body of the response.
pub fn run(data: &[u8]) {
    let at = data.iter().position(|byte| *byte == b'\n').unwrap_or(data.len());
    let (location, body) = data.split_at(at);
    let location = String::from_utf8_lossy(location);
    let body = body.get(1..).unwrap_or_default();
    for format in [Format::Json, Format::Yaml, Format::Xml, Format::Prometheus] {
        match read(format, body, &location) {
            Ok(number) => assert!(number.is_finite()),
            Err(error) => assert!(error.to_string().len() < 2_000),
        }
    }
}
