use std::time::Duration;

use engine::Event;
use engine::report::EventKind;
use jiff::Timestamp;
use tokio::time::Instant;

use super::{about, warning};
use crate::events::correlate::{Correlator, OutgoingEvent};
use crate::events::{EventAnnotations, RecordedEvent};

/// A correlator, and time in seconds.
struct Case {
    start: Instant,
    correlator: Correlator,
}

impl Case {
    fn new() -> Self {
        Self { start: Instant::now(), correlator: Correlator::new() }
    }

    fn report_at(&mut self, second: u64, reported: RecordedEvent) -> Option<OutgoingEvent> {
        let at = Timestamp::from_second(1_800_000_000 + second as i64).unwrap();
        self.correlator.observe(RecordedEvent {
            at,
            now: self.start + Duration::from_secs(second),
            ..reported
        })
    }

    /// `(count, message)` of what is sent.
    fn warn(&mut self, second: u64, message: &str) -> Option<(u32, String)> {
        let notice = self.report_at(second, reported("web", warning(message)))?;
        Some((notice.count, notice.message))
    }
}

fn reported(name: &str, event: Event) -> RecordedEvent {
    let component = "horizontal-pod-autoscaler";
    RecordedEvent {
        about: about(name),
        component,
        pause: Duration::ZERO,
        event,
        action: None,
        annotations: EventAnnotations::default(),
        at: Timestamp::UNIX_EPOCH,
        now: Instant::now(),
    }
}

#[test]
fn repeated_events_keep_the_first_name_and_time() {
    let mut case = Case::new();
    let first = case.report_at(0, reported("web", warning("a"))).unwrap();
    assert_eq!((first.count, first.first, first.last), (1, first.last, first.first));
    let mut again = reported("web", warning("a"));
    // Another version of the object makes no other event.
    again.about.resource_version = "999".to_owned();
    let second = case.report_at(30, again).unwrap();
    assert_eq!((second.count, &second.name, second.first), (2, &first.name, first.first));
    assert_eq!(second.last.as_second() - second.first.as_second(), 30);
}

#[test]
fn events_that_differ_are_separate() {
    let mut case = Case::new();
    let base = reported("web", warning("a"));
    let mut others = vec![base.clone(); 8];
    others[0].about.name = "other".to_owned();
    others[1].about.namespace = "other".to_owned();
    others[2].about.uid = "other".to_owned();
    others[3].about.kind = "Autoscaler";
    others[4].component = "plimsoll-shadow";
    others[5].event.kind = EventKind::Normal;
    others[6].event.reason = "Other".into();
    others[7].event.message = "b".to_owned();
    assert_eq!(case.report_at(0, base.clone()).unwrap().count, 1);
    let mut names = std::collections::HashSet::new();
    for other in others {
        let notice = case.report_at(0, other).unwrap();
        assert_eq!(notice.count, 1, "{notice:?}");
        // All at the same nanosecond.
        assert!(names.insert(notice.name));
    }
    assert_eq!(case.report_at(0, base).unwrap().count, 2);
}

/// kube-controller-manager, with a target renamed every two seconds: g0 (twice), g1 … g6, g6, g7, g8, then
/// `(combined …): …g9` created, g10 to g13 patched into it, and g13 again an event of its own.
#[test]
fn the_tenth_message_is_combined() {
    let mut case = Case::new();
    let own = |message: &str| Some((1, message.to_owned()));
    let combined = |count, message: &str| Some((count, format!("(combined from similar events): {message}")));
    for message in ["g0", "g1", "g2", "g3", "g4", "g5", "g6", "g7", "g8"] {
        assert_eq!(case.warn(0, message), own(message));
    }
    assert_eq!(case.warn(0, "g6"), Some((2, "g6".to_owned())));
    for (n, message) in ["g9", "g10", "g11", "g12", "g13"].into_iter().enumerate() {
        assert_eq!(case.warn(0, message), combined(n as u32 + 1, message));
    }
    assert_eq!(case.warn(0, "g13"), own("g13"));
    assert_eq!(case.warn(0, "g13"), Some((2, "g13".to_owned())));
    // Events with another reason are not combined with these.
    let other = Event { reason: "Other".into(), ..warning("g14") };
    assert_eq!(case.report_at(0, reported("web", other)).unwrap().message, "g14");
}

