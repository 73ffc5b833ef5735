//! Writes YAML in the layout of kubectl.

use std::fmt::Write as _;

use serde_json::Value;

use super::scalar::resolve;

/// Longer keys, in bytes, need a `?` mark.
const MAX_PLAIN_KEY_BYTES: usize = 1000;

/// Column behind which `sigs.k8s.io/yaml` folds texts.
const FOLDING_WIDTH: usize = 80;

/// Writes a value as block-style YAML that every YAML 1.1 or 1.2 reader reads as the same value.
pub fn to_yaml(value: &Value) -> String {
    written(value, usize::MAX)
}

/// As [`to_yaml`], with long texts folded as `sigs.k8s.io/yaml` folds them in responses of Kubernetes' servers.
pub fn to_folded_yaml(value: &Value) -> String {
    written(value, FOLDING_WIDTH)
}

fn written(value: &Value, width: usize) -> String {
    let mut out = String::new();
    match value {
        Value::Object(entries) if !entries.is_empty() => map(&mut out, entries, 0, width),
        Value::Array(items) if !items.is_empty() => list(&mut out, items, 0, width),
        scalar => {
            self::scalar(&mut out, scalar, 2, width);
            out.push('\n');
        }
    }
    out
}

/// Writes entries at `indent`; the first line is already indented.
fn map(out: &mut String, entries: &serde_json::Map<String, Value>, indent: usize, width: usize) {
    for (index, (key, value)) in entries.iter().enumerate() {
        if index > 0 {
            pad(out, indent);
        }
        let key = quoted(key);
        if key.len() > MAX_PLAIN_KEY_BYTES {
            let _ = writeln!(out, "? {key}");
            pad(out, indent);
        } else {
            out.push_str(&key);
        }
        out.push(':');
        match value {
            Value::Object(entries) if !entries.is_empty() => {
                out.push('\n');
                pad(out, indent + 2);
                map(out, entries, indent + 2, width);
            }
            Value::Array(items) if !items.is_empty() => {
                out.push('\n');
                pad(out, indent);
                list(out, items, indent, width);
            }
            value => {
                out.push(' ');
                scalar(out, value, indent + 2, width);
                out.push('\n');
            }
        }
    }
}

/// Writes items at `indent`; the first line is already indented.
fn list(out: &mut String, items: &[Value], indent: usize, width: usize) {
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            pad(out, indent);
        }
        out.push_str("- ");
        match item {
            Value::Object(entries) if !entries.is_empty() => map(out, entries, indent + 2, width),
            Value::Array(items) if !items.is_empty() => list(out, items, indent + 2, width),
            item => {
                scalar(out, item, indent + 2, width);
                out.push('\n');
            }
        }
    }
}

fn pad(out: &mut String, indent: usize) {
    out.extend(std::iter::repeat_n(' ', indent));
}

/// Writes a scalar after its key, or as a block of lines at `indent`.
fn scalar(out: &mut String, value: &Value, indent: usize, width: usize) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(truth) => out.push_str(if *truth { "true" } else { "false" }),
        Value::Number(number) => {
            let text = number.to_string();
            // Some YAML 1.1 readers require the sign of an exponent.
            match text.split_once('e') {
                Some((digits, exponent)) if !exponent.starts_with(['-', '+']) => {
                    let _ = write!(out, "{digits}e+{exponent}");
                }
                _ => out.push_str(&text),
            }
        }
        Value::String(text) if literal(text) => lines(out, text, indent),
        Value::String(text) => fold(out, &quoted(text), indent, width),
        Value::Array(_) => out.push_str("[]"),
        Value::Object(_) => out.push_str("{}"),
    }
}

