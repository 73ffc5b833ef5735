//! The section that shows how to reproduce the page.

use super::page::ReportPage;
use super::{HtmlText, words};

pub(super) fn write(out: &mut String, page: &ReportPage) {
    let reproduce = &page.reproduce;
    *out += "<section id=\"reproduce\">\n<h2>How to reproduce this</h2>\n";
    *out += &format!("<pre class=\"command\">{}</pre>\n", HtmlText(&reproduce.command));
    *out += &format!("<p>plimsoll {}", HtmlText(&reproduce.version));
    if let Some(seed) = reproduce.seed {
        *out += &format!(" · seed {seed}");
    }
    *out += ". The same files, version and seed give this page byte for byte.</p>\n";
    for file in &reproduce.files {
        let lines = words::plural(file.text.lines().count() as u64, "line");
        *out += &format!("<details class=\"print\"><summary>{} ({lines})</summary>\n", HtmlText(&file.name));
        *out += &format!("<pre>{}</pre></details>\n", HtmlText(&file.text));
    }
    *out += "</section>\n";
}
