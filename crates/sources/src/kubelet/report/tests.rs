#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + second).unwrap()
}

const TOOK: Duration = Duration::from_millis(7);

fn report(nodes: &[&str]) -> Report {
    let report = Report::new(Settings::new(Duration::from_secs(15), Compat::Better));
    for &node in nodes {
        report.expect(&node.into());
    }
    report
}

fn fail(report: &Report, node: &str, cause: Cause, second: i64) {
    report.failed(&node.into(), true, cause, "why", TOOK, at(second));
}

#[test]
fn a_node_is_followed_through_good_and_bad() {
    let report = report(&["a"]);
    assert_eq!(report.fare("a"), Some(Fare::default()));
    report.good(&"a".into(), TOOK, at(0));
    fail(&report, "a", Cause::Refused, 15);
    fail(&report, "a", Cause::Unreachable, 30);
    let fare = report.fare("a").unwrap();
    assert_eq!((fare.good, fare.failing_since, fare.failures), (Some(at(0)), Some(at(15)), 2));
    assert_eq!(fare.cause, Some(Cause::Unreachable));
    report.good(&"a".into(), TOOK, at(45));
    let fare = report.fare("a").unwrap();
    assert_eq!(fare, Fare { asked: Some(at(45)), good: Some(at(45)), ..Fare::default() });
    assert_eq!(report.fare("b"), None);
}

#[test]
fn problems_are_grouped_by_cause_the_most_frequent_first() {
    let report = report(&["a", "b", "c", "d", "e", "f"]);
    let without =
        |asked: &str| Cause::CertificateWithoutAddress { asked: asked.into(), has: vec!["x".into()] };
    fail(&report, "a", Cause::TimedOut { stage: Stage::Waiting, after: Duration::from_secs(10) }, 0);
    fail(&report, "b", without("10.0.0.1"), 0);
    fail(&report, "c", without("10.0.0.2"), 0);
    report.good(&"d".into(), TOOK, at(0));
    fail(&report, "e", Cause::UnknownAuthority, 0);
    let problems = report.problems();
    assert_eq!((problems.nodes, problems.not_asked), (6, 1));
    assert_eq!(
        problems.lines(),
        [
            "2/6 nodes: certificate has no such address",
            "1/6 nodes: timed out after 10 s",
            "1/6 nodes: certificate signed by unknown authority",
        ]
    );
    let names: Vec<&str> = problems.groups[0].nodes.iter().map(|(name, _)| &**name).collect();
    assert_eq!(names, ["b", "c"]);
}

#[test]
fn nothing_stays_of_a_node_that_is_gone() {
    let report = Report::new(Settings { resolution: Duration::from_secs(15), by_node: true });
    report.expect(&"a".into());
    report.good(&"a".into(), TOOK, at(0));
    assert_eq!(report.numbers().by_node.len(), 1);
    report.forget("a");
    // An answer that comes late does not bring it back.
    report.good(&"a".into(), TOOK, at(1));
    fail(&report, "a", Cause::Refused, 2);
    let numbers = report.numbers();
    assert_eq!((numbers.by_node.len(), numbers.last_request.len(), numbers.nodes), (0, 0, 0));
    assert_eq!(report.problems(), Problems::default());
}

#[test]
fn requests_are_counted() {
    let report = report(&["a", "b"]);
    report.good(&"a".into(), TOOK, at(0));
    report.good(&"a".into(), TOOK, at(15));
    fail(&report, "b", Cause::Refused, 20);
    fail(&report, "b", Cause::Refused, 23);
    let numbers = report.numbers();
    assert_eq!((numbers.good, numbers.failed, numbers.nodes, numbers.well), (2, 2, 2, 1));
    assert_eq!(numbers.causes, [("refused", 2)]);
    assert_eq!(numbers.durations.count(), 4);
    assert!(numbers.by_node.is_empty(), "only in strict mode");
    let asked: Vec<_> = numbers.last_request.iter().map(|(name, at)| (&**name, *at)).collect();
    assert_eq!(asked, [("a", 1_700_000_015), ("b", 1_700_000_023)]);
}

#[tokio::test(start_paused = true)]
async fn the_loop_is_timely_for_one_and_a_half_periods() {
    let report = report(&[]);
    assert!(report.is_timely(Instant::now()), "before it begins");
    let beat = Instant::now();
    report.beat(beat);
    assert!(report.is_timely(beat + Duration::from_millis(22_500)));
    assert!(!report.is_timely(beat + Duration::from_millis(22_501)));
}

#[test]
fn every_cause_has_words_and_a_remedy() {
    let causes = [
        Cause::NoAddress { types: vec!["InternalIP".into()] },
        Cause::UnknownName { name: "a".into() },
        Cause::Unreachable,
        Cause::Refused,
        Cause::TimedOut { stage: Stage::Connecting, after: Duration::from_secs(10) },
        Cause::TimedOut { stage: Stage::Reading, after: Duration::from_millis(2500) },
        Cause::UnknownAuthority,
        Cause::CertificateExpired,
        Cause::CertificateNotYetValid,
        Cause::CertificateWithoutAddress { asked: "10.0.0.1".into(), has: vec![] },
        Cause::NotAuthenticated,
        Cause::NotAuthorized,
        Cause::Status(404),
        Cause::Status(599),
        Cause::TooLarge { limit: 16 << 20 },
        Cause::NotMetrics("line 1: expected a metric name".into()),
        Cause::KubeletCannotMeasure,
        Cause::Other("it broke".into()),
    ];
    for cause in &causes {
        assert!(!cause.words().is_empty() && !cause.remedy().is_empty() && !cause.general().is_empty());
        assert!(cause.label().chars().all(|c| c.is_ascii_lowercase() || c == '_'));
    }
    assert_eq!(causes[5].words(), "answer was not complete after 2500 ms");
    assert_eq!(causes[13].words(), "kubelet answers 599");
    assert_eq!(causes[14].words(), "answer is longer than 16 MiB");
}