#[test]
fn a_gap_of_ten_minutes_ends_combining_but_not_the_event() {
    for (gap, is_combined) in [(600, true), (601, false)] {
        let mut case = Case::new();
        for n in 0..9 {
            // The interval is between neighbours, not over all.
            case.warn(n * 599, &format!("m{n}"));
        }
        let (count, message) = case.warn(8 * 599 + gap, "new").unwrap();
        assert_eq!((count, message.starts_with("(combined")), (1, is_combined), "{gap}");
    }
}

/// kube-controller-manager, failing every two seconds: counts 1 to 25, then nothing for five minutes, then count 137.
#[test]
fn rate_limited_events_are_counted() {
    let mut case = Case::new();
    for count in 1..=25 {
        assert_eq!(case.warn(2 * u64::from(count), "m").unwrap().0, count);
    }
    for second in (52..302).step_by(2) {
        assert_eq!(case.warn(second, "m"), None, "{second}");
    }
    assert_eq!(case.warn(303, "m"), Some((151, "m".to_owned())));
    assert_eq!(case.warn(304, "m"), None);
    // The other type, other objects and other sources have allowances of their own.
    let normal = Event { kind: EventKind::Normal, ..warning("m") };
    assert!(case.report_at(304, reported("web", normal)).is_some());
    assert!(case.report_at(304, reported("other", warning("m"))).is_some());
    assert!(
        case.report_at(304, RecordedEvent { component: "plimsoll-shadow", ..reported("web", warning("m")) })
            .is_some()
    );
    // But another reason or message has not.
    let other = Event { reason: "Other".into(), ..warning("x") };
    assert!(case.report_at(304, reported("web", other)).is_none());
}

#[test]
fn a_token_bucket_never_exceeds_its_burst() {
    let mut case = Case::new();
    assert!(case.warn(0, "m").is_some());
    let sent = (0..100).filter(|_| case.warn(10_000_000, "m").is_some()).count();
    assert_eq!(sent, 25);
}

#[test]
fn caches_are_bounded() {
    let mut case = Case::new();
    for n in 0..10_000 {
        assert_eq!(case.report_at(0, reported(&format!("web-{n}"), warning("m"))).unwrap().count, 1);
    }
    assert_eq!(case.correlator.entry_counts(), [4096; 3]);
    assert_eq!(case.report_at(0, reported("web-9999", warning("m"))).unwrap().count, 2);
    assert_eq!(case.report_at(0, reported("web-0", warning("m"))).unwrap().count, 1);
}

#[test]
fn names_stay_unique_when_the_clock_stops_or_goes_back() {
    let mut case = Case::new();
    let mut names = std::collections::HashSet::new();
    for (n, second) in [5, 5, 5, 0, 5, 0].into_iter().enumerate() {
        assert!(names.insert(case.report_at(second, reported("web", warning(&n.to_string()))).unwrap().name));
    }
    let odd = RecordedEvent { at: Timestamp::MIN, ..reported("web", warning("x")) };
    assert!(case.correlator.observe(odd).is_some());
}

#[test]
fn events_with_action_are_rate_limited_only_when_repeated() {
    let mut case = Case::new();
    let acted =
        |message: &str| RecordedEvent { action: Some("Acted".into()), ..reported("web", warning(message)) };
    for number in 0..40 {
        let about = super::about(&format!("web-{number}"));
        assert!(case.report_at(0, RecordedEvent { about, ..acted("m") }).is_some());
    }
    let sent = (0..40).filter(|_| case.report_at(1, acted("m")).is_some()).count();
    assert_eq!(sent, 26, "the first, and 25 that repeat it");
}

#[test]
fn a_recorder_with_a_pause_counts_repeated_events_without_sending() {
    let mut case = Case::new();
    let calm =
        |message: &str| RecordedEvent { pause: Duration::from_secs(20), ..reported("web", warning(message)) };
    assert_eq!(case.report_at(0, calm("a")).unwrap().count, 1);
    assert_eq!((case.report_at(5, calm("a")), case.report_at(19, calm("a"))), (None, None));
    assert_eq!(case.report_at(19, calm("b")).unwrap().count, 1, "something else is told at once");
    assert_eq!(case.report_at(20, calm("a")).unwrap().count, 4);
    assert_eq!(case.report_at(39, calm("a")), None, "it is the last one sent that counts");
    assert_eq!(case.report_at(40, reported("web", warning("a"))).unwrap().count, 6);
    // What was not sent was not taken from what may be sent: 4 of 25 so far.
    let sent = (0..1000).filter(|_| case.report_at(40, reported("web", warning("a"))).is_some()).count();
    assert_eq!(sent, 21);
}
