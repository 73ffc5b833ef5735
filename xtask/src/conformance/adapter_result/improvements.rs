//! Where we answer otherwise unless told to imitate (docs/compatibility.md).

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Answer, compare};
use crate::conformance::Difference;

/// Records that we answer otherwise on purpose.
struct Improvement {
    reason: &'static str,
    ids: &'static [&'static str],
}

const LISTED: &[Improvement] = &[
    Improvement {
        reason: "what is no number is no value, infinity is an error, and what is too large is the largest there is",
        ids: &[
            "r-55", "r-56", "r-57", "r-58", "r-59", "r-60", "r-61", "r-62", "r-63", "r-64", "r-65", "r-66",
            "r-70", "r-71", "r-72", "r-73", "r-74", "r-75", "r-76", "r-77", "r-78", "r-82", "r-83", "r-84",
            "r-130", "r-131", "r-132", "r-136", "r-137", "r-138", "r-142", "r-143", "r-144", "r-211",
            "r-212", "r-213", "r-214", "r-247", "r-248", "r-249", "r-250", "r-255", "r-256", "r-257",
            "r-258", "r-549",
        ],
    },
    Improvement {
        reason: "if Prometheus fails, metrics of nodes and pods are not said to be absent (503)",
        ids: &[
            "r-105", "r-108", "r-111", "r-114", "r-174", "r-178", "r-182", "r-186", "r-190", "r-194",
            "r-198", "r-202", "r-206", "r-222", "r-226", "r-262", "r-318", "r-322", "r-326", "r-330",
            "r-338", "r-541", "r-542",
        ],
    },
    Improvement {
        reason: "what is not known of a container is left out, not zero",
        ids: &[
            "r-210", "r-230", "r-234", "r-238", "r-242", "r-246", "r-254", "r-266", "r-286", "r-290",
            "r-294", "r-298", "r-302", "r-306", "r-310", "r-314", "r-334", "r-519", "r-520",
        ],
    },
    Improvement {
        reason: "`!=` in a selector of series is echoed as NotIn instead of an error",
        ids: &["r-406", "r-407", "r-424", "r-425"],
    },
    Improvement {
        reason: "a malformed selector of series is the fault of who asks (400)",
        ids: &["r-414", "r-415", "r-416", "r-417"],
    },
];

/// Values of custom metrics say when they were measured.
const TIMES: &str = "values of custom metrics carry the time of the sample, not that of the answer";
/// Errors say why.
const CAUSES: &str = "errors say the cause behind the recorded words";

/// How often each improvement was met.
#[derive(Default)]
pub(super) struct Tally(BTreeMap<&'static str, usize>);

impl Tally {
    /// Compares our own answer: where it differs without an improvement, and where a listed one makes no difference.
    pub(super) fn judge(&mut self, id: &str, expected: &Value, mut got: Answer) -> Vec<Difference> {
        let listed = LISTED.iter().find(|improvement| improvement.ids.contains(&id));
        if listed.is_none() {
            for (reason, undone) in
                [(TIMES, undo_times(expected, &mut got)), (CAUSES, undo_causes(expected, &mut got))]
            {
                *self.0.entry(reason).or_default() += usize::from(undone);
            }
        }
        let differences = compare(expected, &got);
        match (listed, differences.is_empty()) {
            (Some(_), true) if expected.get("panic").is_none() => vec![Difference {
                at: "improvement".into(),
                expected: "an answer that differs, as listed".into(),
                got: "the recorded one".into(),
            }],
            (Some(improvement), _) => {
                *self.0.entry(improvement.reason).or_default() += 1;
                Vec::new()
            }
            (None, _) => {
                let better =
                    |one: Difference| Difference { at: format!("{} (compat: better)", one.at), ..one };
                differences.into_iter().map(better).collect()
            }
        }
    }

    pub(super) fn print(&self) {
        for (reason, count) in &self.0 {
            println!("  {count} answered better: {reason}");
        }
    }
}

/// Gives values of custom metrics the recorded times; says whether that made a difference.
fn undo_times(expected: &Value, got: &mut Answer) -> bool {
    let is_list =
        |body: Option<&Value>| body.and_then(|body| body.get("kind")) == Some(&"MetricValueList".into());
    if !is_list(expected.get("body")) || !is_list(Some(&got.body)) {
        return false;
    }
    let theirs = expected.pointer("/body/items").and_then(Value::as_array).into_iter().flatten();
    let ours = got.body.get_mut("items").and_then(Value::as_array_mut).into_iter().flatten();
    let mut undone = false;
    for (theirs, ours) in theirs.zip(ours) {
        if let (Some(theirs), Some(ours)) = (theirs.get("timestamp"), ours.get_mut("timestamp"))
            && ours.is_string()
            && ours != theirs
        {
            *ours = theirs.clone();
            undone = true;
        }
    }
    undone
}

/// Takes causes away from behind the recorded words; says whether there were any.
fn undo_causes(expected: &Value, got: &mut Answer) -> bool {
    let known = ["unable to fetch metrics", "unable to list matching resources"];
    let Some(theirs) = expected.pointer("/body/message").and_then(Value::as_str) else { return false };
    let Some(ours) = got.body.get_mut("message") else { return false };
    let cause = ours.as_str().and_then(|ours| ours.strip_prefix(theirs));
    if !known.iter().any(|words| theirs.ends_with(words))
        || !cause.is_some_and(|cause| cause.starts_with(": "))
    {
        return false;
    }
    *ours = theirs.into();
    // The cause of an internal error is said a second time, for programs.
    let causes = "/details/causes/0/message";
    if let (Some(theirs), Some(ours)) =
        (expected.pointer(&format!("/body{causes}")), got.body.pointer_mut(causes))
    {
        *ours = theirs.clone();
    }
    true
}
