#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + second).unwrap()
}

const SCRAPE_DURATION: Duration = Duration::from_millis(7);

fn report(nodes: &[&str]) -> ScrapeReport {
    let report = ScrapeReport::new(ScrapeReportSettings::new(Duration::from_secs(15), Compat::Better));
    for &node in nodes {
        report.track(&node.into());
    }
    report
}

fn fail(report: &ScrapeReport, node: &str, cause: ScrapeErrorCause, second: i64) {
    report.record_failure(&node.into(), true, cause, "why", SCRAPE_DURATION, at(second));
}

#[test]
fn node_status_follows_success_and_failure() {
    let report = report(&["a"]);
    assert_eq!(report.node_status("a"), Some(NodeScrapeStatus::default()));
    report.record_success(&"a".into(), SCRAPE_DURATION, at(0));
    fail(&report, "a", ScrapeErrorCause::Refused, 15);
    fail(&report, "a", ScrapeErrorCause::Unreachable, 30);
    let status = report.node_status("a").unwrap();
    assert_eq!((status.good, status.failing_since, status.failures), (Some(at(0)), Some(at(15)), 2));
    assert_eq!(status.cause, Some(ScrapeErrorCause::Unreachable));
    report.record_success(&"a".into(), SCRAPE_DURATION, at(45));
    let status = report.node_status("a").unwrap();
    assert_eq!(
        status,
        NodeScrapeStatus { last_scrape: Some(at(45)), good: Some(at(45)), ..NodeScrapeStatus::default() }
    );
    assert_eq!(report.node_status("b"), None);
}

#[test]
fn problems_are_grouped_by_cause_the_most_frequent_first() {
    let report = report(&["a", "b", "c", "d", "e", "f"]);
    let without = |address: &str| ScrapeErrorCause::CertificateWithoutAddress {
        address: address.into(),
        has: vec!["x".into()],
    };
    fail(
        &report,
        "a",
        ScrapeErrorCause::TimedOut { stage: RequestStage::Waiting, after: Duration::from_secs(10) },
        0,
    );
    fail(&report, "b", without("10.0.0.1"), 0);
    fail(&report, "c", without("10.0.0.2"), 0);
    report.record_success(&"d".into(), SCRAPE_DURATION, at(0));
    fail(&report, "e", ScrapeErrorCause::UnknownAuthority, 0);
    let problems = report.problems();
    assert_eq!((problems.nodes, problems.not_scraped), (6, 1));
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
fn removed_node_leaves_no_data() {
    let report =
        ScrapeReport::new(ScrapeReportSettings { resolution: Duration::from_secs(15), by_node: true });
    report.track(&"a".into());
    report.record_success(&"a".into(), SCRAPE_DURATION, at(0));
    assert_eq!(report.counters().by_node.len(), 1);
    report.forget_node("a");
    // A late result does not restore a removed node.
    report.record_success(&"a".into(), SCRAPE_DURATION, at(1));
    fail(&report, "a", ScrapeErrorCause::Refused, 2);
    let counters = report.counters();
    assert_eq!((counters.by_node.len(), counters.last_request.len(), counters.nodes), (0, 0, 0));
    assert_eq!(report.problems(), ScrapeProblems::default());
}

#[test]
fn scrapes_are_counted() {
    let report = report(&["a", "b"]);
    report.record_success(&"a".into(), SCRAPE_DURATION, at(0));
    report.record_success(&"a".into(), SCRAPE_DURATION, at(15));
    fail(&report, "b", ScrapeErrorCause::Refused, 20);
    fail(&report, "b", ScrapeErrorCause::Refused, 23);
    let counters = report.counters();
    assert_eq!((counters.good, counters.failed, counters.nodes, counters.healthy), (2, 2, 2, 1));
    assert_eq!(counters.causes, [("refused", 2)]);
    assert_eq!(counters.durations.count(), 4);
    assert!(counters.by_node.is_empty(), "only in strict mode");
    let last_scrape: Vec<_> = counters.last_request.iter().map(|(name, at)| (&**name, *at)).collect();
    assert_eq!(last_scrape, [("a", 1_700_000_015), ("b", 1_700_000_023)]);
}

#[tokio::test(start_paused = true)]
async fn loop_is_timely_for_one_and_a_half_periods() {
    let report = report(&[]);
    assert!(report.is_timely(Instant::now()), "before it begins");
    let beat = Instant::now();
    report.heartbeat(beat);
    assert!(report.is_timely(beat + Duration::from_millis(22_500)));
    assert!(!report.is_timely(beat + Duration::from_millis(22_501)));
}

#[test]
fn every_cause_has_message_and_remedy() {
    let causes = [
        ScrapeErrorCause::NoAddress { types: vec!["InternalIP".into()] },
        ScrapeErrorCause::UnknownName { name: "a".into() },
        ScrapeErrorCause::Unreachable,
        ScrapeErrorCause::Refused,
        ScrapeErrorCause::TimedOut { stage: RequestStage::Connecting, after: Duration::from_secs(10) },
        ScrapeErrorCause::TimedOut { stage: RequestStage::Reading, after: Duration::from_millis(2500) },
        ScrapeErrorCause::UnknownAuthority,
        ScrapeErrorCause::CertificateExpired,
        ScrapeErrorCause::CertificateNotYetValid,
        ScrapeErrorCause::CertificateWithoutAddress { address: "10.0.0.1".into(), has: vec![] },
        ScrapeErrorCause::NotAuthenticated,
        ScrapeErrorCause::NotAuthorized,
        ScrapeErrorCause::Status(404),
        ScrapeErrorCause::Status(599),
        ScrapeErrorCause::TooLarge { limit: 16 << 20 },
        ScrapeErrorCause::NotMetrics("line 1: expected a metric name".into()),
        ScrapeErrorCause::KubeletCannotMeasure,
        ScrapeErrorCause::Other("it broke".into()),
    ];
    for cause in &causes {
        assert!(
            !cause.message().is_empty() && !cause.remedy().is_empty() && !cause.group_message().is_empty()
        );
        assert!(cause.label().chars().all(|c| c.is_ascii_lowercase() || c == '_'));
    }
    assert_eq!(causes[5].message(), "response was not complete after 2500 ms");
    assert_eq!(causes[13].message(), "kubelet responds with 599");
    assert_eq!(causes[14].message(), "response is longer than 16 MiB");
}
