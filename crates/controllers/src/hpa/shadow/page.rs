//! The report of shadow mode as one self-contained HTML page: verdict, differences, and commands to inspect them.

use std::collections::HashMap;
use std::fmt;

use api::decisions::{DifferenceList, DifferenceRecord};
use api::text::HtmlText;
use jiff::{SignedDuration, Timestamp};

pub(super) const STYLE: &str = include_str!("page.css");
/// SHA-256 of [`STYLE`] for the content security policy: no other style is applied, whatever the data contains. A test checks it.
pub(super) const STYLE_DIGEST: &str = "'sha256-FQy6MPdfH3Azhmt1zzaAqezvnpx3VXttIIJ+kZ9joRk='";

/// The page as HTML. The same list gives the same bytes.
pub fn page(list: &DifferenceList, generated: Timestamp) -> String {
    let mut out = String::new();
    let groups = by_autoscaler(&list.items);
    head(&mut out);
    answer(&mut out, list, &groups, generated);
    differences(&mut out, &groups);
    reproduce(&mut out, &groups);
    rules(&mut out);
    out += &format!("<footer>Made by plimsoll {}.</footer>\n", env!("CARGO_PKG_VERSION"));
    out += "</body>\n</html>\n";
    out
}

/// One autoscaler and its differences, newest first.
struct Group<'a> {
    namespace: &'a str,
    /// `hpa/web`.
    name: String,
    items: Vec<&'a DifferenceRecord>,
}

impl Group<'_> {
    fn differs(&self) -> bool {
        self.items.iter().any(|item| !item.over)
    }
}

/// Autoscalers that differ now come first, then the order of the list.
fn by_autoscaler(items: &[DifferenceRecord]) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    let mut places = HashMap::new();
    for item in items {
        let key = (&item.metadata.namespace, &item.metadata.name);
        let place = *places.entry(key).or_insert(groups.len());
        match groups.get_mut(place) {
            Some(group) => group.items.push(item),
            None => groups.push(Group {
                namespace: &item.metadata.namespace,
                name: item.metadata.name.replacen('.', "/", 1),
                items: vec![item],
            }),
        }
    }
    groups.sort_by_key(|group| !group.differs());
    groups
}

fn head(out: &mut String) {
    let policy = format!("default-src 'none'; style-src {STYLE_DIGEST}; base-uri 'none'; form-action 'none'");
    *out += "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n";
    *out += &format!("<meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n");
    *out += "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";
    *out += "<meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"referrer\" content=\"no-referrer\">\n";
    *out += &format!("<title>Shadow report · Plimsoll</title>\n<style>{STYLE}</style>\n</head>\n<body>\n");
}

