//! The MQSC command, and its response.

use serde_json::{Value, json};

use crate::ScalerError;
use crate::responses::{error_field, excerpt, json as read, kind};

/// The command that displays the depth of a queue.
pub(super) fn command(queue: &str) -> String {
    json!({
        "type": "runCommandJSON",
        "command": "display",
        "qualifier": "qlocal",
        "name": queue,
        "responseParameters": ["CURDEPTH"],
    })
    .to_string()
}

/// The depth of a queue.
pub(super) fn depth(status: u16, body: &[u8], queue: &str) -> Result<f64, ScalerError> {
    if status != 200 {
        bail!("IBM MQ returned {status} for queue {queue}: {}", error_field(body, "/error/0/message"));
    }
    let answer = read(body)?;
    let found = answer.get("commandResponse");
    let Some(first) = found.and_then(|list| list.get(0)) else {
        bail!("IBM MQ answered {} at commandResponse for queue {queue}", kind(found));
    };
    let depth = first.pointer("/parameters/curdepth");
    depth.and_then(Value::as_f64).ok_or_else(|| {
        let detail: Vec<&str> = first
            .get("message")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let detail =
            if detail.is_empty() { format!("{} as depth", kind(depth)) } else { excerpt(&detail.join(" ")) };
        scaler_error!("IBM MQ does not report the depth of queue {queue}: {detail}")
    })
}
