//! Converts XML to a tree: an element with only text is that text, any other a map of its children, attributes (`-name`) and
//! text (`#text`); children of the same name are a list.
//!
//! Implemented here because KEDA's paths need exactly this mapping (that of Go's `mxj`), and no XML crate is among the
//! dependencies.

use serde_json::{Map, Value};

use crate::ParseError;
use crate::tree::TreeBudget;

/// Maximum depth of elements, the same as serde_json's limit for JSON.
const MAX_DEPTH: usize = 128;
/// Maximum length of the name of an entity or of a character reference, in bytes. Without a limit, each of many ampersands would
/// be searched for its semicolon up to the end of the document.
const MAX_ENTITY_BYTES: usize = 64;

/// The tree of a document.
pub fn parse(text: &str) -> Result<Value, ParseError> {
    let budget = TreeBudget::default();
    let mut open: Vec<(String, Map<String, Value>, String)> = Vec::new();
    let mut root = Map::new();
    let mut rest = text.trim_start_matches('\u{feff}');
    while let Some(at) = rest.find('<') {
        let (before, tag) = rest.split_at_checked(at).ok_or("it is cut off")?;
        match open.last_mut() {
            Some((_, _, own)) => own.push_str(&plain(before)),
            None if !before.trim().is_empty() => {
                return Err("there is text outside of all elements".into());
            }
            None => {}
        }
        let skipped = [("<?", "?>"), ("<!--", "-->"), ("<!", ">")];
        if let Some(inner) = tag.strip_prefix("<![CDATA[") {
            let (data, after) = inner.split_once("]]>").ok_or("a CDATA section has no end")?;
            if let Some((_, _, own)) = open.last_mut() {
                own.push_str(data);
            }
            rest = after;
            continue;
        }
        if let Some((begin, end)) = skipped.iter().find(|(begin, _)| tag.starts_with(begin)) {
            let inner = tag.strip_prefix(begin).unwrap_or(tag);
            rest = inner.split_once(end).ok_or("a declaration or comment has no end")?.1;
            continue;
        }
        let end = tag_end(tag).ok_or("a tag has no end")?;
        let (inner, after) = (tag.get(1..end).unwrap_or_default(), tag.get(end + 1..).unwrap_or_default());
        rest = after;
        if let Some(name) = inner.strip_prefix('/') {
            let (opened, members, own) = open.pop().ok_or("an element ends that never began")?;
            if opened != name.trim() {
                return Err("an element ends under another name".into());
            }
            let parent = open.last_mut().map_or(&mut root, |(_, members, _)| members);
            insert(parent, opened, value(members, &own));
            continue;
        }
        let (inner, closed) = match inner.strip_suffix('/') {
            Some(inner) => (inner, true),
            None => (inner, false),
        };
        budget.member(inner.len()).map_err(|error| error.to_string())?;
        let (name, members) = opened(inner, &budget)?;
        if closed {
            let parent = open.last_mut().map_or(&mut root, |(_, members, _)| members);
            insert(parent, name, value(members, ""));
        } else if open.len() >= MAX_DEPTH {
            return Err("elements are nested too deeply".into());
        } else {
            open.push((name, members, String::new()));
        }
    }
    if !open.is_empty() || root.is_empty() {
        return Err("it has no whole element".into());
    }
    Ok(Value::Object(root))
}

/// The position where a tag ends, outside of quotes.
fn tag_end(tag: &str) -> Option<usize> {
    let mut quote = None;
    tag.char_indices().find_map(|(at, c)| {
        match (quote, c) {
            (Some(open), _) if open == c => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            (None, '>') => return Some(at),
            _ => {}
        }
        None
    })
}

/// Name and attributes of a tag.
fn opened(inner: &str, budget: &TreeBudget) -> Result<(String, Map<String, Value>), ParseError> {
    let inner = inner.trim();
    let end = inner.find(char::is_whitespace).unwrap_or(inner.len());
    let (name, mut rest) = inner.split_at_checked(end).unwrap_or((inner, ""));
    if name.is_empty() {
        return Err("an element has no name".into());
    }
    let mut attributes = Map::new();
    loop {
        rest = rest.trim_start();
        if rest.is_empty() {
            return Ok((name.to_owned(), attributes));
        }
        let (key, after) = rest.split_once('=').ok_or("an attribute has no value")?;
        let after = after.trim_start();
        let quote =
            after.chars().next().filter(|c| "\"'".contains(*c)).ok_or("an attribute has no quotes")?;
        let (text, after) =
            after.get(1..).and_then(|inner| inner.split_once(quote)).ok_or("an attribute has no end")?;
        budget.member(0).map_err(|error| error.to_string())?;
        attributes.insert(format!("-{}", key.trim()), Value::String(plain(text)));
        rest = after;
    }
}

fn value(mut members: Map<String, Value>, text: &str) -> Value {
    let text = text.trim();
    if members.is_empty() {
        return Value::String(text.to_owned());
    }
    if !text.is_empty() {
        members.insert("#text".to_owned(), Value::String(text.to_owned()));
    }
    Value::Object(members)
}

fn insert(parent: &mut Map<String, Value>, name: String, value: Value) {
    match parent.get_mut(&name) {
        None => {
            parent.insert(name, value);
        }
        Some(Value::Array(all)) => all.push(value),
        Some(first) => *first = Value::Array(vec![first.take(), value]),
    }
}

/// Replaces the five predefined entities and character references; other entities are kept.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('&') {
        out.push_str(before);
        let near = after.get(..after.floor_char_boundary(MAX_ENTITY_BYTES)).unwrap_or_default();
        let known = near
            .split_once(';')
            .and_then(|(name, _)| Some((character(name)?, after.get(name.len() + 1..).unwrap_or_default())));
        match known {
            Some((c, after)) => {
                out.push(c);
                rest = after;
            }
            None => {
                out.push('&');
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}

fn character(name: &str) -> Option<char> {
    match name {
        "lt" => Some('<'),
        "gt" => Some('>'),
        "amp" => Some('&'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        _ => {
            let number = name.strip_prefix('#')?;
            let code = match number.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16),
                None => number.parse(),
            };
            char::from_u32(code.ok()?)
        }
    }
}
