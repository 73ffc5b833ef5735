//! Families as OTLP messages.

use jiff::Timestamp;

use crate::exposition::{Buckets, FamilyKind, MetricFamily, MetricPoint, PointValue};
use crate::wire::{
    CUMULATIVE, Gauge, Histogram, HistogramDataPoint, Metric, MetricsRequest, NumberDataPoint, Resource,
    ResourceMetrics, Scope, ScopeMetrics, Sum,
};

/// Series in one request, because collectors refuse messages of more than 4 MiB by default.
const MAX_POINTS_PER_REQUEST: usize = 2000;

/// What all metrics of a process have in common.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct MetricsOrigin {
    pub(crate) resource: Resource,
    pub(crate) scope: Scope,
    /// When counting began.
    pub(crate) start: Timestamp,
}

/// All families as requests, at this time.
pub(crate) fn requests(
    origin: &MetricsOrigin,
    families: Vec<MetricFamily>,
    now: Timestamp,
) -> Vec<MetricsRequest> {
    let times = PointTimes { start: nanoseconds(origin.start), now: nanoseconds(now) };
    let (mut requests, mut metrics, mut free) = (Vec::new(), Vec::new(), MAX_POINTS_PER_REQUEST);
    for mut family in families {
        while !family.points.is_empty() {
            let count = family.points.len().min(free);
            let rest = family.points.split_off(count);
            metrics.push(metric(&family, times));
            free -= count;
            family.points = rest;
            if free == 0 {
                requests.push(request(origin, std::mem::take(&mut metrics)));
                free = MAX_POINTS_PER_REQUEST;
            }
        }
    }
    if !metrics.is_empty() {
        requests.push(request(origin, metrics));
    }
    requests
}

#[derive(Clone, Copy)]
struct PointTimes {
    start: u64,
    now: u64,
}

/// Nanoseconds since 1970; 0 before.
pub(crate) fn nanoseconds(at: Timestamp) -> u64 {
    u64::try_from(at.as_nanosecond()).unwrap_or(0)
}

fn request(origin: &MetricsOrigin, metrics: Vec<Metric>) -> MetricsRequest {
    let scope_metrics = vec![ScopeMetrics { scope: Some(origin.scope.clone()), metrics }];
    let of_process = ResourceMetrics { resource: Some(origin.resource.clone()), scope_metrics };
    MetricsRequest { resource_metrics: vec![of_process] }
}

fn metric(family: &MetricFamily, times: PointTimes) -> Metric {
    let mut metric = Metric {
        name: family.name.clone(),
        description: family.help.clone(),
        unit: family.unit.to_owned(),
        ..Metric::default()
    };
    let numbers = || family.points.iter().filter_map(|point| number(point, times)).collect();
    match family.kind {
        FamilyKind::Gauge => metric.gauge = Some(Gauge { data_points: numbers() }),
        FamilyKind::Counter | FamilyKind::UpDownCounter => {
            metric.sum = Some(Sum {
                data_points: numbers(),
                aggregation_temporality: CUMULATIVE,
                is_monotonic: family.kind == FamilyKind::Counter,
            });
        }
        FamilyKind::Histogram => {
            let data_points = family.points.iter().filter_map(|point| distribution(point, times)).collect();
            metric.histogram = Some(Histogram { data_points, aggregation_temporality: CUMULATIVE });
        }
    }
    metric
}

fn number(point: &MetricPoint, times: PointTimes) -> Option<NumberDataPoint> {
    let PointValue::Number(value) = point.value else { return None };
    Some(NumberDataPoint {
        start_time_unix_nano: times.start,
        time_unix_nano: times.now,
        as_double: Some(value),
        as_int: None,
        attributes: point.attributes.clone(),
    })
}

fn distribution(point: &MetricPoint, times: PointTimes) -> Option<HistogramDataPoint> {
    let PointValue::Histogram(Buckets { bounds, cumulative, sum }) = &point.value else { return None };
    let before = std::iter::once(0).chain(cumulative.iter().copied());
    let bucket_counts = cumulative.iter().zip(before).map(|(up_to, before)| up_to.saturating_sub(before));
    Some(HistogramDataPoint {
        start_time_unix_nano: times.start,
        time_unix_nano: times.now,
        count: cumulative.last().copied().unwrap_or(0),
        sum: Some(*sum),
        bucket_counts: bucket_counts.collect(),
        explicit_bounds: bounds.clone(),
        attributes: point.attributes.clone(),
    })
}

#[cfg(test)]
mod tests {
    use prost::Message as _;

    use super::*;
    use crate::exposition::parse;
    use crate::wire::KeyValue;

