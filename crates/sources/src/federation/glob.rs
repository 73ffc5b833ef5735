//! Glob patterns: `*` for any text, `?` for one character, `[0-9]` for one of several.

use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

/// Maximum length of a pattern in characters.
const MAX_PATTERN_CHARS: usize = 256;

/// A pattern that a whole name must match.
#[derive(Clone, PartialEq, Eq)]
pub struct GlobPattern {
    text: Box<str>,
    parts: Box<[GlobToken]>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum GlobToken {
    One(char),
    AnyOne,
    OneOf { ranges: Vec<(char, char)>, not: bool },
    Any,
}

/// Why a pattern is not valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GlobError {
    /// The pattern is empty.
    #[error("the pattern is empty; `*` matches all names")]
    Empty,
    /// The pattern is too long.
    #[error("the pattern has more than {MAX_PATTERN_CHARS} characters")]
    TooLong,
    /// A bracket is not closed or is empty.
    #[error("`[` needs characters and a `]` after it, as in `[0-9]`")]
    Bracket,
}

impl GlobPattern {
    /// Parses a pattern.
    pub fn parse(text: &str) -> Result<Self, GlobError> {
        if text.is_empty() {
            return Err(GlobError::Empty);
        }
        if text.chars().count() > MAX_PATTERN_CHARS {
            return Err(GlobError::TooLong);
        }
        let mut parts = Vec::new();
        let mut rest = text.chars();
        while let Some(character) = rest.next() {
            match character {
                '*' if parts.last() == Some(&GlobToken::Any) => {}
                '*' => parts.push(GlobToken::Any),
                '?' => parts.push(GlobToken::AnyOne),
                '[' => parts.push(bracket(&mut rest)?),
                other => parts.push(GlobToken::One(other)),
            }
        }
        Ok(Self { text: text.into(), parts: parts.into() })
    }

    /// Whether the whole name matches. The number of steps is bounded by the product of both lengths.
    pub fn matches(&self, name: &str) -> bool {
        let name: Vec<char> = name.chars().collect();
        let (mut part, mut at) = (0, 0);
        // Where to continue if the last `*` takes one more character.
        let mut again: Option<(usize, usize)> = None;
        loop {
            match (self.parts.get(part), name.get(at)) {
                (None, None) => return true,
                (Some(GlobToken::Any), _) => {
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

/// Parses the characters after an opening bracket.
fn bracket(rest: &mut std::str::Chars<'_>) -> Result<GlobToken, GlobError> {
    let end = rest.as_str().find(']').ok_or(GlobError::Bracket)?;
    let (inside, after) = rest.as_str().split_at_checked(end).ok_or(GlobError::Bracket)?;
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
            (Some('-'), Some(_)) => return Err(GlobError::Bracket),
            _ => ranges.push((first, first)),
        }
    }
    if ranges.is_empty() { Err(GlobError::Bracket) } else { Ok(GlobToken::OneOf { ranges, not }) }
}

impl GlobToken {
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

impl fmt::Display for GlobPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for GlobPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pattern({})", self.text)
    }
}

impl<'de> Deserialize<'de> for GlobPattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(&String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use regex::Regex;

    use super::*;

    fn matches(pattern: &str, name: &str) -> bool {
        GlobPattern::parse(pattern).unwrap().matches(name)
    }

    #[test]
    fn patterns_match_whole_names() {
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
            assert!(matches(pattern, good), "{pattern} {good}");
            assert!(!matches(pattern, bad), "{pattern} {bad}");
        }
        assert!(matches("*", "") && matches("*", "anything"));
    }

    #[test]
    fn invalid_patterns_are_rejected() {
        assert_eq!(GlobPattern::parse(""), Err(GlobError::Empty));
        assert_eq!(GlobPattern::parse(&"a".repeat(257)), Err(GlobError::TooLong));
        for broken in ["[", "a[", "[]", "[!]", "[b-a]", "[a"] {
            assert_eq!(GlobPattern::parse(broken), Err(GlobError::Bracket), "{broken}");
        }
    }

    #[test]
    fn many_stars_terminate() {
        assert!(!matches(&"*a".repeat(100), &"a".repeat(99)));
        assert!(!matches(&("*a".repeat(100) + "b"), &"a".repeat(5000)));
    }

    proptest! {
        #[test]
        fn globs_agree_with_regexes(pattern in "[ab*?]{1,8}", name in "[abc]{0,8}") {
            let expression: String = pattern.chars().map(|c| match c {
                '*' => ".*".to_owned(),
                '?' => ".".to_owned(),
                other => other.to_string(),
            }).collect();
            let expected = Regex::new(&format!("^(?:{expression})$")).unwrap().is_match(&name);
            prop_assert_eq!(matches(&pattern, &name), expected);
        }

        #[test]
        fn arbitrary_patterns_do_not_panic(pattern in ".{0,40}", name in ".{0,40}") {
            if let Ok(pattern) = GlobPattern::parse(&pattern) {
                pattern.matches(&name);
            }
        }
    }
}
