//! The vectors of docs/spec/hpa.md 5.9: proposals of one metric.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

mod common;

use common::{
    Fixture, cpu, external, mk_pod, mk_spec, never_ready, object, pending, pods_metric, proposal, readings,
};
use engine::Pod;
use engine::spec::{Metric, MetricTarget};

/// A vector: pods with their samples, and the expected proposal.
struct Row {
    name: &'static str,
    metric: Metric,
    current: i32,
    pods: Vec<(Pod, Option<i64>)>,
    proposes: i32,
    /// Percentage or average that the status shows; absent in some rows of the spec.
    found: Option<i64>,
}

fn ready(milli: i64) -> (Pod, Option<i64>) {
    (mk_pod("ready"), Some(milli))
}

fn unready(milli: i64) -> (Pod, Option<i64>) {
    (never_ready("unready"), Some(milli))
}

fn unsampled() -> (Pod, Option<i64>) {
    (mk_pod("unsampled"), None)
}

fn starting() -> (Pod, Option<i64>) {
    (pending("starting"), None)
}

#[rustfmt::skip]
fn rows() -> Vec<Row> {
    let row = |name, metric, current, pods, proposes, found| Row { name, metric, current, pods, proposes, found };
    let all = |usages: &[i64]| usages.iter().map(|&u| ready(u)).collect::<Vec<_>>();
    vec![
        row("V1", cpu(30), 3, all(&[300, 500, 700]), 5, Some(50)),
        row("V2", cpu(30), 3, vec![unready(300), ready(500), ready(700)], 4, Some(60)),
        row("V3", cpu(30), 3, vec![ready(400), unready(500), unready(700)], 3, Some(40)),
        row("V4", cpu(50), 5, all(&[100, 300, 500, 250, 250]), 3, Some(28)),
        row("V5", cpu(50), 5, vec![ready(100), ready(300), ready(500), unready(250), unready(250)], 2, Some(30)),
        row("V6", cpu(50), 5, vec![ready(100), starting(), starting(), starting(), starting()], 1, Some(10)),
        row("V7", cpu(50), 3, vec![ready(900), ready(900), starting()], 4, Some(90)),
        row("V8", cpu(50), 4, vec![ready(900), ready(900), ready(900), unsampled()], 6, Some(90)),
        row("V9", cpu(50), 4, vec![ready(100), ready(100), unsampled(), unsampled()], 4, Some(10)),
        row("V10", cpu(200), 4, vec![ready(100), ready(100), unsampled(), unsampled()], 3, Some(10)),
        row("V11", cpu(100), 3, all(&[1109; 3]), 3, Some(110)),
        row("V12", cpu(100), 3, all(&[1110; 3]), 4, Some(111)),
        row("V13", cpu(50), 4, all(&[600; 5]), 6, Some(60)),
        row("V14", pods_metric(15_000), 3, all(&[20_000, 10_000, 30_000]), 4, Some(20_000)),
        row("V15", pods_metric(20_000), 5, all(&[12_000; 5]), 3, Some(12_000)),
        row("V16", pods_metric(20_000), 5,
            vec![ready(20_000), ready(19_000), ready(21_000), unsampled(), unsampled()], 5, Some(20_000)),
        row("V17", pods_metric(15_000), 3, vec![ready(50_000), ready(10_000), unready(30_000)], 6, Some(30_000)),
    ]
}

#[test]
fn per_pod_metrics() {
    for Row { name, metric, current, pods, proposes, found } in rows() {
        let percent = matches!(metric.target, MetricTarget::Utilization(_));
        let decision = Fixture::new(mk_spec([metric]), current).pods(pods).run();
        assert_eq!(proposal(&decision), Ok(proposes), "{name}");
        let reading = decision.status.metrics.unwrap()[0].clone().unwrap();
        let shown = if percent {
            reading.average_utilization.map(i64::from)
        } else {
            reading.average_value.map(|q| q.milli_value())
        };
        assert_eq!(shown, found, "{name}");
    }
}

/// Checks a metric with one value for the whole target.
fn check(name: &str, fixture: Fixture, proposes: i32, shown: Option<&str>) {
    let decision = fixture.run();
    assert_eq!(proposal(&decision), Ok(proposes), "{name}");
    if let Some(shown) = shown {
        assert_eq!(readings(&decision), [Some(shown.to_owned())], "{name}");
    }
}

fn three(metric: Metric, series: &[i64]) -> Fixture {
    Fixture::of_three([metric]).totals(series)
}

/// Three replicas, of which one is ready.
fn one_ready(metric: Metric, series: &[i64]) -> Fixture {
    let mut fixture = three(metric, series);
    fixture.pods = vec![mk_pod("a"), never_ready("b"), never_ready("c")];
    fixture
}

#[test]
fn object_and_external_metrics_propose_by_total_value() {
    let value = |milli: i64| MetricTarget::Value(milli.into());
    let average = |milli: i64| MetricTarget::AverageValue(milli.into());
    check("V18", one_ready(object(value(10_000)), &[50_000]), 5, None);
    check("V19", three(object(average(5_000)), &[20_000]), 4, Some("6667m"));
    check("V20", three(object(average(5_000)), &[20_166]).existing(4), 4, Some("5042m"));
    check("V21", one_ready(external(value(4_400)), &[8_600]), 2, None);
    check("V22", three(external(average(2_150)), &[8_600]), 4, Some("2867m"));
    check("V23", three(external(average(2_900)), &[8_600]), 3, None);
    let half = i64::MAX / 2 + 1;
    check("V24", three(external(value(i64::MAX)), &[half, half]), 3, Some("9223372036854775807m"));
    check("V25", three(object(value(1)), &[i64::MAX]), i32::MAX, None);
}

#[test]
fn v26_scale_up_from_zero() {
    let mut fixture =
        Fixture::new(mk_spec([external(MetricTarget::Value(10_000.into()))]), 0).totals(&[25_000]);
    fixture.config.gates.scale_to_zero = true;
    fixture.status.set(fixture.now, engine::report::condition::SCALED_TO_ZERO, true, "ScaledToZero", "");
    check("V26", fixture, 3, None);
}
