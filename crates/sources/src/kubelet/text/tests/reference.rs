//! Reference parser: slow and obvious, with one regular expression per line, and maps.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use api::provider::Compat;
use jiff::Timestamp;
use regex::bytes::{Captures, Regex};

use crate::kubelet::{IncompletePod, MetricsPoint, MissingUsage, PodPoints, Scrape};

#[derive(Clone, Copy, Default)]
struct Fields {
    cpu: u64,
    cpu_time: i64,
    memory: u64,
    last_time: i64,
    start: Option<i64>,
}

pub(super) fn parse(body: &[u8], sent: Timestamp, compat: Compat) -> Result<Scrape, ()> {
    let strict = compat == Compat::Strict;
    let grammar = &*GRAMMAR;
    let mut containers: BTreeMap<(String, String, String), Fields> = BTreeMap::new();
    let mut node = Fields::default();
    let mut ended: Vec<(&[u8], bool)> = body.split(|b| *b == b'\n').map(|line| (line, true)).collect();
    ended.last_mut().unwrap().1 = false;
    for (line, is_ended) in ended {
        let must_be_good = strict || !is_ended;
        let indented = strict && line.first().is_some_and(|first| b" \t".contains(first));
        let Some(family) = grammar.family(line).filter(|_| !indented) else {
            if must_be_good {
                if grammar.ends.is_match(line) {
                    break;
                }
                grammar.good(line)?;
            }
            continue;
        };
        let head = grammar.head.captures(line).filter(closed).filter(named).filter(utf8).ok_or(())?;
        let sample = grammar.sample(head.name("rest").unwrap().as_bytes());
        if must_be_good && sample.is_none() {
            return Err(());
        }
        let labels = head.name("labels").map_or(&b""[..], |labels| labels.as_bytes());
        if !head.name("space").unwrap().as_bytes().is_empty() && !labels.is_empty() {
            continue;
        }
        let time = sample.and_then(|(_, time)| match time {
            None => Some(sent.as_millisecond() * 1_000_000),
            Some(time) if strict => Some(time.wrapping_mul(1_000_000)),
            Some(time) => time.checked_mul(1_000_000),
        });
        let value = sample.filter(|_| time.is_some()).map_or(f64::NAN, |(value, _)| value);
        let fields = if family.starts_with("node") {
            &mut node
        } else if family.starts_with("container") {
            match Grammar::container_key(labels, strict)? {
                Some(container_key) => containers.entry(container_key).or_default(),
                None => continue,
            }
        } else {
            continue;
        };
        let whole = |value: f64| if value >= 0.0 && value < 2f64.powi(64) { value as u64 } else { 0 };
        if family.contains("cpu") {
            (fields.cpu, fields.cpu_time, fields.last_time) =
                (whole(value * 1e9), time.unwrap_or(0), time.unwrap_or(0));
        } else if family.contains("memory") {
            (fields.memory, fields.last_time) = (whole(value), time.unwrap_or(0));
        } else {
            let nanos = sample.map_or(f64::NAN, |(value, _)| value) * 1e9;
            fields.start = if nanos.abs() < 2f64.powi(63) { Some(nanos as i64) } else { None };
        }
    }
    let scrape = scrape(node, containers, strict);
    if strict || scrape.node.is_some() || !scrape.pods.is_empty() {
        return Ok(scrape);
    }
    let is_good = |line: &[u8]| grammar.ends.is_match(line) || grammar.good(line).is_ok();
    let all_good = body.split(|b| *b == b'\n').all(is_good);
    if all_good && !scrape.incomplete.is_empty() { Ok(scrape) } else { Err(()) }
}

/// A container with its point, or the missing value.
type Container = (String, Result<MetricsPoint, MissingUsage>);

