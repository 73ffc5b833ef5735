//! The tables of changes with their reasons, of limits and of problems.

use super::page::{Limit, LimitSum, PageAutoscaler, PageChange, ReportPage};
use super::{HtmlText, Swatch, meanings, words};

/// Maximum number of listed changes, so that the page can be sent by mail.
const MAX_LISTED_CHANGES: usize = 10_000;
/// Tables with more rows scroll on a screen.
const MAX_UNSCROLLED_ROWS: usize = 40;
/// Tables with more rows are laid out only when they become visible.
const MAX_EAGER_ROWS: usize = 500;

/// One change with its run and autoscaler.
struct ChangeRow<'a> {
    /// Indexes of workload, run, autoscaler and change, by which the script finds the mark in the chart.
    place: [usize; 4],
    autoscaler: &'a str,
    change: &'a PageChange,
}

pub(super) fn write(out: &mut String, page: &ReportPage) {
    *out += "<section id=\"decisions\">\n<h2>Every change</h2>\n";
    let rows = rows(page);
    if rows.is_empty() {
        *out += "<p>The replica count never changed.</p>\n";
    } else {
        let made: u64 = page.workloads.iter().flat_map(|w| &w.tracks).map(|track| track.totals.changes).sum();
        if made > rows.len() as u64 {
            let (first, all) = (words::number(rows.len() as f64), words::plural(made, "change"));
            *out += &format!("<p>The first {first} of {all}.</p>\n");
        }
        changes(out, page, &rows);
    }
    *out += "</section>\n";
    limits(out, page);
    problems(out, page);
}

fn autoscalers(page: &ReportPage) -> impl Iterator<Item = ([usize; 3], &PageAutoscaler)> {
    page.workloads.iter().enumerate().flat_map(|(w, workload)| {
        workload.tracks.iter().enumerate().flat_map(move |(t, track)| {
            track.autoscalers.iter().enumerate().map(move |(a, autoscaler)| ([w, t, a], autoscaler))
        })
    })
}

fn rows(page: &ReportPage) -> Vec<ChangeRow<'_>> {
    let mut rows: Vec<ChangeRow<'_>> = autoscalers(page)
        .flat_map(|([w, t, a], autoscaler)| {
            autoscaler.changes.iter().enumerate().map(move |(c, change)| ChangeRow {
                place: [w, t, a, c],
                autoscaler: &autoscaler.name,
                change,
            })
        })
        .collect();
    rows.sort_by(|a, b| a.change.at.total_cmp(&b.change.at));
    rows.truncate(MAX_LISTED_CHANGES);
    rows
}

