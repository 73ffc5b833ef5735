//! Parts of sentences.

use engine::explain::plain;
use jiff::{SignedDuration, Timestamp};

/// Names that a sentence lists.
const MAX_NAMES: usize = 3;
/// Characters of a quoted message.
const MAX_QUOTED_CHARS: usize = 160;

/// `a, b, c and 4 more`.
pub(super) fn names<'a>(all: impl IntoIterator<Item = &'a str>) -> String {
    let all: Vec<&str> = all.into_iter().collect();
    let shown = all.iter().take(MAX_NAMES).copied().collect::<Vec<_>>().join(", ");
    match all.len().saturating_sub(MAX_NAMES) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// A message of another program, cut to one line of reasonable length.
pub(super) fn quoted(message: &str) -> String {
    let message = plain(message.lines().next().unwrap_or_default().trim());
    if message.chars().count() <= MAX_QUOTED_CHARS {
        return message;
    }
    format!("{}…", message.chars().take(MAX_QUOTED_CHARS).collect::<String>().trim_end())
}

/// `45 s`, `4 min`, `2 h`.
pub(super) fn age(age: SignedDuration) -> String {
    match age.as_secs() {
        seconds @ ..120 => format!("{seconds} s"),
        seconds @ 120..7200 => format!("{} min", seconds / 60),
        seconds => format!("{} h", seconds / 3600),
    }
}

/// ` since 09:10:00`, or nothing.
pub(super) fn since(at: Option<Timestamp>) -> String {
    at.map(|at| format!(" since {}", engine::explain::clock(at))).unwrap_or_default()
}
