//! State snapshots, which an annotation keeps across restarts.

use engine::StateSnapshot;
use jiff::Timestamp;

/// Parses a snapshot, writes it and restores it.
pub fn run(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let Ok(snapshot) = StateSnapshot::parse(&text) else { return };
    let shown = snapshot.to_text();
    let again = StateSnapshot::parse(&shown);
    assert_eq!(again.as_ref().map(StateSnapshot::to_text).ok(), Some(shown), "{text}");
    for second in [0, 1_763_200_000, 253_000_000_000] {
        let now = Timestamp::from_second(second).unwrap_or_default();
        assert_eq!(
            again.as_ref().map(|again| again.restore(now)).ok(),
            Some(snapshot.restore(now)),
            "{text}"
        );
    }
}
