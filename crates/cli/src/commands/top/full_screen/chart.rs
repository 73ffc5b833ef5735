//! Replicas over time, and each metric against its target, drawn with characters.

use api::decisions::DecisionRecord;
use engine::ScaleOutcome;
use engine::explain::clock;
use jiff::{SignedDuration, Timestamp};
use sim::recording::{MetricTrack, MetricUnit, current_value};

/// The longest time that is shown.
const MAX_CHART_SPAN: SignedDuration = SignedDuration::from_hours(1);
/// A column that is filled from below, by eighths.
const BAR_EIGHTHS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// A metric that is at its target.
const AT_TARGET: char = '▄';
/// The wanted count where it is above the replicas.
const DESIRED_COUNT_MARK: char = '╌';
/// No replicas, in contrast to an unknown count.
const ZERO_MARK: char = '_';

/// Replicas from a time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ReplicaPoint {
    pub(super) at: Timestamp,
    /// Absent if the scale could not be read.
    pub(super) replicas: Option<i32>,
    /// What the metrics proposed.
    pub(super) wanted: i32,
}

impl ReplicaPoint {
    /// The count that a decision left.
    pub(super) fn of(record: &DecisionRecord) -> Self {
        let decision = &record.decision;
        let replicas =
            if decision.outcome == ScaleOutcome::Scaled { decision.desired } else { decision.current() };
        let wanted = decision.recommendation.as_ref().map_or(decision.desired, |found| found.replicas);
        Self {
            at: record.first,
            replicas: decision.scale.as_ref().map(|_| replicas.get()),
            wanted: wanted.get(),
        }
    }
}

/// One metric over time.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct MetricTrend {
    track: MetricTrack,
    target: f64,
    /// The value from a time on; none if it is missing, which is not zero.
    values: Vec<(Timestamp, Option<f64>)>,
}

impl MetricTrend {
    /// The metrics of the last record in all of them, as far as they have a target.
    pub(super) fn of(records: &[DecisionRecord]) -> Vec<Self> {
        let metrics = records.last().into_iter().flat_map(|record| &record.spec.metrics);
        let trend = |(index, track): (usize, MetricTrack)| {
            let value = |record: &DecisionRecord| {
                let metric = record.spec.metrics.get(index)?;
                let is_same = MetricTrack::of(metric).label == track.label;
                let value = record.decision.evaluations.get(index).map(current_value);
                value.filter(|value| is_same && value.is_finite())
            };
            let values = records.iter().map(|record| (record.first, value(record))).collect();
            let target = track.target.filter(|target| *target > 0.0)?;
            Some(Self { track, target, values })
        };
        metrics.map(MetricTrack::of).enumerate().filter_map(trend).collect()
    }

    fn value_at(&self, at: Timestamp) -> Option<f64> {
        let index = self.values.partition_point(|(from, _)| *from <= at).checked_sub(1)?;
        self.values.get(index)?.1
    }

    /// What it is now: `cpu 75 % of 50 %`.
    fn title(&self, until: Timestamp) -> String {
        let unit = if self.track.unit == MetricUnit::Percent { " %" } else { "" };
        let now = self
            .value_at(until)
            .map_or_else(|| "missing".to_owned(), |value| format!("{}{unit}", short(value)));
        format!("{} {now} of {}{unit} ({AT_TARGET} is the target)", self.track.label, short(self.target))
    }

    /// The character of a time: half of the height is the target.
    fn cell(&self, at: Timestamp) -> char {
        let Some(value) = self.value_at(at) else { return ' ' };
        // The value is between 0 and 8.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let eighths = (value / self.target * 4.0).round().clamp(0.0, 8.0) as usize;
        if eighths == 0 { ZERO_MARK } else { BAR_EIGHTHS.get(eighths).copied().unwrap_or(' ') }
    }
}

/// At most two decimals.
fn short(value: f64) -> String {
    let rounded = (value * 100.0).round() / 100.0;
    rounded.to_string()
}

