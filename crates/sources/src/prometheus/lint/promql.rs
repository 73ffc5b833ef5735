//! Shallow check of PromQL: brackets, quotes, emptiness. It finds what a template or a typo broke.

use std::borrow::Cow;

/// What is wrong with a query.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PromqlError(Cow<'static, str>);

/// Checks a query or selector.
pub fn check(text: &str) -> Result<(), PromqlError> {
    if text.trim().is_empty() {
        return Err(PromqlError("the query is empty".into()));
    }
    let mut open: Vec<char> = Vec::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '"' | '\'' | '`' => string(&mut chars, c)?,
            // A comment ends with its line.
            '#' => {
                let _ = chars.by_ref().find(|c| *c == '\n');
            }
            '(' | '[' | '{' => open.push(c),
            ')' | ']' | '}' => {
                let wanted = match c {
                    ')' => '(',
                    ']' => '[',
                    _ => '{',
                };
                match open.pop() {
                    Some(opened) if opened == wanted => {}
                    Some(opened) => return Err(PromqlError(format!("`{opened}` is closed by `{c}`").into())),
                    None => return Err(PromqlError(format!("`{c}` closes nothing").into())),
                }
            }
            _ => {}
        }
    }
    match open.pop() {
        Some(opened) => Err(PromqlError(format!("`{opened}` is never closed").into())),
        None if text.contains("<no value>") => {
            Err(PromqlError("a missing label was printed as `<no value>`".into()))
        }
        None => Ok(()),
    }
}

fn string(chars: &mut std::str::Chars<'_>, quote: char) -> Result<(), PromqlError> {
    while let Some(c) = chars.next() {
        match c {
            c if c == quote => return Ok(()),
            '\\' if quote != '`' => drop(chars.next()),
            '\n' if quote != '`' => {
                return Err(PromqlError(format!("a string in {quote} continues on the next line").into()));
            }
            _ => {}
        }
    }
    Err(PromqlError(format!("a string in {quote} is never closed").into()))
}

/// Checks a selector: an optional name, and matchers in braces.
pub fn check_selector(text: &str) -> Result<(), PromqlError> {
    check(text)?;
    let text = text.trim();
    let (name, rest) = text.split_once('{').map_or((text, None), |(name, rest)| (name, Some(rest)));
    let name = name.trim();
    let is_name = name.chars().all(|c| c == '_' || c == ':' || c.is_ascii_alphanumeric())
        && !name.starts_with(|c: char| c.is_ascii_digit());
    if !is_name {
        return Err(PromqlError(format!("`{name}` is not the name of a metric").into()));
    }
    let Some(rest) = rest else { return Ok(()) };
    let Some(inner) = rest.strip_suffix('}') else {
        return Err(PromqlError("there is text after the closing `}`".into()));
    };
    let matchers = split(inner);
    for matcher in &matchers {
        matcher_parts(matcher).ok_or_else(|| {
            PromqlError(format!("`{matcher}` is not a matcher such as label=\"value\"").into())
        })?;
    }
    if name.is_empty() && matchers.is_empty() {
        return Err(PromqlError("it must name a metric or have a matcher".into()));
    }
    Ok(())
}

/// Whether a selector restricts neither the metric name nor a part of it, so that Prometheus scans nearly all series.
pub fn selects_everything(text: &str) -> bool {
    let Some((name, rest)) = text.split_once('{') else { return false };
    let inner = rest.trim().strip_suffix('}').unwrap_or(rest);
    name.trim().is_empty()
        && split(inner).iter().filter_map(|matcher| matcher_parts(matcher)).all(|(label, operator, value)| {
            let any = matches!(value, ".*" | ".+" | "^.*" | "^.+" | ".*$" | "^.*$");
            match operator {
                "!=" | "!~" => true,
                "=~" => any,
                _ => label == "__name__" && value.is_empty(),
            }
        })
}

/// Label, operator and quoted text.
fn matcher_parts(matcher: &str) -> Option<(&str, &str, &str)> {
    let at = matcher.find(['=', '!'])?;
    let (label, rest) = matcher.split_at(at);
    let operator = ["=~", "!~", "!=", "="].into_iter().find(|operator| rest.starts_with(operator))?;
    let value = rest.strip_prefix(operator)?.trim();
    let label = label.trim();
    let quoted = ['"', '\'', '`'].into_iter().find(|quote| value.starts_with(*quote))?;
    let inner = value.strip_prefix(quoted)?.strip_suffix(quoted)?;
    let is_name = !label.is_empty() && label.chars().all(|c| c == '_' || c.is_ascii_alphanumeric());
    is_name.then_some((label, operator, inner))
}

/// Splits at commas outside of quotes.
fn split(inner: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut start, mut quote, mut escaped) = (0, None, false);
    for (at, c) in inner.char_indices() {
        match quote {
            Some(open) => {
                if c == open && !escaped {
                    quote = None;
                }
                escaped = c == '\\' && !escaped && open != '`';
            }
            None if matches!(c, '"' | '\'' | '`') => quote = Some(c),
            None if c == ',' => {
                parts.push(inner.get(start..at).unwrap_or_default());
                start = at + 1;
            }
            None => {}
        }
    }
    parts.push(inner.get(start..).unwrap_or_default());
    parts.into_iter().map(str::trim).filter(|part| !part.is_empty()).collect()
}