fn answer(out: &mut String, list: &DifferenceList, groups: &[Group<'_>], generated: Timestamp) {
    let all = Count(list.autoscalers, "autoscaler");
    let now = groups.iter().filter(|group| group.differs()).count() as u64;
    let past = groups.len() as u64 - now;
    let over = list
        .since
        .map(|since| format!(" over {}", span(generated.duration_since(since))))
        .unwrap_or_default();
    let text = match (list.compared, now, past) {
        (0, ..) => "Nothing was compared yet: no autoscaler is in shadow mode.".to_owned(),
        (_, 0, 0) => format!("{all} compared{over}: no difference."),
        (_, 0, _) => format!("{all} compared{over}: no difference now, {past} differed for a while."),
        (_, _, 0) => format!("{now} of {all} differ."),
        _ => format!("{now} of {all} differ; {past} more differed for a while."),
    };
    *out += "<h1>Plimsoll beside the controller that acts</h1>\n";
    *out += &format!("<p class=\"answer\">{}</p>\n", HtmlText(&text));
    if let Some(since) = list.since {
        let decisions = Count(list.compared, "decision");
        *out += &format!(
            "<p class=\"when\">{decisions} compared from {} to {}. All times are UTC.</p>\n",
            time(since),
            time(generated)
        );
    }
    if list.timing > 0 {
        *out += &format!(
            "<p class=\"when\">{} of timing: decided again with the readings of the controller that acts, both agree.</p>\n",
            Count(list.timing, "difference")
        );
    }
}

fn differences(out: &mut String, groups: &[Group<'_>]) {
    if groups.is_empty() {
        return;
    }
    *out += "<section>\n<h2>Differences</h2>\n<div class=\"wide\">\n<table>\n<thead><tr><th>since</th><th>last seen</th>\
             <th>what</th><th>theirs</th><th>ours</th><th>why we say so</th></tr></thead>\n";
    for group in groups {
        *out += &format!(
            "<tbody>\n<tr><th colspan=\"6\" scope=\"rowgroup\">{} in {}</th></tr>\n",
            HtmlText(&group.name),
            HtmlText(group.namespace)
        );
        for item in &group.items {
            row(out, item);
        }
        *out += "</tbody>\n";
    }
    *out += "</table>\n</div>\n</section>\n";
}

fn row(out: &mut String, item: &DifferenceRecord) {
    let (class, last) = if item.over {
        (" class=\"over\"", format!("{}, over", time(item.last)))
    } else {
        ("", format!("<span class=\"now\">{}, still</span>", time(item.last)))
    };
    *out += &format!("<tr{class}>");
    *out += &format!("<td class=\"time\" data-label=\"since\">{}</td>", time(item.since));
    *out += &format!("<td class=\"time\" data-label=\"last\">{last}</td>");
    *out += &format!("<td class=\"field\" data-label=\"what\">{}</td>", HtmlText(&item.field));
    *out += &format!("<td class=\"said\" data-label=\"theirs\">{}</td>", HtmlText(&item.theirs));
    *out += &format!("<td class=\"said\" data-label=\"ours\">{}</td>", HtmlText(&item.ours));
    *out += &format!("<td class=\"why\" data-label=\"why\">{}</td></tr>\n", HtmlText(&item.why));
}

fn reproduce(out: &mut String, groups: &[Group<'_>]) {
    *out += "<section>\n<h2>How to see for yourself</h2>\n<pre>";
    *out += "plimsoll shadow report           # this list, as a table\n";
    for group in groups.iter().take(3) {
        let Some(item) = group.items.first() else { continue };
        let (name, namespace) = (Word(&group.name), Word(group.namespace));
        let kind = if group.name.starts_with("hpa/") { "" } else { ".plimsoll.dev" };
        *out += &format!("\nplimsoll why {name} -n {namespace} --at {}    # our arithmetic\n", item.last);
        let plain = group.name.replacen('/', &format!("{kind}/"), 1);
        *out += &format!("kubectl describe {} -n {namespace}    # what the other one says\n", Word(&plain));
    }
    *out += "</pre>\n</section>\n";
}

fn rules(out: &mut String) {
    *out += "<details class=\"note\"><summary>What counts as a difference</summary>\n<ul>\n";
    for rule in [
        "Compared are desiredReplicas and, of the conditions AbleToScale, ScalingActive and ScalingLimited, status and reason.",
        "Both controllers decide once per period, but not at the same moment. A difference counts if two of our decisions in a \
         row had it, at least a period apart, and neither side had adopted the earlier value of the other.",
        "It is over as soon as both agree once.",
        "We decide again with the readings that the other controller wrote into its status, and with windows built from them. \
         A difference that is gone then is one of timing: it is counted, but not listed.",
        "AbleToScale: SucceededRescale and FailedUpdateScale report a scale write. Shadow mode writes nothing, so they are no \
         difference; the replica counts are compared all the same.",
    ] {
        *out += &format!("<li>{rule}</li>\n");
    }
    *out += "</ul></details>\n";
}

/// `1 autoscaler`, `412 autoscalers`.
struct Count(u64, &'static str);

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (digits, plural) = (self.0.to_string(), if self.0 == 1 { "" } else { "s" });
        for (place, digit) in digits.chars().enumerate() {
            let thousands = place > 0 && (digits.len() - place).is_multiple_of(3);
            write!(f, "{}{digit}", if thousands { "," } else { "" })?;
        }
        write!(f, " {}{plural}", self.1)
    }
}

fn time(at: Timestamp) -> String {
    at.strftime("%Y-%m-%d %H:%M:%S").to_string()
}

/// A rounded duration: `45 s`, `12 min`, `3 h`, `2 d`.
fn span(duration: SignedDuration) -> String {
    let seconds = duration.as_secs().max(0);
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        7200..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} d", seconds / 86_400),
    }
}

/// A word of a command line. Valid Kubernetes names are written as they are; other words are quoted for the shell.
struct Word<'a>(&'a str);

impl fmt::Display for Word<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:".contains(c);
        if !self.0.is_empty() && self.0.chars().all(plain) {
            f.write_str(self.0)
        } else {
            write!(f, "{}", HtmlText(&format!("'{}'", self.0.replace('\'', r"'\''"))))
        }
    }
}