    fn origin() -> MetricsOrigin {
        MetricsOrigin {
            resource: Resource { attributes: vec![KeyValue::text("a", "b")] },
            scope: Scope { name: "m".to_owned(), version: String::new() },
            start: Timestamp::UNIX_EPOCH,
        }
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    /// The bytes were put together by hand from the field numbers and wire types of opentelemetry-proto.
    #[test]
    fn gauge_has_the_bytes_of_the_protocol() {
        let families = parse("# HELP g H\n# TYPE g gauge\ng{k=\"v\"} 1\n");
        let requests = requests(&origin(), families, at(0));
        #[rustfmt::skip]
        let expected = [
            0x0a, 0x32,                                     // resource_metrics (1), 50 bytes
              0x0a, 0x0a,                                   // resource (1), 10 bytes
                0x0a, 0x08,                                 // attributes (1), 8 bytes
                  0x0a, 0x01, b'a',                         // key (1)
                  0x12, 0x03, 0x0a, 0x01, b'b',             // value (2): string_value (1)
              0x12, 0x24,                                   // scope_metrics (2), 36 bytes
                0x0a, 0x03, 0x0a, 0x01, b'm',               // scope (1): name (1)
                0x12, 0x1d,                                 // metrics (2), 29 bytes
                  0x0a, 0x01, b'g',                         // name (1)
                  0x12, 0x01, b'H',                         // description (2)
                  0x2a, 0x15,                               // gauge (5), 21 bytes
                    0x0a, 0x13,                             // data_points (1), 19 bytes
                      0x21, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f,   // as_double (4), fixed64: 1.0
                      0x3a, 0x08,                           // attributes (7), 8 bytes
                        0x0a, 0x01, b'k',                   // key (1)
                        0x12, 0x03, 0x0a, 0x01, b'v',       // value (2): string_value (1)
        ];
        assert_eq!(requests[0].encode_to_vec(), expected);
    }

    #[test]
    fn histogram_has_the_bytes_of_the_protocol() {
        let text =
            "# TYPE h histogram\nh_bucket{le=\"0.5\"} 1\nh_bucket{le=\"+Inf\"} 3\nh_sum 2\nh_count 3\n";
        let requests = requests(&origin(), parse(text), at(1));
        let metric = &requests[0].resource_metrics[0].scope_metrics[0].metrics[0];
        #[rustfmt::skip]
        let expected = [
            0x0a, 0x01, b'h',                               // name (1)
            0x4a, 0x3b,                                     // histogram (9), 59 bytes
              0x0a, 0x37,                                   // data_points (1), 55 bytes
                0x19, 0x00, 0xca, 0x9a, 0x3b, 0, 0, 0, 0,   // time_unix_nano (3), fixed64: 10^9
                0x21, 3, 0, 0, 0, 0, 0, 0, 0,               // count (4), fixed64
                0x29, 0, 0, 0, 0, 0, 0, 0, 0x40,            // sum (5), double: 2.0
                0x32, 0x10,                                 // bucket_counts (6), packed: 1 and 2
                  1, 0, 0, 0, 0, 0, 0, 0,
                  2, 0, 0, 0, 0, 0, 0, 0,
                0x3a, 0x08, 0, 0, 0, 0, 0, 0, 0xe0, 0x3f,   // explicit_bounds (7), packed: 0.5
              0x10, 0x02,                                   // aggregation_temporality (2): cumulative
        ];
        assert_eq!(metric.encode_to_vec(), expected);
    }

    #[test]
    fn counters_are_cumulative_sums() {
        let requests = requests(&origin(), parse("# TYPE c_total counter\nc_total 7\n"), at(2));
        let metric = &requests[0].resource_metrics[0].scope_metrics[0].metrics[0];
        let sum = metric.sum.as_ref().unwrap();
        assert!(sum.is_monotonic && metric.gauge.is_none() && metric.histogram.is_none());
        assert_eq!(sum.aggregation_temporality, 2);
        let point = &sum.data_points[0];
        assert_eq!((point.as_double, point.time_unix_nano), (Some(7.0), 2_000_000_000));
    }

    #[test]
    fn large_pages_are_split() {
        let mut text = "# TYPE a gauge\na 1\n# TYPE b gauge\n".to_owned();
        for number in 0..2 * MAX_POINTS_PER_REQUEST {
            text.push_str(&format!("b{{n=\"{number}\"}} 1\n"));
        }
        let requests = requests(&origin(), parse(&text), at(2));
        let points = |request: &MetricsRequest| -> usize {
            let metrics = &request.resource_metrics[0].scope_metrics[0].metrics;
            metrics.iter().map(|metric| metric.gauge.as_ref().unwrap().data_points.len()).sum()
        };
        let counts: Vec<usize> = requests.iter().map(points).collect();
        assert_eq!(counts, [MAX_POINTS_PER_REQUEST, MAX_POINTS_PER_REQUEST, 1]);
    }
}
