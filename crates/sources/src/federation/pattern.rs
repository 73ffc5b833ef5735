//! Patterns for names: `*` for any text, `?` for one character, `[0-9]` for one of several.

use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

/// Characters of a pattern at most.
const LONGEST: usize = 256;

/// A pattern that a whole name must fit.
#[derive(Clone, PartialEq, Eq)]
pub struct Pattern {
    text: Box<str>,
    parts: Box<[Part]>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    One(char),
    AnyOne,
    OneOf { ranges: Vec<(char, char)>, not: bool },
    Any,
}

/// Why a text is no pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// It is empty, and no name is.
    #[error("the pattern is empty; `*` fits all names")]
    Empty,
    /// It is too long.
    #[error("the pattern has more than {LONGEST} characters")]
    TooLong,
    /// A bracket does not end, or there is nothing in it.
    #[error("`[` needs characters and a `]` after it, as in `[0-9]`")]
    Bracket,
}

impl Pattern {
    /// Reads a pattern.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        if text.is_empty() {
            return Err(PatternError::Empty);
        }
        if text.chars().count() > LONGEST {
            return Err(PatternError::TooLong);
        }
        let mut parts = Vec::new();
        let mut rest = text.chars();
        while let Some(character) = rest.next() {
            match character {
                '*' if parts.last() == Some(&Part::Any) => {}
                '*' => parts.push(Part::Any),
                '?' => parts.push(Part::AnyOne),
                '[' => parts.push(bracket(&mut rest)?),
                other => parts.push(Part::One(other)),
            }
        }
        Ok(Self { text: text.into(), parts: parts.into() })
    }

    /// Whether the whole name fits. Takes no more steps than the lengths of pattern and name multiplied.
    pub fn fits(&self, name: &str) -> bool {
        let name: Vec<char> = name.chars().collect();
        let (mut part, mut at) = (0, 0);
        // Where to go on when the last `*` takes one character more.
        let mut again: Option<(usize, usize)> = None;
        loop {
            match (self.parts.get(part), name.get(at)) {
                (None, None) => return true,
                (Some(Part::Any), _) => {
                    again = Some((part, at));
                    part += 1;
                }
                (Some(one), Some(character)) if one.is(*character) => (part, at) = (part + 1, at + 1),
                _ => match again {
                    Some((star, from)) if from < name.len() => {
                        again = Some((star, from + 1));
                        (part, at) = (star + 1, from + 1);
                    }
                    _ => return false,
                },
            }
        }
    }
}

/// Reads what is in brackets, after the first one.
fn bracket(rest: &mut std::str::Chars<'_>) -> Result<Part, PatternError> {
    let end = rest.as_str().find(']').ok_or(PatternError::Bracket)?;
    let (inside, after) = rest.as_str().split_at_checked(end).ok_or(PatternError::Bracket)?;
    *rest = after.get(1..).unwrap_or_default().chars();
    let (not, inside) = match inside.strip_prefix(['!', '^']) {
        Some(inside) => (true, inside),
        None => (false, inside),
    };
    let mut characters = inside.chars().peekable();
    let mut ranges = Vec::new();
    while let Some(first) = characters.next() {
        let mut ahead = characters.clone();
        match (ahead.next(), ahead.next()) {
            (Some('-'), Some(last)) if first <= last => {
                ranges.push((first, last));
                characters = ahead;
            }
            (Some('-'), Some(_)) => return Err(PatternError::Bracket),
            _ => ranges.push((first, first)),
        }
    }
    if ranges.is_empty() { Err(PatternError::Bracket) } else { Ok(Part::OneOf { ranges, not }) }
}

impl Part {
    fn is(&self, character: char) -> bool {
        match self {
            Self::One(own) => *own == character,
            Self::AnyOne => true,
            Self::OneOf { ranges, not } => {
                ranges.iter().any(|(first, last)| (*first..=*last).contains(&character)) != *not
            }
            Self::Any => false,
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pattern({})", self.text)
    }
}

impl<'de> Deserialize<'de> for Pattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(&String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use proptest::prelude::*;
    use regex::Regex;

    use super::*;

    fn fits(pattern: &str, name: &str) -> bool {
        Pattern::parse(pattern).unwrap().fits(name)
    }

    #[test]
    fn patterns_fit_whole_names() {
        for (pattern, good, bad) in [
            ("qps", "qps", "qps_total"),
            ("s[0-9]*-*", "s12-prometheus-queue", "sx-prometheus"),
            ("http_*", "http_requests", "https_requests"),
            ("*_total", "a_total_total", "a_total_"),
            ("a?c", "aéc", "ac"),
            ("[!a-c]x", "dx", "ax"),
            ("[a-]", "-", "b"),
            ("a**b", "ab", "a"),
        ] {
            assert!(fits(pattern, good), "{pattern} {good}");
            assert!(!fits(pattern, bad), "{pattern} {bad}");
        }
        assert!(fits("*", "") && fits("*", "anything"));
    }

    #[test]
    fn what_is_no_pattern_says_why() {
        assert_eq!(Pattern::parse(""), Err(PatternError::Empty));
        assert_eq!(Pattern::parse(&"a".repeat(257)), Err(PatternError::TooLong));
        for broken in ["[", "a[", "[]", "[!]", "[b-a]", "[a"] {
            assert_eq!(Pattern::parse(broken), Err(PatternError::Bracket), "{broken}");
        }
    }

    #[test]
    fn many_stars_end() {
        assert!(!fits(&"*a".repeat(100), &"a".repeat(99)));
        assert!(!fits(&("*a".repeat(100) + "b"), &"a".repeat(5000)));
    }

    proptest! {
        #[test]
        fn they_mean_what_the_expression_means(pattern in "[ab*?]{1,8}", name in "[abc]{0,8}") {
            let expression: String = pattern.chars().map(|c| match c {
                '*' => ".*".to_owned(),
                '?' => ".".to_owned(),
                other => other.to_string(),
            }).collect();
            let expected = Regex::new(&format!("^(?:{expression})$")).unwrap().is_match(&name);
            prop_assert_eq!(fits(&pattern, &name), expected);
        }

        #[test]
        fn nothing_breaks_them(pattern in ".{0,40}", name in ".{0,40}") {
            if let Ok(pattern) = Pattern::parse(&pattern) {
                pattern.fits(&name);
            }
        }
    }
}
