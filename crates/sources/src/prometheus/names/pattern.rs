//! Go regular expressions.
//!
//! The crate `regex` also implements RE2 but with another grammar: it accepts `a**` and `[a&&b]`, and rejects `a{`,
//! `\Q` and two groups with one name. So expressions are parsed by the rules of Go and translated to syntax that
//! means the same in `regex`.

use std::sync::Arc;

use regex::{Regex, RegexBuilder};

use super::classes::{self, RegexError, fault};

/// Size limit of a compiled expression in bytes.
const MAX_COMPILED_BYTES: usize = 4 << 20;
/// Maximum repetition count of Go.
const MAX_REPEATS: u32 = 1000;

/// A regular expression; unanchored unless it has anchors.
#[derive(Clone, Debug)]
pub struct GoRegex {
    regex: Regex,
    /// Group names in order; empty for unnamed groups.
    names: Arc<[String]>,
}

impl GoRegex {
    /// Compiles an expression.
    pub fn new(text: &str) -> Result<Self, RegexError> {
        let mut reader = RegexTranslator {
            rest: text,
            out: String::new(),
            names: Vec::new(),
            open: 0,
            last: PrecedingItem::Nothing,
        };
        reader.read()?;
        let regex = RegexBuilder::new(&reader.out)
            .size_limit(MAX_COMPILED_BYTES)
            .build()
            .map_err(|_| RegexError::unsupported(text))?;
        Ok(Self { regex, names: reader.names.into() })
    }

    /// Whether it matches anywhere in the text.
    pub fn is_match(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }

    /// Number of capture groups.
    pub fn groups(&self) -> usize {
        self.names.len()
    }

    /// Whether a group exists, by number or name.
    pub(crate) fn has_group(&self, name: &str) -> bool {
        match group_number(name) {
            Some(number) => number <= self.names.len(),
            None => self.names.iter().any(|own| own == name),
        }
    }

    /// Text of the last group with this name that took part in the first match.
    pub(crate) fn capture<'t>(&self, text: &'t str, name: &str) -> Option<&'t str> {
        let captures = self.regex.captures(text)?;
        let numbers = self.names.iter().enumerate().rev().filter(|(_, own)| *own == name);
        numbers
            .map(|(index, _)| index + 1)
            .find_map(|number| captures.get(number))
            .map(|found| found.as_str())
    }

    /// Expands a layout with the groups of the first match; `None` without a match.
    ///
    /// Go takes the longest possible name: `$1_x` refers to the group `1_x`, which does not exist and expands to
    /// nothing.
    pub fn expand(&self, text: &str, layout: &str) -> Option<String> {
        let captures = self.regex.captures(text)?;
        let mut out = String::new();
        let mut rest = layout;
        while let Some(at) = rest.find('$') {
            out.push_str(rest.get(..at).unwrap_or_default());
            let behind = rest.get(at + 1..).unwrap_or_default();
            if let Some(behind) = behind.strip_prefix('$') {
                out.push('$');
                rest = behind;
                continue;
            }
            let Some((name, behind)) = reference(behind) else {
                out.push('$');
                rest = behind;
                continue;
            };
            rest = behind;
            let found = match group_number(name) {
                Some(number) => captures.get(number),
                None => {
                    let named = self.names.iter().enumerate().filter(|(_, own)| *own == name);
                    named.map(|(index, _)| index + 1).find_map(|number| captures.get(number))
                }
            };
            out.push_str(found.map_or("", |found| found.as_str()));
        }
        out.push_str(rest);
        Some(out)
    }
}

/// Parses a reference after a dollar sign, with or without braces, and returns the rest.
pub(super) fn reference(behind: &str) -> Option<(&str, &str)> {
    let braced = behind.strip_prefix('{');
    let start = braced.unwrap_or(behind);
    let end = start.find(|c: char| c != '_' && !c.is_alphanumeric()).unwrap_or(start.len());
    let (name, rest) = start.split_at_checked(end).filter(|(name, _)| !name.is_empty())?;
    match braced {
        Some(_) => Some((name, rest.strip_prefix('}')?)),
        None => Some((name, rest)),
    }
}

fn group_number(name: &str) -> Option<usize> {
    let canonical = name.bytes().all(|b| b.is_ascii_digit()) && (name.len() == 1 || !name.starts_with('0'));
    if canonical { name.parse().ok() } else { None }
}

/// The preceding item, as far as repetition operators depend on it.
#[derive(Clone, Copy, PartialEq)]
enum PrecedingItem {
    Nothing,
    Atom,
    Repetition,
}

struct RegexTranslator<'a> {
    rest: &'a str,
    out: String,
    names: Vec<String>,
    open: usize,
    last: PrecedingItem,
}

