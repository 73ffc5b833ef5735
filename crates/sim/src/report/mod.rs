//! A report about one run or a comparison of runs: one self-contained HTML page.

mod answer;
mod convert;
mod data;
mod decisions;
mod digest;
mod limit_spans;
pub mod page;
mod question;
mod recorder;
mod reproduce;
mod sentence;
#[cfg(test)]
mod tests;
mod thin;
mod values;
mod words;

use std::fmt;

use api::text::HtmlText;

pub use convert::FinishedRun;
pub use page::ReportPage;
pub use recorder::ReportRecorder;

const SCRIPT: &str = include_str!("page.js");
const STYLE: &str = include_str!("page.css");
const CHARTS_SCRIPT: &str = include_str!("vendor/uPlot.iife.min.js");
const CHARTS_STYLE: &str = include_str!("vendor/uPlot.min.css");
const CHARTS_LICENSE: &str = include_str!("vendor/LICENSE.uPlot");

/// The page as HTML. The same page gives the same bytes.
pub fn html(page: &ReportPage) -> String {
    let mut out = String::new();
    head(&mut out, page);
    question::write(&mut out, page);
    answer::write(&mut out, page);
    charts(&mut out, page);
    decisions::write(&mut out, page);
    values::write(&mut out, page);
    reproduce::write(&mut out, page);
    tail(&mut out, page);
    out
}

fn head(out: &mut String, page: &ReportPage) {
    // The policy allows only these scripts and styles and no requests, whatever the data contains.
    let policy = format!(
        "default-src 'none'; script-src {} {}; style-src {} {}; base-uri 'none'; form-action 'none'",
        digest::allow(CHARTS_SCRIPT),
        digest::allow(SCRIPT),
        digest::allow(CHARTS_STYLE),
        digest::allow(STYLE),
    );
    *out += "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n";
    *out += &format!("<meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n");
    *out += "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";
    *out += "<meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"referrer\" content=\"no-referrer\">\n";
    *out += &format!("<title>{} · Plimsoll</title>\n", HtmlText(&page.title));
    *out += &format!("<style>{CHARTS_STYLE}</style>\n<style>{STYLE}</style>\n</head>\n<body>\n");
}

fn charts(out: &mut String, page: &ReportPage) {
    *out += "<section id=\"charts\">\n<h2>Charts</h2>\n";
    *out += "<noscript><p>Charts need JavaScript. The tables below show the same numbers.</p></noscript>\n";
    *out += "<p class=\"hint script\">Point at a chart to read it, at a mark to see why. Drag to look closer; double-click \
             to see all. With the keyboard: Tab to the replicas, then ← and → go from change to change.</p>\n";
    for (index, workload) in page.workloads.iter().enumerate() {
        *out +=
            &format!("<section class=\"workload\" id=\"w{index}\">\n<h3>{}</h3>\n", HtmlText(&workload.name));
        *out += &format!("<div class=\"charts\" data-workload=\"{index}\"></div>\n</section>\n");
    }
    if page.workloads.is_empty() {
        *out += "<p>Nothing was scaled.</p>\n";
    }
    for note in &page.notes {
        *out += &format!("<p class=\"note\">{}</p>\n", HtmlText(note));
    }
    *out += "</section>\n";
}

fn tail(out: &mut String, page: &ReportPage) {
    *out += &format!("<footer>Made by plimsoll {}.</footer>\n", HtmlText(&page.reproduce.version));
    *out += &format!("<script type=\"application/json\" id=\"data\">{}</script>\n", data::json(page));
    *out += &format!("<!-- uPlot 1.6.32\n{}\n-->\n", CHARTS_LICENSE.trim_end());
    *out += &format!("<script>{CHARTS_SCRIPT}</script>\n<script>{SCRIPT}</script>\n</body>\n</html>\n");
}

/// The legend of a table.
fn meanings<'a>(out: &mut String, words: impl Iterator<Item = (&'a str, &'a str)>) {
    *out += "<details class=\"note print\"><summary>What these mean</summary>\n<dl>\n";
    for (word, meaning) in words {
        *out += &format!("<div><dt>{word}</dt><dd>{meaning}</dd></div>\n");
    }
    *out += "</dl></details>\n";
}

/// The line style of a run, as in the charts.
struct Swatch(usize);

impl fmt::Display for Swatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let style = self.0 % 6;
        write!(f, "<svg class=\"swatch run{style}\" viewBox=\"0 0 28 8\" aria-hidden=\"true\">")?;
        f.write_str("<path d=\"M0 4H28\"/></svg>")
    }
}