fn changes(out: &mut String, page: &ReportPage, rows: &[ChangeRow<'_>]) {
    let compared = page.runs.len() > 1;
    let several = autoscalers(page)
        .any(|(_, autoscaler)| Some(autoscaler.name.as_str()) != rows.first().map(|r| r.autoscaler));
    let width = |pick: fn(&PageChange) -> i32| {
        rows.iter().map(|r| pick(r.change).to_string().len()).max().unwrap_or(1)
    };
    let (from_width, to_width) = (width(|c| c.from), width(|c| c.to));
    *out += &format!("{}<table class=\"changes\">\n", frame(rows.len(), "Every change"));
    *out += "<thead><tr><th scope=\"col\">time (UTC)</th>";
    if compared {
        *out += "<th scope=\"col\">run</th>";
    }
    if several {
        *out += "<th scope=\"col\">autoscaler</th>";
    }
    *out += "<th scope=\"col\">replicas</th><th scope=\"col\">why</th><th scope=\"col\">limit</th></tr></thead>\n<tbody>\n";
    for ChangeRow { place: [w, t, a, c], autoscaler, change } in rows {
        let time = words::moment(page, change.at);
        *out += &format!(
            "<tr data-change=\"{w}.{t}.{a}.{c}\"><td class=\"time\"><a href=\"#w{w}\">{time}</a></td>"
        );
        if compared {
            let name = page.runs.get(*t).map_or("", |run| &run.name);
            *out += &format!("<td class=\"of\">{}{}</td>", Swatch(*t), HtmlText(name));
        }
        if several {
            *out += &format!("<td class=\"of\">{}</td>", HtmlText(autoscaler));
        }
        let (from, to) = (change.from, change.to);
        let sign = if to > from { "▲" } else { "▼" };
        *out += &format!(
            "<td class=\"step\">{from:>from_width$} → {to:<to_width$} <span class=\"sign\">{sign}</span></td>"
        );
        *out += &format!("<td class=\"why\">{}</td>", HtmlText(&change.why));
        *out += &format!("<td class=\"limit\">{}</td></tr>\n", HtmlText(&limit(change)));
    }
    *out += "</tbody></table></div>\n";
}

/// `rate limit (wanted 7)`.
fn limit(change: &PageChange) -> String {
    match (change.limit, change.wanted.filter(|wanted| *wanted != change.to)) {
        (Some(limit), Some(wanted)) => format!("{} (wanted {wanted})", limit.label()),
        (Some(limit), None) => limit.label().to_owned(),
        (None, _) => String::new(),
    }
}

/// How often and how long each limit applied.
fn limits(out: &mut String, page: &ReportPage) {
    let mut rows = String::new();
    for (place, autoscaler) in autoscalers(page) {
        for LimitSum { times, seconds, longest } in &autoscaler.limit_sums {
            rows += &format!(
                "<tr><td data-label=\"autoscaler\">{}</td><th scope=\"row\" data-label=\"limit\">{}</th>\
                 <td class=\"n\" data-label=\"times\">{}</td><td class=\"n\" data-label=\"in all\">{}</td>\
                 <td data-label=\"longest\">{} – {} ({})</td><td class=\"why\" data-label=\"then\">{}</td></tr>\n",
                HtmlText(&autoscaler_label(page, place, autoscaler)),
                longest.limit.label(),
                words::number(*times as f64),
                words::length(*seconds),
                words::moment(page, longest.from),
                words::moment(page, longest.to),
                words::length(longest.to - longest.from),
                HtmlText(&longest.why),
            );
        }
    }
    *out += "<section id=\"limits\">\n<h2>Limits that applied</h2>\n";
    if rows.is_empty() {
        *out += "<p>None: every count was the one that metrics asked for.</p>\n";
    } else {
        *out += "<div class=\"wide\"><table class=\"cards\">\n<thead><tr><th scope=\"col\">autoscaler</th>\
                 <th scope=\"col\">limit</th><th scope=\"col\" class=\"n\">times</th>\
                 <th scope=\"col\" class=\"n\">in all</th><th scope=\"col\">longest</th>\
                 <th scope=\"col\">then</th></tr></thead>\n";
        *out += &format!("<tbody>\n{rows}</tbody></table></div>\n");
        let applied = |limit: &Limit| {
            autoscalers(page).any(|(_, a)| a.limit_sums.iter().any(|sum| sum.longest.limit == *limit))
        };
        meanings(out, Limit::ALL.into_iter().filter(applied).map(|limit| (limit.label(), limit.meaning())));
    }
    *out += "</section>\n";
}

/// The table of problems, with the texts of the events.
fn problems(out: &mut String, page: &ReportPage) {
    let mut rows = String::new();
    for (place, autoscaler) in autoscalers(page) {
        for problem in &autoscaler.problems {
            rows += &format!(
                "<tr><td data-label=\"autoscaler\">{}</td><td data-label=\"when\">{} – {}</td>\
                 <td class=\"n\" data-label=\"times\">{}</td><th scope=\"row\" data-label=\"event\">{}</th>\
                 <td class=\"why\" data-label=\"says\">{}</td></tr>\n",
                HtmlText(&autoscaler_label(page, place, autoscaler)),
                words::moment(page, problem.from),
                words::moment(page, problem.to),
                words::number(problem.times as f64),
                HtmlText(&problem.reason),
                HtmlText(&problem.message),
            );
        }
    }
    if !rows.is_empty() {
        *out += "<section id=\"problems\">\n<h2>What went wrong</h2>\n";
        *out += &frame(rows.lines().count(), "What went wrong");
        *out += "<table class=\"cards\">\n<thead><tr><th scope=\"col\">autoscaler</th><th scope=\"col\">when</th>\
                 <th scope=\"col\" class=\"n\">times</th><th scope=\"col\">event</th><th scope=\"col\">says</th></tr></thead>\n";
        *out += &format!("<tbody>\n{rows}</tbody></table></div>\n</section>\n");
    }
}

/// The opening tag around a table with this many rows.
fn frame(rows: usize, name: &str) -> String {
    let class = match rows {
        _ if rows > MAX_EAGER_ROWS => "wide long huge",
        _ if rows > MAX_UNSCROLLED_ROWS => "wide long",
        _ => return "<div class=\"wide\">".to_owned(),
    };
    format!("<div class=\"{class}\" tabindex=\"0\" role=\"region\" aria-label=\"{name}\">")
}

/// Name of the autoscaler, with that of its run in comparisons.
fn autoscaler_label(page: &ReportPage, [_, run, _]: [usize; 3], autoscaler: &PageAutoscaler) -> String {
    let run = page.runs.get(run).filter(|_| page.runs.len() > 1);
    run.map_or_else(|| autoscaler.name.clone(), |run| format!("{}: {}", run.name, autoscaler.name))
}
