//! Improvements that show in many records, recognised by what differs and not by ids.

use serde_json::Value;

use crate::conformance::Difference;

/// Whether lists of custom values differ only in their times.
pub(super) fn only_times(difference: &Difference) -> bool {
    let Some((theirs, mut ours)) = bodies(difference) else { return false };
    let is_list = |body: &Value| body.get("kind").is_some_and(|kind| kind == "MetricValueList");
    if !is_list(&theirs) || !is_list(&ours) {
        return false;
    }
    let recorded = theirs.get("items").and_then(Value::as_array).into_iter().flatten();
    let items = ours.get_mut("items").and_then(Value::as_array_mut).into_iter().flatten();
    for (theirs, ours) in recorded.zip(items) {
        if let (Some(theirs), Some(ours)) = (theirs.get("timestamp"), ours.get_mut("timestamp"))
            && ours.is_string()
        {
            *ours = theirs.clone();
        }
    }
    theirs == ours
}

/// Whether errors differ only in the response, of which we state the length instead.
pub(crate) fn only_hidden_body(difference: &Difference) -> bool {
    let ours = difference.got.split_once(" response: (").filter(|(_, rest)| rest.contains("not shown)"));
    let theirs = difference.expected.split_once(" response: ");
    ours.zip(theirs).is_some_and(|((ours, _), (theirs, _))| ours == theirs)
}

/// Whether an external scaler that does not respond is an error instead of an empty list.
pub(super) fn only_silence(difference: &Difference) -> bool {
    difference.expected == "[]" && difference.got.starts_with("external scaler ")
}

/// Whether errors differ only in a cause that we append to the recorded text.
pub(super) fn only_causes(difference: &Difference) -> bool {
    const WORDS: [&str; 2] = ["unable to fetch metrics", "unable to list matching resources"];
    let Some((theirs, mut ours)) = bodies(difference) else { return false };
    let Some(recorded) = theirs.get("message").and_then(Value::as_str) else { return false };
    let said = ours.get("message").and_then(Value::as_str);
    let cause = said.and_then(|said| said.strip_prefix(recorded));
    if !WORDS.iter().any(|words| recorded.ends_with(words))
        || !cause.is_some_and(|cause| cause.starts_with(": "))
    {
        return false;
    }
    // The cause of an internal error is repeated in `details`.
    for place in ["/message", "/details/causes/0/message"] {
        if let (Some(theirs), Some(ours)) = (theirs.pointer(place), ours.pointer_mut(place)) {
            *ours = theirs.clone();
        }
    }
    theirs == ours
}

/// The recorded body and ours, if it is they that differ.
fn bodies(difference: &Difference) -> Option<(Value, Value)> {
    let read = |text: &str| serde_json::from_str::<Value>(text).ok();
    if difference.at == "body" { read(&difference.expected).zip(read(&difference.got)) } else { None }
}