/// Appends a plain or quoted text. It continues on the next line at `indent` instead of at the first space behind column `width`.
fn fold(out: &mut String, shown: &str, indent: usize, width: usize) {
    let line = out.rsplit('\n').next().unwrap_or_default();
    if line.len() + shown.len() <= width {
        out.push_str(shown);
        return;
    }
    let mut column = line.chars().count();
    let quote = shown.chars().next().filter(|c| matches!(c, '"' | '\''));
    let mut follows_space = false;
    let mut rest = shown.char_indices().peekable();
    while let Some((at, c)) = rest.next() {
        let before_space = rest.peek().is_some_and(|(_, next)| *next == ' ');
        // A space at the beginning or the end of a quoted text stays where it is.
        let is_inner = quote.is_none() || (at > 1 && at + 2 < shown.len());
        // Of several spaces only double quotes can keep the others, behind a backslash.
        let can_fold = is_inner && !follows_space && (!before_space || quote == Some('"'));
        follows_space = c == ' ';
        if follows_space && can_fold && column > width {
            out.push('\n');
            pad(out, indent);
            column = indent;
            if before_space {
                out.push('\\');
                column += 1;
            }
        } else {
            out.push(c);
            column += 1;
        }
    }
}

/// Whether a text can be written as a literal block without loss.
fn literal(text: &str) -> bool {
    let plain = |line: &str| !line.starts_with('\t') && line.chars().all(|c| c == '\t' || printable(c));
    let blank = |line: &str| !line.is_empty() && line.trim_matches([' ', '\t']).is_empty();
    text.contains('\n')
        && !text.starts_with([' ', '\n'])
        && text.split('\n').all(|line| plain(line) && !blank(line))
}

fn lines(out: &mut String, text: &str, indent: usize) {
    let body = text.strip_suffix('\n');
    out.push_str(match body {
        None => "|-",
        Some(body) if body.ends_with('\n') => "|+",
        Some(_) => "|",
    });
    for line in body.unwrap_or(text).split('\n') {
        out.push('\n');
        if !line.is_empty() {
            pad(out, indent);
            out.push_str(line);
        }
    }
}

/// A text with as few quotes as possible.
fn quoted(text: &str) -> String {
    if ambiguous(text) || !text.chars().all(printable) {
        return escaped(text);
    }
    if plain(text) { text.to_owned() } else { format!("'{}'", text.replace('\'', "''")) }
}

/// Whether some reader would not read the unquoted word as text.
fn ambiguous(text: &str) -> bool {
    let number = text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.'));
    let value = matches!(resolve(text), super::NodeValue::String(_));
    !value || matches!(text, "=" | "<<") || (number && (text.parse::<f64>().is_ok() || time(text)))
}

/// Whether a text looks like a date or a sexagesimal number.
fn time(text: &str) -> bool {
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit() || b == b'_');
    let mut date = text.split('-');
    let year = date.next().is_some_and(|year| year.len() == 4 && digits(year));
    let month = date.next().is_some_and(|month| month.len() <= 2 && digits(month));
    let sixty =
        text.trim_start_matches(['+', '-']).split([':', '.']).all(|part| part.is_empty() || digits(part));
    (year && month && date.next().is_some()) || (text.contains(':') && sixty)
}

/// Whether a text needs no quotes in YAML.
fn plain(text: &str) -> bool {
    let mut characters = text.chars();
    let first = match characters.next() {
        None => false,
        Some('-' | '?' | ':') => {
            characters.next().is_some_and(|c| !matches!(c, ' ' | ',' | '[' | ']' | '{' | '}'))
        }
        Some(c) => !" ,[]{}#&*!|>'\"%@`".contains(c),
    };
    first
        && !text.ends_with([' ', ':'])
        && !text.starts_with("---")
        && !text.starts_with("...")
        && !text.contains(": ")
        && !text.contains(" #")
}

fn escaped(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if printable(c) => out.push(c),
            c => {
                let code = u32::from(c);
                let _ =
                    if code > 0xFFFF { write!(out, "\\U{code:08X}") } else { write!(out, "\\u{code:04X}") };
            }
        }
    }
    out + "\""
}

/// Characters that need no escape: YAML's printable ones without the line breaks of YAML 1.1 and the byte order mark.
fn printable(c: char) -> bool {
    matches!(c, ' '..='~' | '\u{A0}'..='\u{2027}' | '\u{202A}'..='\u{D7FF}' | '\u{E000}'..='\u{FEFE}'
        | '\u{FF00}'..='\u{FFFD}' | '\u{10000}'..='\u{10FFFF}')
}
