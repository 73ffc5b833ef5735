//! Constants: numbers and escapes.

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Number {
    Int(i64),
    /// A number above 63 bits, which is an error when used.
    Big(u64),
    Float(f64),
}

/// Length of the number-like text at the start.
pub(super) fn scan(text: &str) -> usize {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let lower = unsigned.to_ascii_lowercase();
    let (digits, exponent): (&str, &str) = match lower.as_bytes() {
        [b'0', b'x', ..] => ("0123456789abcdef_x.", "p"),
        [b'0', b'o', ..] => ("01234567_o", ""),
        [b'0', b'b', ..] => ("01_b", ""),
        _ => ("0123456789_.", "e"),
    };
    let mut before = ' ';
    let mut end = 0;
    for (at, c) in lower.char_indices() {
        let sign = matches!(c, '+' | '-') && !exponent.is_empty() && exponent.contains(before);
        if !(digits.contains(c) || exponent.contains(c) || sign) {
            break;
        }
        before = c;
        end = at + c.len_utf8();
    }
    text.len() - unsigned.len() + end
}

/// Parses a Go constant; complex numbers are not supported.
pub(super) fn parse(text: &str) -> Option<Number> {
    let (negative, unsigned) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if unsigned.starts_with('_') || unsigned.ends_with('_') || unsigned.contains("__") {
        return None;
    }
    let plain = unsigned.replace('_', "").to_ascii_lowercase();
    let (radix, digits) = match plain.as_bytes() {
        [b'0', b'x', ..] => (16, plain.get(2..)?),
        [b'0', b'o', ..] => (8, plain.get(2..)?),
        [b'0', b'b', ..] => (2, plain.get(2..)?),
        [b'0', _, ..] if plain.bytes().all(|b| b.is_ascii_digit()) => (8, plain.as_str()),
        _ => (10, plain.as_str()),
    };
    if digits.starts_with(['+', '-']) {
        return None;
    }
    if let Ok(magnitude) = u64::from_str_radix(digits, radix) {
        let signed = i128::from(magnitude) * if negative { -1 } else { 1 };
        return match i64::try_from(signed) {
            Ok(int) => Some(Number::Int(int)),
            Err(_) if !negative => Some(Number::Big(magnitude)),
            Err(_) => None,
        };
    }
    if radix != 10 || !plain.contains(['.', 'e']) {
        return None;
    }
    let float: f64 = plain.parse().ok().filter(|float: &f64| float.is_finite())?;
    Some(Number::Float(if negative { -float } else { float }))
}

/// Unescapes a double-quoted string.
pub(super) fn unescape(inner: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(inner.len());
    let mut rest = inner;
    while let Some(c) = rest.chars().next() {
        let behind = rest.get(c.len_utf8()..)?;
        if c != '\\' {
            bytes.extend_from_slice(rest.get(..c.len_utf8())?.as_bytes());
            rest = behind;
            continue;
        }
        let (meant, behind) = escape(behind, '"')?;
        match meant {
            Escaped::Byte(byte) => bytes.push(byte),
            Escaped::Char(c) => bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
        rest = behind;
    }
    Some(
        String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()),
    )
}

/// Parses a character constant.
pub(super) fn character(inner: &str) -> Option<char> {
    if let Some(behind) = inner.strip_prefix('\\') {
        let (meant, rest) = escape(behind, '\'')?;
        let c = match meant {
            Escaped::Byte(byte) => char::from(byte),
            Escaped::Char(c) => c,
        };
        return rest.is_empty().then_some(c);
    }
    let mut chars = inner.chars();
    chars.next().filter(|_| chars.next().is_none())
}

enum Escaped {
    Byte(u8),
    Char(char),
}

fn escape(behind: &str, quote: char) -> Option<(Escaped, &str)> {
    let c = behind.chars().next()?;
    let rest = behind.get(c.len_utf8()..)?;
    let digits = |text: &str, count: usize, radix: u32| -> Option<u32> {
        let digits = text.get(..count).filter(|digits| digits.chars().all(|c| c.is_digit(radix)))?;
        u32::from_str_radix(digits, radix).ok()
    };
    let plain = match c {
        'a' => '\u{7}',
        'b' => '\u{8}',
        'f' => '\u{c}',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'v' => '\u{b}',
        '\\' => '\\',
        c if c == quote => c,
        '0'..='7' => {
            let byte = u8::try_from(digits(behind, 3, 8)?).ok()?;
            return Some((Escaped::Byte(byte), behind.get(3..)?));
        }
        'x' => {
            let byte = u8::try_from(digits(rest, 2, 16)?).ok()?;
            return Some((Escaped::Byte(byte), rest.get(2..)?));
        }
        'u' | 'U' => {
            let count = if c == 'u' { 4 } else { 8 };
            return Some((Escaped::Char(char::from_u32(digits(rest, count, 16)?)?), rest.get(count..)?));
        }
        _ => return None,
    };
    Some((Escaped::Char(plain), rest))
}
