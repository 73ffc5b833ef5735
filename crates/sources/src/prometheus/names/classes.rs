//! Characters and character classes of Go regular expressions.

/// Meaning of an escape, as members of a bracketed class.
pub(super) enum RegexClass {
    /// One character.
    One(char),
    /// Several members, and whether the class is negated.
    Many(String, bool),
}

impl RegexClass {
    /// Text outside of brackets.
    pub(super) fn standing_alone(&self) -> String {
        match self {
            Self::One(c) => literal(*c),
            Self::Many(members, false) => format!("[{members}]"),
            Self::Many(members, true) => format!("[^{members}]"),
        }
    }
}

const DIGITS: &str = "0-9";
const SPACES: &str = r"\t\n\f\r\x20";
const WORDS: &str = "0-9A-Za-z_";
const POSIX: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space",
    "upper", "word", "xdigit",
];

/// Escapes a literal character.
pub(super) fn literal(c: char) -> String {
    if c.is_ascii_alphanumeric() || c == '_' { c.to_string() } else { format!("\\x{{{:x}}}", c as u32) }
}

/// Why an expression is not valid, in the words of Go.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("error parsing regexp: {0}")]
pub struct RegexError(String);

impl RegexError {
    /// An error about the part `at` of an expression.
    pub(super) fn new(reason: &str, at: &str) -> Self {
        Self(format!("{reason}: `{at}`"))
    }

    /// An expression that Go accepts but this process does not.
    pub(super) fn unsupported(text: &str) -> Self {
        Self(format!("`{text}` is too large or not understood"))
    }
}

pub(super) fn fault<T>(reason: &str, at: &str) -> Result<T, RegexError> {
    Err(RegexError::new(reason, at))
}

/// Parses an escape; the text starts with the backslash.
pub(super) fn escaped(text: &str) -> Result<(RegexClass, &str), RegexError> {
    let invalid = || RegexError::new("invalid escape sequence", text);
    let behind = text.get(1..).unwrap_or_default();
    let Some(c) = behind.chars().next() else { return fault("trailing backslash at end of expression", "") };
    let rest = behind.get(c.len_utf8()..).unwrap_or_default();
    let one = |c: char| Ok((RegexClass::One(c), rest));
    let many = |members: &str, not: bool| Ok((RegexClass::Many(members.to_owned(), not), rest));
    match c {
        'd' => many(DIGITS, false),
        'D' => many(DIGITS, true),
        's' => many(SPACES, false),
        'S' => many(SPACES, true),
        'w' => many(WORDS, false),
        'W' => many(WORDS, true),
        'a' => one('\u{7}'),
        'f' => one('\u{c}'),
        'n' => one('\n'),
        'r' => one('\r'),
        't' => one('\t'),
        'v' => one('\u{b}'),
        'p' | 'P' => property(c == 'P', rest),
        '0'..='7' => {
            // One digit other than zero would refer back to a group, which there is not.
            let digits = behind.bytes().take(3).take_while(|b| matches!(b, b'0'..=b'7')).count();
            if c != '0' && digits < 2 {
                return Err(invalid());
            }
            let (octal, rest) = behind.split_at_checked(digits).ok_or_else(invalid)?;
            let code = u32::from_str_radix(octal, 8).map_err(|_| invalid())?;
            Ok((RegexClass::One(char::from_u32(code).ok_or_else(invalid)?), rest))
        }
        'x' => {
            let (hex, rest) = match rest.strip_prefix('{') {
                Some(braced) => braced.split_once('}').ok_or_else(invalid)?,
                None => rest.split_at_checked(2).ok_or_else(invalid)?,
            };
            let digits = !hex.is_empty() && hex.bytes().all(|b| b.is_ascii_hexdigit());
            let code = u32::from_str_radix(hex, 16).ok().filter(|_| digits).ok_or_else(invalid)?;
            Ok((RegexClass::One(char::from_u32(code).ok_or_else(invalid)?), rest))
        }
        c if c.is_ascii() && !c.is_ascii_alphanumeric() => one(c),
        _ => Err(invalid()),
    }
}

/// `\pL`, `\p{Greek}`, `\p{^Greek}`.
fn property(not: bool, rest: &str) -> Result<(RegexClass, &str), RegexError> {
    let unknown = || RegexError::new("invalid character class range", rest);
    let (name, rest) = match rest.strip_prefix('{') {
        Some(braced) => braced.split_once('}').ok_or_else(unknown)?,
        None => rest.split_at_checked(rest.chars().next().map_or(1, char::len_utf8)).ok_or_else(unknown)?,
    };
    let (not, name) = name.strip_prefix('^').map_or((not, name), |name| (!not, name));
    if name.is_empty() || !name.bytes().all(|b| b == b'_' || b.is_ascii_alphanumeric()) {
        return Err(unknown());
    }
    Ok((RegexClass::Many(format!(r"\p{{{name}}}"), not), rest))
}

/// A class in brackets, which the text begins with; how it is written, and what follows.
pub(super) fn bracketed(text: &str) -> Result<(String, &str), RegexError> {
    let missing = || RegexError::new("missing closing ]", text);
    let mut rest = text.get(1..).unwrap_or_default();
    let mut out = "[".to_owned();
    if let Some(behind) = rest.strip_prefix('^') {
        out.push('^');
        rest = behind;
    }
    let mut first = true;
    loop {
        if let (false, Some(behind)) = (first, rest.strip_prefix(']')) {
            out.push(']');
            return Ok((out, behind));
        }
        first = false;
        if let Some((name, behind)) = rest.strip_prefix("[:").and_then(|named| named.split_once(":]")) {
            let plain = name.strip_prefix('^').unwrap_or(name);
            if !POSIX.contains(&plain) {
                return fault("invalid character class range", rest);
            }
            out.push_str(&format!("[:{name}:]"));
            rest = behind;
            continue;
        }
        let (low, behind) = member(rest).ok_or_else(missing)??;
        rest = behind;
        let RegexClass::One(low) = low else {
            out.push_str(&low.standing_alone());
            continue;
        };
        let range = rest.strip_prefix('-').filter(|behind| !behind.is_empty() && !behind.starts_with(']'));
        let Some(behind) = range else {
            out.push_str(&literal(low));
            continue;
        };
        let (high, behind) = member(behind).ok_or_else(missing)??;
        match high {
            RegexClass::One(high) if high >= low => {
                out.push_str(&format!("{}-{}", literal(low), literal(high)));
            }
            _ => return fault("invalid character class range", rest),
        }
        rest = behind;
    }
}

/// One member of a class; nothing at the end of the text.
fn member(text: &str) -> Option<Result<(RegexClass, &str), RegexError>> {
    let c = text.chars().next()?;
    if c == '\\' {
        return Some(escaped(text));
    }
    Some(Ok((RegexClass::One(c), text.get(c.len_utf8()..).unwrap_or_default())))
}
