//! The first section: autoscalers and their load.

use super::page::{PageAutoscaler, ReportPage};
use super::{HtmlText, Swatch, words};

pub(super) fn write(out: &mut String, page: &ReportPage) {
    *out += &format!("<header>\n<h1>{}</h1>\n", HtmlText(&page.title));
    let length = words::length(page.seconds);
    *out += &format!("<p class=\"when\">{length} of virtual time · {}</p>\n", words::interval(page));
    for sentence in &page.question {
        *out += &format!("<p>{}</p>\n", HtmlText(sentence));
    }
    specs(out, page);
    *out += "</header>\n";
}

/// One row per autoscaler and run. Runs with the same spec share a row.
fn specs(out: &mut String, page: &ReportPage) {
    let compared = page.runs.len() > 1;
    let differ = compared && page.runs.iter().any(|run| !run.about.is_empty());
    let mut rows = String::new();
    for workload in &page.workloads {
        for (index, track) in workload.tracks.iter().enumerate() {
            let run = page.runs.get(index);
            for autoscaler in &track.autoscalers {
                rows += "<tr>";
                if compared {
                    let name = run.map_or("", |run| &run.name);
                    rows += &format!(
                        "<th scope=\"row\" data-label=\"run\">{}{}</th>",
                        Swatch(index),
                        HtmlText(name)
                    );
                }
                rows += &format!("<td data-label=\"autoscaler\">{}</td>", HtmlText(&name(autoscaler)));
                rows += &format!("<td data-label=\"replicas\">{} – {}</td>", autoscaler.min, autoscaler.max);
                rows += &format!(
                    "<td class=\"text\" data-label=\"targets\">{}</td>",
                    HtmlText(&targets(autoscaler))
                );
                if differ {
                    let about = run.map_or("", |run| &run.about);
                    rows += &format!("<td class=\"text\" data-label=\"differs in\">{}</td>", HtmlText(about));
                }
                rows += "</tr>\n";
            }
        }
    }
    if rows.is_empty() {
        return;
    }
    let run = if compared { "<th scope=\"col\">run</th>" } else { "" };
    let about = if differ { "<th scope=\"col\">differs in</th>" } else { "" };
    *out += "<div class=\"wide\"><table class=\"cards\">\n<thead><tr>";
    *out += run;
    *out += "<th scope=\"col\">autoscaler</th><th scope=\"col\">replicas</th><th scope=\"col\">targets</th>";
    *out += &format!("{about}</tr></thead>\n<tbody>\n{rows}</tbody></table></div>\n");
}

fn name(autoscaler: &PageAutoscaler) -> String {
    let only = if autoscaler.dry_run { " (dry run)" } else { "" };
    format!("{}{only}", autoscaler.name)
}

fn targets(autoscaler: &PageAutoscaler) -> String {
    let each = autoscaler.metrics.iter().map(|metric| match metric.target {
        Some(target) => format!("{} {}", metric.name, words::amount(metric.unit, target)),
        None => format!("{} without a usable target", metric.name),
    });
    each.collect::<Vec<_>>().join(", ")
}
