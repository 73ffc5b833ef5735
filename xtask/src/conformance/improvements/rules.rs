//! Improvements that show in many records: told by what differs, not by ids.

use serde_json::Value;

use crate::conformance::Difference;

/// Whether lists of custom values differ in nothing but their times.
pub(super) fn only_times(difference: &Difference) -> bool {
    let Some((theirs, mut ours)) = bodies(difference) else { return false };
    if theirs["kind"] != "MetricValueList" || ours["kind"] != "MetricValueList" {
        return false;
    }
    let items = ours["items"].as_array_mut().into_iter().flatten();
    for (theirs, ours) in theirs["items"].as_array().into_iter().flatten().zip(items) {
        if let (Some(theirs), Some(ours)) = (theirs.get("timestamp"), ours.get_mut("timestamp"))
            && ours.is_string()
        {
            *ours = theirs.clone();
        }
    }
    theirs == ours
}

/// Whether errors differ in nothing but a cause that we say behind the recorded words.
pub(super) fn only_causes(difference: &Difference) -> bool {
    const WORDS: [&str; 2] = ["unable to fetch metrics", "unable to list matching resources"];
    // The cause of an internal error is said a second time, for programs.
    const CAUSE: &str = "/details/causes/0/message";
    let Some((theirs, mut ours)) = bodies(difference) else { return false };
    let Some(message) = theirs["message"].as_str() else { return false };
    let cause = ours["message"].as_str().and_then(|ours| ours.strip_prefix(message));
    if !WORDS.iter().any(|words| message.ends_with(words))
        || !cause.is_some_and(|cause| cause.starts_with(": "))
    {
        return false;
    }
    if let (Some(theirs), Some(ours)) = (theirs.pointer(CAUSE), ours.pointer_mut(CAUSE)) {
        *ours = theirs.clone();
    }
    ours["message"] = theirs["message"].clone();
    theirs == ours
}

/// The recorded body and ours, if it is they that differ.
fn bodies(difference: &Difference) -> Option<(Value, Value)> {
    let read = |text: &str| serde_json::from_str::<Value>(text).ok().filter(Value::is_object);
    if difference.at == "body" { read(&difference.expected).zip(read(&difference.got)) } else { None }
}