/// The chart: `height` lines of columns and one of times, then a title and a line for each metric, each at most `width` wide. The points are
/// sorted by time.
pub(super) fn lines(
    points: &[ReplicaPoint],
    trends: &[MetricTrend],
    until: Timestamp,
    width: usize,
    height: usize,
) -> Vec<String> {
    let Some(first) = points.first() else { return Vec::new() };
    let since = first.at.max(until.checked_sub(MAX_CHART_SPAN).unwrap_or(first.at));
    let top = points.iter().map(|point| point.wanted.max(point.replicas.unwrap_or(0))).max();
    let top = top.unwrap_or(1).max(1);
    let label_width = top.to_string().len();
    let columns = width.saturating_sub(label_width + 2);
    let times: Vec<Timestamp> = (0..columns).map(|column| moment(since, until, column, columns)).collect();
    let shown: Vec<Option<&ReplicaPoint>> = times.iter().map(|at| in_force(points, *at)).collect();
    let mut lines = Vec::new();
    for row in 0..height {
        let label = match row {
            0 => top.to_string(),
            _ if row + 1 == height => "0".to_owned(),
            _ => String::new(),
        };
        let cells: String = shown.iter().map(|point| cell(*point, top, row, height)).collect();
        lines.push(format!("{label:>label_width$} │{}", cells.trim_end()));
    }
    let (from, to) = (clock(since), clock(until));
    let gap = columns.saturating_sub(from.chars().count());
    lines.push(format!("{:label_width$}  {from}{to:>gap$}", ""));
    for trend in trends {
        let title: String = trend.title(until).chars().take(columns).collect();
        let cells: String = times.iter().map(|at| trend.cell(*at)).collect();
        lines.push(format!("{:label_width$}  {title}", ""));
        lines.push(format!("{:label_width$} │{}", "", cells.trim_end()));
    }
    lines
}

/// The time at the end of a column.
fn moment(since: Timestamp, until: Timestamp, column: usize, columns: usize) -> Timestamp {
    let span = until.duration_since(since).as_secs_f64();
    let part = (column + 1) as f64 / columns.max(1) as f64;
    let passed = SignedDuration::try_from_secs_f64(span * part).unwrap_or(SignedDuration::ZERO);
    since.checked_add(passed).unwrap_or(until)
}

/// The last point that is not after a time.
fn in_force(points: &[ReplicaPoint], at: Timestamp) -> Option<&ReplicaPoint> {
    points.partition_point(|point| point.at <= at).checked_sub(1).and_then(|index| points.get(index))
}

/// The character of one column in one row; row 0 is at the top.
fn cell(point: Option<&ReplicaPoint>, top: i32, row: usize, height: usize) -> char {
    let Some((point, replicas)) = point.and_then(|point| Some((point, point.replicas?))) else { return ' ' };
    let from_below = height.saturating_sub(row + 1) as f64;
    // How many rows a count fills.
    let rows = |count: i32| f64::from(count) / f64::from(top) * height as f64;
    // The value is between 0 and 8.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let eighths = ((rows(replicas) - from_below) * 8.0).round().clamp(0.0, 8.0) as usize;
    let wanted = rows(point.wanted) - from_below;
    if eighths == 0 && point.wanted > replicas && wanted > 0.0 && wanted <= 1.0 {
        return DESIRED_COUNT_MARK;
    }
    if replicas == 0 && row + 1 == height {
        return ZERO_MARK;
    }
    BAR_EIGHTHS.get(eighths).copied().unwrap_or(' ')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::sample::{at, record_of};

    fn point(time: &str, replicas: Option<i32>, wanted: i32) -> ReplicaPoint {
        ReplicaPoint { at: at(time), replicas, wanted }
    }

    #[test]
    fn replicas_are_steps_and_wanted_counts_are_dashes() {
        let points = [
            point("2026-01-05T09:00:00Z", Some(2), 8),
            point("2026-01-05T09:15:00Z", Some(8), 8),
            point("2026-01-05T09:30:00Z", None, 8),
            point("2026-01-05T09:45:00Z", Some(0), 0),
        ];
        let lines = lines(&points, &[], at("2026-01-05T10:00:00Z"), 20 + 3, 4);
        assert_eq!(
            lines,
            [
                "8 │╌╌╌╌█████",
                "  │    █████",
                "  │    █████",
                "0 │█████████     ______",
                "   09:00:00    10:00:00",
            ]
        );
    }

    #[test]
    fn nothing_is_drawn_without_decisions() {
        assert!(lines(&[], &[], at("2026-01-05T10:00:00Z"), 80, 8).is_empty());
    }

    #[test]
    fn metrics_are_drawn_against_their_target() {
        let records = [
            record_of("web", "2026-01-05T09:00:00Z", 4, &[50; 4]),
            record_of("web", "2026-01-05T09:20:30Z", 4, &[100; 4]),
            record_of("web", "2026-01-05T09:40:30Z", 4, &[]),
        ];
        let draw = |until: &str| {
            let points: Vec<ReplicaPoint> = records.iter().map(ReplicaPoint::of).collect();
            lines(&points, &MetricTrend::of(&records), at(until), 60 + 3, 1).split_off(2)
        };
        let bars = |title: &str, bars: &str| vec![format!("   {title}"), format!("  │{bars}")];
        // 50m and 100m of the requested 200m, and then nothing.
        let (half, full) = ("▂".repeat(20), "▄".repeat(20));
        assert_eq!(
            draw("2026-01-05T10:00:00Z"),
            bars("cpu missing of 50 % (▄ is the target)", &format!("{half}{full}"))
        );
        let title = draw("2026-01-05T09:30:00Z").swap_remove(0);
        assert_eq!(title, "   cpu 50 % of 50 % (▄ is the target)");
    }
}
