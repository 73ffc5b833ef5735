//! State snapshots, which an annotation keeps across restarts of the controller.

use engine::StateSnapshot;
use jiff::Timestamp;

/// The input is a snapshot as text. A snapshot that can be parsed gives the same text and the same state when it is parsed again.
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
