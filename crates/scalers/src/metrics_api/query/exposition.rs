//! The Prometheus text format: the first sample of a metric with the required labels.

use crate::ScalerError;

/// A metric and its required labels.
#[derive(Debug, PartialEq)]
struct Wanted<'a> {
    name: &'a str,
    labels: Vec<(&'a str, String)>,
}

/// The value of the first sample that matches `name{label="value"}`.
pub fn read(text: &str, location: &str) -> Result<f64, ScalerError> {
    let wanted = wanted(location)?;
    let mut found = false;
    let mut kind = "untyped";
    for line in text.lines().map(str::trim) {
        if let Some(comment) = line.strip_prefix('#') {
            let mut words = comment.split_whitespace();
            if (words.next(), words.next()) == (Some("TYPE"), Some(wanted.name)) {
                found = true;
                kind = words.next().unwrap_or_default();
            }
            continue;
        }
        let end = line.find(|c: char| c == '{' || c.is_whitespace()).unwrap_or(line.len());
        let (name, rest) = line.split_at_checked(end).unwrap_or((line, ""));
        if name != wanted.name || name.is_empty() {
            continue;
        }
        found = true;
        let bad = || {
            scaler_error!("a line of metric {} is no sample of the text format of Prometheus", wanted.name)
        };
        let (labels, rest) = match rest.trim_start().strip_prefix('{') {
            Some(inner) => labels(inner).ok_or_else(bad)?,
            None => (Vec::new(), rest),
        };
        if !["untyped", "counter", "gauge"].contains(&kind)
            || wanted.labels.iter().any(|pair| !labels.contains(pair))
        {
            continue;
        }
        let number =
            rest.split_whitespace().next().and_then(|number| number.parse::<f64>().ok()).ok_or_else(bad)?;
        if !number.is_finite() {
            bail!("value {location} is {number}, which is no number to scale by");
        }
        return Ok(number);
    }
    Err(ScalerError::new(if found {
        format!("value {location} not found")
    } else {
        format!("metric '{}' not found", wanted.name)
    }))
}

fn wanted(location: &str) -> Result<Wanted<'_>, ScalerError> {
    let bad = || scaler_error!("valueLocation {location:?} is no metric such as waiting{{queue=\"mail\"}}");
    let location = location.trim();
    let (name, labels) = match location.split_once('{') {
        None => (location, Vec::new()),
        Some((name, inner)) => {
            let (labels, after) = labels(inner).ok_or_else(bad)?;
            if !after.trim().is_empty() {
                return Err(bad());
            }
            (name.trim(), labels)
        }
    };
    let proper = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    if name.is_empty() || !name.chars().all(proper) {
        return Err(bad());
    }
    Ok(Wanted { name, labels })
}

/// Parses labels up to the closing brace; also returns the rest.
fn labels(inner: &str) -> Option<(Vec<(&str, String)>, &str)> {
    let mut all = Vec::new();
    let mut rest = inner.trim_start();
    loop {
        if let Some(after) = rest.strip_prefix('}') {
            return Some((all, after));
        }
        let (name, after) = rest.split_once('=')?;
        let after = after.trim_start();
        let quote = after.chars().next().filter(|c| "\"'".contains(*c))?;
        let (value, after) = quoted(after.get(1..)?, quote)?;
        all.push((name.trim().trim_end_matches('!'), value));
        rest = after.trim_start();
        if !rest.starts_with('}') {
            rest = rest.strip_prefix(',')?.trim_start();
        }
    }
}

/// Parses a string up to its closing quote; also returns the rest.
fn quoted(text: &str, quote: char) -> Option<(String, &str)> {
    let mut out = String::new();
    let mut escape = false;
    for (at, c) in text.char_indices() {
        match c {
            'n' if escape => out.push('\n'),
            _ if escape => out.push(c),
            '\\' => {
                escape = true;
                continue;
            }
            _ if c == quote => return Some((out, text.get(at + c.len_utf8()..)?)),
            _ => out.push(c),
        }
        escape = false;
    }
    None
}