fn scrape(node: Fields, containers: BTreeMap<(String, String, String), Fields>, strict: bool) -> Scrape {
    let point = |fields: &Fields| match (fields.cpu, fields.memory) {
        (0, 0) => Err(MissingUsage::Both),
        (0, _) => Err(MissingUsage::Cpu),
        (_, 0) => Err(MissingUsage::Memory),
        (cpu, memory) => {
            let time = if strict { fields.last_time } else { fields.cpu_time };
            Ok(MetricsPoint { start: fields.start, time, cpu, memory })
        }
    };
    let mut pods: BTreeMap<(String, String), Vec<Container>> = BTreeMap::new();
    for ((namespace, pod, container), fields) in containers {
        pods.entry((namespace, pod)).or_default().push((container, point(&fields)));
    }
    let mut scrape = Scrape { node: point(&node).ok(), ..Scrape::default() };
    for ((namespace, name), containers) in pods {
        let (namespace, name) = (namespace.into_boxed_str(), name.into_boxed_str());
        match containers.iter().find(|(_, point)| point.is_err()) {
            Some((container, lacks)) => scrape.incomplete.push(IncompletePod {
                namespace,
                name,
                container: container.as_str().into(),
                lacks: lacks.unwrap_err(),
            }),
            None => {
                let containers =
                    containers.into_iter().map(|(name, point)| (name.into(), point.unwrap())).collect();
                scrape.pods.push(PodPoints { namespace, name, containers });
            }
        }
    }
    scrape
}

static GRAMMAR: LazyLock<Grammar> = LazyLock::new(Grammar::new);

struct Grammar {
    ends: Regex,
    nothing: Regex,
    comment: Regex,
    head: Regex,
    sample: Regex,
    family: Regex,
    number: Regex,
    label: regex::Regex,
    bare_name: regex::Regex,
}

const QUOTED: &str = r#""(?:[^"\\]|\\.)*""#;

impl Grammar {
    fn new() -> Self {
        let bytes = |text: &str| Regex::new(&format!("(?s-u){text}")).unwrap();
        let label = format!(r"(?:[a-zA-Z_][a-zA-Z0-9_]*|{QUOTED})[ \t]*=[ \t]*{QUOTED}[ \t]*,?[ \t]*");
        let labels = format!(r"\{{[ \t]*(?:{label}|{QUOTED}[ \t]*,[ \t]*)*(?:{QUOTED}[ \t]*)?\}}");
        let name = "[a-zA-Z_:][a-zA-Z0-9_:]*";
        let text = |text: &str| regex::Regex::new(&format!("(?s){text}")).unwrap();
        Self {
            label: text(&format!(r"(?:([a-zA-Z_][a-zA-Z0-9_]*)|({QUOTED}))[ \t]*(?:=[ \t]*({QUOTED}))?")),
            bare_name: text(&format!(r"{label}|({QUOTED})")),
            ends: bytes(r"^[ \t]*\x00"),
            nothing: bytes(r"^[ \t]*(?:#.*)?$"),
            comment: bytes(&format!(
                r"^[ \t]*#[ \t]+(?P<what>HELP|TYPE)[ \t]+(?P<name>{QUOTED}|{name})?(?P<text>.*)$"
            )),
            head: bytes(&format!(
                r"^[ \t]*(?:(?P<name>{name})(?P<space>[ \t]*)(?P<labels>{labels})?|(?P<bare>{labels}))(?P<rest>.*)$"
            )),
            sample: bytes(r"^[ \t]*(?P<value>[^{ \t\x00]+)(?:[ \t]+(?P<time>[0-9]+))?[ \t]*$"),
            family: bytes(
                "^[ \t]*(?P<family>container_cpu_usage_seconds_total|container_memory_working_set_bytes\
                 |container_start_time_seconds|node_cpu_usage_seconds_total|node_memory_working_set_bytes\
                 |resource_scrape_error)(?:[^a-zA-Z0-9_:]|$)",
            ),
            number: bytes(
                r"^(?:[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?(?i:inf|infinity)|(?i:nan))$",
            ),
        }
    }

    fn family(&self, line: &[u8]) -> Option<String> {
        let found = self.family.captures(line)?;
        Some(String::from_utf8(found.name("family")?.as_bytes().to_vec()).unwrap())
    }