impl RegexTranslator<'_> {
    fn read(&mut self) -> Result<(), RegexError> {
        let whole = self.rest;
        while let Some(c) = self.rest.chars().next() {
            let behind = self.rest.get(c.len_utf8()..).unwrap_or_default();
            match c {
                '(' => {
                    self.group(behind)?;
                    continue;
                }
                ')' if self.open == 0 => return fault("unexpected )", whole),
                ')' => {
                    self.open -= 1;
                    self.out.push(')');
                    self.last = PrecedingItem::Atom;
                }
                '|' => {
                    self.out.push('|');
                    self.last = PrecedingItem::Nothing;
                }
                '*' | '+' | '?' => {
                    self.rest = behind;
                    self.repeat(&c.to_string())?;
                    continue;
                }
                '{' => {
                    if let Some((least, most, text, behind)) = repeat_counts(self.rest) {
                        self.rest = behind;
                        if least > MAX_REPEATS || most.is_some_and(|most| most > MAX_REPEATS || most < least)
                        {
                            return fault("invalid repeat count", text);
                        }
                        self.repeat(text)?;
                        continue;
                    }
                    self.atom(r"\{");
                }
                '[' => {
                    let (class, behind) = classes::bracketed(self.rest)?;
                    self.atom(&class);
                    self.rest = behind;
                    continue;
                }
                '\\' => {
                    self.escape(behind)?;
                    continue;
                }
                '.' | '^' | '$' => self.atom(c.encode_utf8(&mut [0; 4])),
                c => self.atom(&classes::literal(c)),
            }
            self.rest = behind;
        }
        if self.open > 0 { fault("missing closing )", whole) } else { Ok(()) }
    }

    fn atom(&mut self, text: &str) {
        self.out.push_str(text);
        self.last = PrecedingItem::Atom;
    }

    fn repeat(&mut self, operator: &str) -> Result<(), RegexError> {
        match self.last {
            PrecedingItem::Nothing => return fault("missing argument to repetition operator", operator),
            PrecedingItem::Repetition => return fault("invalid nested repetition operator", operator),
            PrecedingItem::Atom => {}
        }
        self.out.push_str(operator);
        if let Some(behind) = self.rest.strip_prefix('?') {
            self.out.push('?');
            self.rest = behind;
        }
        self.last = PrecedingItem::Repetition;
        Ok(())
    }

    fn group(&mut self, behind: &str) -> Result<(), RegexError> {
        let start = self.rest.len();
        let opened = "(".to_owned();
        let Some(special) = behind.strip_prefix('?') else {
            self.names.push(String::new());
            return self.opened(&opened, behind.len(), start);
        };
        if let Some(named) = special.strip_prefix("P<").or_else(|| special.strip_prefix('<')) {
            let name = named.split_once('>').map_or("", |(name, _)| name);
            if name.is_empty() || !name.bytes().all(|b| b == b'_' || b.is_ascii_alphanumeric()) {
                return fault("invalid named capture", self.rest);
            }
            self.names.push(name.to_owned());
            return self.opened(&opened, named.len() - name.len() - 1, start);
        }
        let end = special.find([':', ')']).unwrap_or(special.len());
        let (flags, rest) = special.split_at(end);
        let (set, unset) = flags.split_once('-').map_or((flags, None), |(set, unset)| (set, Some(unset)));
        let known = |flags: &str| flags.chars().all(|flag| "imsU".contains(flag));
        if !known(set) || unset.is_some_and(|unset| unset.is_empty() || !known(unset)) || rest.is_empty() {
            return fault("invalid or unsupported Perl syntax", self.rest);
        }
        if rest.starts_with(':') {
            return self.opened(&format!("(?{flags}:"), rest.len() - 1, start);
        }
        let flags = if flags.is_empty() { "(?:)".to_owned() } else { format!("(?{flags})") };
        self.out.push_str(&flags);
        self.last = PrecedingItem::Nothing;
        self.rest = self.rest.get(start - (rest.len() - 1)..).unwrap_or_default();
        Ok(())
    }

    fn opened(&mut self, text: &str, remaining: usize, start: usize) -> Result<(), RegexError> {
        self.open += 1;
        // More than real expressions need, and less than the limit of `regex`.
        if self.open > 200 {
            return fault("expression nests too deeply", self.rest);
        }
        self.out.push_str(text);
        self.last = PrecedingItem::Nothing;
        self.rest = self.rest.get(start - remaining..).unwrap_or_default();
        Ok(())
    }

    fn escape(&mut self, behind: &str) -> Result<(), RegexError> {
        if let Some(quoted) = behind.strip_prefix('Q') {
            let (text, rest) = quoted.split_once(r"\E").unwrap_or((quoted, ""));
            let literal: String = text.chars().map(classes::literal).collect();
            if !text.is_empty() {
                self.atom(&literal);
            }
            self.rest = self.rest.get(self.rest.len() - rest.len()..).unwrap_or_default();
            return Ok(());
        }
        let width = match behind.as_bytes().first() {
            Some(b'A' | b'z' | b'B') => {
                let text = self.rest.get(..2).unwrap_or_default().to_owned();
                self.atom(&text);
                2
            }
            Some(b'b') => {
                self.atom(r"(?-u:\b)");
                2
            }
            _ => {
                let (class, rest) = classes::escaped(self.rest)?;
                self.atom(&class.standing_alone());
                self.rest.len() - rest.len()
            }
        };
        self.rest = self.rest.get(width..).unwrap_or_default();
        Ok(())
    }
}

/// Parses `{2}`, `{2,}` or `{2,3}`; `None` for anything else, which is a literal.
fn repeat_counts(text: &str) -> Option<(u32, Option<u32>, &str, &str)> {
    let end = text.find('}')?;
    let (whole, behind) = text.split_at_checked(end + 1)?;
    let inner = whole.get(1..end)?;
    let number = |text: &str| -> Option<u32> {
        let canonical = text.len() == 1 || !text.starts_with('0');
        let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        (canonical && digits).then(|| text.parse().unwrap_or(u32::MAX))
    };
    let (least, most) = match inner.split_once(',') {
        None => {
            let exactly = number(inner)?;
            (exactly, Some(exactly))
        }
        Some((least, "")) => (number(least)?, None),
        Some((least, most)) => (number(least)?, Some(number(most)?)),
    };
    Some((least, most, whole, behind))
}
