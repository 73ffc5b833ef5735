//! Decisions on a cluster over a span of time.

use api::decisions::DecisionRecord;
use api::table::Table;
use engine::ScaleOutcome as Became;
use engine::explain::{clock, zone_name};
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use super::WhyArgs;
use crate::failure::CommandResult;
use crate::live::moment::{precise, stamp};
use crate::live::page::Page;
use crate::output::{self, Format};

/// A decision, made once or several times in a row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DecisionLine {
    pub(crate) at: Timestamp,
    pub(crate) last: Timestamp,
    pub(crate) times: u64,
    pub(crate) autoscaler: String,
    /// The count that was found; absent if the scale could not be read.
    pub(crate) from: Option<i32>,
    /// The count that was decided; absent if the scale could not be read.
    pub(crate) to: Option<i32>,
    pub(crate) recommended: Option<i32>,
    pub(crate) changed: bool,
    pub(crate) why: String,
}

impl DecisionLine {
    pub(crate) fn of(record: &DecisionRecord) -> Self {
        let decision = &record.decision;
        let scale = decision.scale.as_ref();
        Self {
            at: record.first,
            last: record.last,
            times: record.times,
            autoscaler: record.metadata.name.replacen('.', "/", 1),
            from: scale.map(|scale| scale.spec_replicas.get()),
            // Without a scale, the decision has zero in this place, which nobody wanted.
            to: scale.map(|_| decision.desired.get()),
            recommended: decision.recommendation.as_ref().map(|r| r.replicas.get()),
            changed: decision.outcome == Became::Scaled,
            why: record.sentence(),
        }
    }

    /// `1 → 4`, or `4`; a change that was not made is in brackets, and an unknown count is `-`.
    pub(crate) fn replicas(&self) -> String {
        let (Some(from), Some(to)) = (self.from, self.to) else { return "-".to_owned() };
        match (from == to, self.changed) {
            (true, _) => from.to_string(),
            (false, true) => format!("{from} → {to}"),
            (false, false) => format!("{from} ({to})"),
        }
    }
}

pub(crate) fn print(
    args: &WhyArgs,
    records: &[DecisionRecord],
    until: Timestamp,
    since: SignedDuration,
    now: Timestamp,
) -> CommandResult {
    let from = until.checked_sub(since).unwrap_or(Timestamp::MIN);
    let mut lines: Vec<DecisionLine> =
        records.iter().filter(|r| r.last >= from && r.first <= until).map(DecisionLine::of).collect();
    lines.sort_by_key(|line| line.at);
    if matches!(args.output, Format::Json | Format::Yaml) {
        return output::value(args.output, &lines);
    }
    if lines.is_empty() {
        return output::text_out("no decision in that time\n");
    }
    output::text_out(&Page::stdout().table(&table(&lines, now)))
}

fn table(lines: &[DecisionLine], now: Timestamp) -> Table {
    let several = lines.iter().any(|line| lines.first().is_some_and(|f| f.autoscaler != line.autoscaler));
    let time = format!("Time ({})", zone_name(now));
    let mut columns = vec![time.as_str(), "Last", "Times"];
    columns.extend(several.then_some("Autoscaler"));
    columns.extend(["Replicas", "Wanted", "Why"]);
    let mut table = Table::new(columns);
    for (place, line) in lines.iter().enumerate() {
        let last = if line.times > 1 { stamp(line.last, now) } else { String::new() };
        // Passes of the same second are told apart by their milliseconds.
        let neighbours = [place.checked_sub(1), Some(place + 1)];
        let same = neighbours
            .iter()
            .flatten()
            .filter_map(|place| lines.get(*place))
            .any(|other| other.at.as_second() == line.at.as_second());
        let time = if same { precise(line.at, now) } else { stamp(line.at, now) };
        let mut row = vec![time, last, line.times.to_string()];
        row.extend(several.then(|| line.autoscaler.clone()));
        row.push(line.replicas());
        row.push(line.recommended.map_or_else(|| "-".to_owned(), |n| n.to_string()));
        // The numbers of a repeated decision are those of its last pass.
        row.push(if line.times > 1 {
            format!("{} (at {})", line.why, clock(line.last))
        } else {
            line.why.clone()
        });
        table.rows.push(row);
    }
    table
}

#[cfg(test)]
mod tests {
    use engine::Replicas;

    use super::*;
    use crate::live::sample::{at, record};

    #[test]
    fn count_of_an_unreadable_scale_is_unknown_and_not_zero() {
        let mut lost = record("2026-01-05T09:15:00Z", 4, &[100; 4]);
        (lost.decision.scale, lost.decision.desired) = (None, Replicas::ZERO);
        let line = DecisionLine::of(&lost);
        assert_eq!(line.replicas(), "-");
        let json = serde_json::to_value(&line).unwrap();
        assert_eq!((&json["from"], &json["to"]), (&serde_json::Value::Null, &serde_json::Value::Null));
    }

    #[test]
    fn repeated_decisions_have_a_duration() {
        let mut calm = record("2026-01-05T09:15:00Z", 4, &[100; 4]);
        calm.times = 4;
        calm.last = at("2026-01-05T09:15:45Z");
        let lines = [DecisionLine::of(&record("2026-01-05T09:14:45Z", 1, &[610])), DecisionLine::of(&calm)];
        assert_eq!(
            table(&lines, at("2026-01-05T10:00:00Z")).to_string(),
            "\
TIME (UTC)   LAST       TIMES   REPLICAS   WANTED   WHY
09:14:45                1       1 → 4      7        cpu wants 7; scale-up limit is 4 this time
09:15:00     09:15:45   4       4          4        cpu 50 % of 50 %: close enough (at 09:15:45)
"
        );
    }
}
