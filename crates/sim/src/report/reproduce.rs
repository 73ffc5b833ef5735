//! How to make the page again.

use super::page::ReportPage;
use super::{Text, words};

pub(super) fn write(out: &mut String, page: &ReportPage) {
    let reproduce = &page.reproduce;
    *out += "<section id=\"reproduce\">\n<h2>How to reproduce this</h2>\n";
    *out += &format!("<pre class=\"command\">{}</pre>\n", Text(&reproduce.command));
    *out += &format!("<p>plimsoll {}", Text(&reproduce.version));
    if let Some(seed) = reproduce.seed {
        *out += &format!(" · seed {seed}");
    }
    *out += ". The same files, version and seed give this page byte for byte.</p>\n";
    for file in &reproduce.files {
        let lines = words::plural(file.text.lines().count() as u64, "line");
        *out += &format!("<details class=\"print\"><summary>{} ({lines})</summary>\n", Text(&file.name));
        *out += &format!("<pre>{}</pre></details>\n", Text(&file.text));
    }
    *out += "</section>\n";
}
