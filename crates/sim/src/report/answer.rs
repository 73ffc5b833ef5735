//! The summary section: one sentence, then the table of totals.

use super::page::{ReportPage, RunTotals};
use super::{HtmlText, Swatch, meanings, sentence, words};

/// One column of the table of totals.
struct SumColumn {
    head: &'static str,
    meaning: &'static str,
    /// The formatted value; absent if it is not known.
    show: fn(&RunTotals) -> Option<String>,
    /// The value by which runs are compared, lower being better; absent if runs are not compared by it.
    rank: fn(&RunTotals) -> Option<f64>,
}

const COLUMNS: [SumColumn; 9] = [
    SumColumn {
        head: "pod-hours",
        meaning: "hours of all pods that existed, ready or not",
        show: |f| Some(words::number(f.pod_hours)),
        rank: |f| Some(f.pod_hours),
    },
    SumColumn {
        head: "load unserved",
        meaning: "share of the work that arrived and was lost",
        show: |f| f.unserved_share.map(words::percent),
        rank: |f| f.unserved_share,
    },
    SumColumn {
        head: "short of pods",
        meaning: "time in which more work arrived than ready pods could do",
        show: |f| f.short_seconds.map(words::length),
        rank: |f| f.short_seconds,
    },
    SumColumn {
        head: "worst reaction",
        meaning: "longest time until ready pods could do the work again",
        show: |f| {
            let open = if f.short_at_end { " and more" } else { "" };
            f.worst_reaction_seconds.map(|seconds| words::length(seconds) + open)
        },
        rank: |f| f.worst_reaction_seconds,
    },
    SumColumn {
        head: "above target",
        meaning: "time in which a metric was above its target by more than the tolerance",
        show: |f| f.above_target_seconds.map(words::length),
        rank: |f| f.above_target_seconds,
    },
    SumColumn {
        head: "changes",
        meaning: "how often the replica count changed",
        show: |f| Some(words::number(f.changes as f64)),
        rank: |f| Some(f.changes as f64),
    },
    SumColumn {
        head: "replicas",
        meaning: "mean, and fewest to most, of the replicas asked for",
        show: |f| {
            Some(format!("{} ({} – {})", words::number(f.mean_replicas), f.min_replicas, f.max_replicas))
        },
        rank: |_| None,
    },
    SumColumn {
        head: "capacity used",
        meaning: "share of what ready pods could do that was done",
        show: |f| f.used_share.map(words::percent),
        rank: |_| None,
    },
    SumColumn {
        head: "most waiting",
        meaning: "most units of work that waited",
        show: |f| f.max_backlog.map(words::number),
        rank: |f| f.max_backlog,
    },
];

pub(super) fn write(out: &mut String, page: &ReportPage) {
    *out += "<section id=\"answer\">\n<h2>Answer</h2>\n";
    *out += &format!("<p class=\"answer\">{}</p>\n", HtmlText(&sentence::sentence(page)));
    if page.workloads.iter().any(|workload| !workload.tracks.is_empty()) {
        table(out, page);
    }
    *out += "</section>\n";
}

fn table(out: &mut String, page: &ReportPage) {
    let compared = page.runs.len() > 1;
    let all = || page.workloads.iter().flat_map(|workload| &workload.tracks).map(|track| &track.totals);
    let columns: Vec<&SumColumn> =
        COLUMNS.iter().filter(|column| all().any(|f| (column.show)(f).is_some())).collect();
    *out += "<div class=\"wide\"><table class=\"cards figures\">\n<thead><tr><th scope=\"col\">workload</th>";
    if compared {
        *out += "<th scope=\"col\">run</th>";
    }
    for column in &columns {
        *out += &format!("<th scope=\"col\" class=\"n\" title=\"{}\">{}</th>", column.meaning, column.head);
    }
    *out += "</tr></thead>\n";
    for workload in &page.workloads {
        *out += "<tbody>\n";
        for (index, track) in workload.tracks.iter().enumerate() {
            *out +=
                &format!("<tr><th scope=\"row\" data-label=\"workload\">{}</th>", HtmlText(&workload.name));
            if compared {
                let name = page.runs.get(index).map_or("", |run| &run.name);
                *out += &format!("<td data-label=\"run\">{}{}</td>", Swatch(index), HtmlText(name));
            }
            for column in &columns {
                let text = (column.show)(&track.totals).unwrap_or_else(|| "–".to_owned());
                let best = compared && is_best(column, index, workload.tracks.iter().map(|t| &t.totals));
                let (class, mark) =
                    if best { ("n best", "<span class=\"star\" title=\"best\">*</span>") } else { ("n", "") };
                *out += &format!(
                    "<td class=\"{class}\" data-label=\"{}\">{}{mark}</td>",
                    column.head,
                    HtmlText(&text)
                );
            }
            *out += "</tr>\n";
        }
        *out += "</tbody>\n";
    }
    *out += "</table></div>\n";
    let best = compared.then_some(("*", "the lowest of the runs"));
    meanings(out, columns.iter().map(|column| (column.head, column.meaning)).chain(best));
}

/// Whether the value of run `index` is the lowest, and not all values are equal.
fn is_best<'a>(column: &SumColumn, index: usize, totals: impl Iterator<Item = &'a RunTotals>) -> bool {
    let ranks: Vec<Option<f64>> = totals.map(column.rank).collect();
    let known = || ranks.iter().flatten().copied();
    let lowest = known().fold(f64::INFINITY, f64::min);
    let highest = known().fold(f64::NEG_INFINITY, f64::max);
    lowest < highest && ranks.get(index).copied().flatten() == Some(lowest)
}
