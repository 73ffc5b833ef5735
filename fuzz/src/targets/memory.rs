//! What an annotation remembers across restarts.

use engine::StateSnapshot;
use jiff::Timestamp;

/// A memory as text.
pub fn run(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let Ok(memory) = StateSnapshot::parse(&text) else { return };
    let shown = memory.to_text();
    let again = StateSnapshot::parse(&shown);
    assert_eq!(again.as_ref().map(StateSnapshot::to_text).ok(), Some(shown), "{text}");
    for second in [0, 1_763_200_000, 253_000_000_000] {
        let now = Timestamp::from_second(second).unwrap_or_default();
        assert_eq!(again.as_ref().map(|again| again.recall(now)).ok(), Some(memory.recall(now)), "{text}");
    }
}
