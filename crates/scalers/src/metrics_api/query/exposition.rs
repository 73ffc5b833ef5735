//! The Prometheus text format: the first sample of a metric with the required labels.

use std::collections::HashMap;

use crate::ScalerError;

/// Maximum length of the location, in bytes.
const MAX_LOCATION_BYTES: usize = 16 << 10;

/// A metric and its required labels.
struct SampleSelector<'a> {
    name: &'a str,
    /// The required values of each label, with the number of the last line that had them.
    labels: HashMap<&'a str, HashMap<String, usize>>,
    /// How many values are required.
    count: usize,
}

/// The value of the first sample that matches `name{label="value"}`.
pub fn read(text: &str, location: &str) -> Result<f64, ScalerError> {
    let mut wanted = wanted(location)?;
    let mut found = false;
    let mut kind = "untyped";
    for (number, line) in text.lines().map(str::trim).enumerate() {
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
        let bad = || scaler_error!("line {} is no sample of the text format of Prometheus", number + 1);
        let mut required = 0;
        let rest = match rest.trim_start().strip_prefix('{') {
            Some(inner) => labels(inner, |name, value| {
                // A look-up per label: comparing each with each would be slow for lines of many labels.
                let last = wanted.labels.get_mut(name).and_then(|values| values.get_mut(&value));
                if let Some(last) = last
                    && *last != number + 1
                {
                    *last = number + 1;
                    required += 1;
                }
            })
            .ok_or_else(bad)?,
            None => rest,
        };
        if !["untyped", "counter", "gauge"].contains(&kind) || required < wanted.count {
            continue;
        }
        let number =
            rest.split_whitespace().next().and_then(|number| number.parse::<f64>().ok()).ok_or_else(bad)?;
        if !number.is_finite() {
            bail!("value {location} is {number}, which is not a finite number");
        }
        return Ok(number);
    }
    Err(ScalerError::new(if found {
        format!("value {location} not found")
    } else {
        format!("metric '{}' not found", wanted.name)
    }))
}

fn wanted(location: &str) -> Result<SampleSelector<'_>, ScalerError> {
    let bad = || scaler_error!("valueLocation {location:?} is no metric such as waiting{{queue=\"mail\"}}");
    if location.len() > MAX_LOCATION_BYTES {
        bail!("valueLocation has more than {MAX_LOCATION_BYTES} bytes");
    }
    let location = location.trim();
    let mut all: HashMap<&str, HashMap<String, usize>> = HashMap::new();
    let name = match location.split_once('{') {
        None => location,
        Some((name, inner)) => {
            let after = labels(inner, |name, value| {
                all.entry(name).or_default().insert(value, 0);
            })
            .ok_or_else(bad)?;
            if !after.trim().is_empty() {
                return Err(bad());
            }
            name.trim()
        }
    };
    let proper = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    if name.is_empty() || !name.chars().all(proper) {
        return Err(bad());
    }
    let count = all.values().map(HashMap::len).sum();
    Ok(SampleSelector { name, labels: all, count })
}

/// Calls `each` with every label up to the closing brace; returns the rest.
fn labels<'a>(inner: &'a str, mut each: impl FnMut(&'a str, String)) -> Option<&'a str> {
    let mut rest = inner.trim_start();
    loop {
        if let Some(after) = rest.strip_prefix('}') {
            return Some(after);
        }
        let (name, after) = rest.split_once('=')?;
        let after = after.trim_start();
        let quote = after.chars().next().filter(|c| "\"'".contains(*c))?;
        let (value, after) = quoted(after.get(1..)?, quote)?;
        each(name.trim().trim_end_matches('!'), value);
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