    fn good(&self, line: &[u8]) -> Result<(), ()> {
        if self.nothing.is_match(line) {
            let Some(comment) = self.comment.captures(line) else { return Ok(()) };
            let text = comment.name("text").unwrap().as_bytes();
            let types: [&[u8]; 5] = [b"counter", b"gauge", b"histogram", b"summary", b"untyped"];
            let is_good = if comment.name("what").unwrap().as_bytes() == b"TYPE" {
                text.get(1..).is_some_and(|text| types.contains(&text))
            } else {
                std::str::from_utf8(text).is_ok()
            };
            return if comment.name("name").is_some() && is_good { Ok(()) } else { Err(()) };
        }
        let head = self.head.captures(line).filter(closed).filter(named).filter(utf8).ok_or(())?;
        self.sample(head.name("rest").unwrap().as_bytes()).map(drop).ok_or(())
    }

    fn sample(&self, rest: &[u8]) -> Option<(f64, Option<i64>)> {
        let found = self.sample.captures(rest)?;
        let value = found.name("value")?.as_bytes();
        if !self.number.is_match(value) {
            return None;
        }
        let value = std::str::from_utf8(value).unwrap();
        let number: f64 = value.parse().unwrap();
        if number.is_infinite() && value.contains(|c: char| c.is_ascii_digit()) {
            return None;
        }
        match found.name("time") {
            None => Some((number, None)),
            Some(time) => Some((number, Some(std::str::from_utf8(time.as_bytes()).unwrap().parse().ok()?))),
        }
    }

    fn container_key(labels: &[u8], strict: bool) -> Result<Option<(String, String, String)>, ()> {
        let text = String::from_utf8(labels.to_vec()).unwrap();
        let mut found = Vec::new();
        for name in ["namespace", "pod", "container"] {
            if strict {
                let search = format!("{name}=\"");
                let start = text.find(&search).map_or(search.len() - 1, |at| at + search.len());
                let rest = text.get(start..).ok_or(())?;
                found.push(rest[..rest.find('"').ok_or(())?].to_owned());
            } else {
                let value = pairs(&text).into_iter().find(|(own, _)| own == name);
                let Some((_, value)) = value else { return Ok(None) };
                found.push(value);
            }
        }
        let [namespace, pod, container] = found.try_into().unwrap();
        Ok(Some((namespace, pod, container)))
    }
}

/// Labels with their values as written.
fn pairs(labels: &str) -> Vec<(String, String)> {
    let token = &GRAMMAR.label;
    let bare = |text: &str| text[1..text.len() - 1].to_owned();
    token
        .captures_iter(labels)
        .filter_map(|found| {
            let name =
                found.get(1).map(|m| m.as_str().to_owned()).or_else(|| Some(bare(found.get(2)?.as_str())));
            Some((name?, bare(found.get(3)?.as_str())))
        })
        .collect()
}

/// An opened label list must be closed.
fn closed(head: &Captures<'_>) -> bool {
    let rest = head.name("rest").unwrap().as_bytes().trim_ascii_start();
    !rest.starts_with(b"{") || head.name("labels").is_some() || head.name("bare").is_some()
}

/// The metric name is given once: before the labels or among them.
fn named(head: &Captures<'_>) -> bool {
    let token = &GRAMMAR.bare_name;
    let names = |part: &str| {
        let labels = head.name(part).map(|labels| String::from_utf8_lossy(labels.as_bytes()).into_owned());
        labels.map(|labels| token.captures_iter(&labels).filter(|found| found.get(1).is_some()).count())
    };
    names("bare").is_none_or(|count| count == 1) && names("labels").is_none_or(|count| count == 0)
}

fn utf8(head: &Captures<'_>) -> bool {
    ["labels", "bare"]
        .iter()
        .all(|part| head.name(part).is_none_or(|part| std::str::from_utf8(part.as_bytes()).is_ok()))
}
