//! The summary of a report in one or two sentences.

use super::page::{PageWorkload, ReportPage, RunTotals};
use super::words;

/// The totals of one run over all workloads. Values that cannot be added are those of the worst workload.
struct Total {
    pod_hours: f64,
    changes: u64,
    short_seconds: Option<f64>,
    unserved_share: Option<f64>,
}

pub(super) fn sentence(page: &ReportPage) -> String {
    let totals: Vec<Total> = (0..page.runs.len()).map(|run| Total::of(page, run)).collect();
    let any = page.workloads.iter().any(|workload| !workload.tracks.is_empty());
    match (totals.as_slice(), page.runs.as_slice(), page.workloads.as_slice()) {
        _ if !any => "Nothing was run.".to_owned(),
        ([total], _, [workload]) => alone(page, workload, total),
        ([total], ..) => together(page, total),
        ([first, second], [base, other], workloads) => {
            against(&base.name, first, &other.name, second, workloads.len() > 1)
        }
        _ => best(page, &totals),
    }
}

impl Total {
    fn of(page: &ReportPage, run: usize) -> Self {
        let totals = || page.workloads.iter().filter_map(|w| w.tracks.get(run)).map(|track| &track.totals);
        let most = |pick: fn(&RunTotals) -> Option<f64>| totals().filter_map(pick).reduce(f64::max);
        Self {
            pod_hours: totals().map(|f| f.pod_hours).sum(),
            changes: totals().map(|f| f.changes).sum(),
            short_seconds: most(|f| f.short_seconds),
            unserved_share: most(|f| f.unserved_share),
        }
    }

    fn cost(&self) -> String {
        let (hours, changes) =
            (words::plural_number(self.pod_hours, "pod-hour"), words::plural(self.changes, "change"));
        format!("{hours} and {changes}")
    }
}

/// One workload in one run.
fn alone(page: &ReportPage, workload: &PageWorkload, total: &Total) -> String {
    let Some(RunTotals { short_seconds, unserved_share, worst_reaction_seconds, short_at_end, .. }) =
        workload.tracks.first().map(|track| &track.totals)
    else {
        return "Nothing was run.".to_owned();
    };
    let served = match (short_seconds, worst_reaction_seconds) {
        (Some(short), Some(worst)) if *short > 0.0 => {
            let unserved = match unserved_share {
                Some(share) if *share > 0.0 => {
                    format!(", and {} of the load went unserved", words::percent(*share))
                }
                Some(_) => ", though no load was lost".to_owned(),
                None => String::new(),
            };
            let worst = words::length(*worst);
            let worst = match short_at_end {
                true => format!("the longest shortage took {worst} or more, as there was one at the end"),
                false => format!("the slowest reaction took {worst}"),
            };
            let (short, all) = (words::length(*short), words::length(page.seconds));
            format!("Ready pods could not keep up for {short} of {all}{unserved}; {worst}. ")
        }
        (Some(_), _) => "Ready pods kept up with the load all the time. ".to_owned(),
        (None, _) => String::new(),
    };
    format!("{served}It took {}.", total.cost())
}

/// Several workloads in one run.
fn together(page: &ReportPage, total: &Total) -> String {
    let worst = |pick: fn(&RunTotals) -> Option<f64>| {
        let known = page.workloads.iter().filter_map(|w| Some((w, pick(&w.tracks.first()?.totals)?)));
        known.reduce(|a, b| if b.1 > a.1 { b } else { a })
    };
    let mut text = match worst(|f| f.short_seconds) {
        Some((workload, short)) if short > 0.0 => {
            let (short, all) = (words::length(short), words::length(page.seconds));
            format!("{} was short of pods longest: {short} of {all}. ", workload.name)
        }
        Some(_) => "Ready pods of all workloads kept up with the load all the time. ".to_owned(),
        None => String::new(),
    };
    if let Some((workload, share)) = worst(|f| f.unserved_share).filter(|(_, share)| *share > 0.0) {
        let share = words::percent(share);
        text += &format!("{} left the largest share of its load unserved: {share}. ", workload.name);
    }
    text + &format!("Together they took {}.", total.cost())
}

/// Two runs.
fn against(base: &str, first: &Total, other: &str, second: &Total, several: bool) -> String {
    let hours = |total: &Total| words::number(total.pod_hours);
    let pods = match relative(first.pod_hours, second.pod_hours) {
        None => format!("as many pod-hours as {base} ({})", hours(first)),
        Some(change) => {
            format!("{change} pod-hours than {base} ({} instead of {})", hours(second), hours(first))
        }
    };
    let (at_most, up_to) = if several { ("at most ", "up to ") } else { ("", "") };
    let mut text = format!("{other} took {pods}");
    if let (Some(a), Some(b)) = (first.unserved_share, second.unserved_share) {
        text += &match (words::percent(a), words::percent(b)) {
            (a, b) if a == b => format!(", left the same share of the load unserved ({at_most}{b})"),
            (a, b) => format!(", left {at_most}{b} of the load unserved instead of {a}"),
        };
    }
    if let (Some(a), Some(b)) = (first.short_seconds, second.short_seconds) {
        text += &match (words::length(a), words::length(b)) {
            (a, b) if a == b => format!(", was short of pods for as long ({up_to}{b})"),
            (a, b) => format!(", was short of pods for {up_to}{b} instead of {a}"),
        };
    }
    text + &format!(", and made {} instead of {}.", words::plural(second.changes, "change"), first.changes)
}

/// `12 % fewer`; absent if it rounds to zero.
fn relative(base: f64, other: f64) -> Option<String> {
    let change = (other - base) / base * 100.0;
    let (size, word) = (change.abs(), if change < 0.0 { "fewer" } else { "more" });
    (change.is_finite() && size >= 0.05).then(|| format!("{} % {word}", words::number(size)))
}

/// More than two runs.
fn best(page: &ReportPage, totals: &[Total]) -> String {
    let least = |what: &str, value: fn(&Total) -> Option<f64>, show: fn(f64) -> String| {
        let known = || totals.iter().filter_map(value);
        let lowest = known().reduce(f64::min)?;
        if known().all(|value| value == lowest) {
            return Some(format!("{what}: the same in all runs ({}).", show(lowest)));
        }
        let names = page.runs.iter().zip(totals).filter(|(_, total)| value(total) == Some(lowest));
        let names: Vec<&str> = names.map(|(run, _)| run.name.as_str()).collect();
        Some(format!("{what}: {} ({}).", names.join(", "), show(lowest)))
    };
    let parts = [
        least("Fewest pod-hours", |t| Some(t.pod_hours), words::number),
        least("Least load unserved", |t| t.unserved_share, words::percent),
        least("Shortest time short of pods", |t| t.short_seconds, words::length),
        least("Fewest changes", |t| Some(t.changes as f64), words::number),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
}
