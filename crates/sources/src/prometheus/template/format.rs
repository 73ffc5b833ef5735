//! Formatting like the fmt package of Go, and escapes for HTML, JavaScript and URLs.

use std::fmt::Write as _;

use api::gotext::quote;

use super::value::{Value, float_text};
use super::{BoundedOutput, EvalError, MAX_OUTPUT_BYTES};

/// Maximum field width; Go allows a hundred times as much.
const MAX_FIELD_WIDTH: i64 = 10_000;

/// `print`: a space between two operands that are not strings.
pub(super) fn sprint(values: &[Value]) -> Result<String, EvalError> {
    let mut out = BoundedOutput::default();
    let mut spaced = false;
    for value in values {
        let plain = !matches!(value, Value::Text(_));
        if spaced && plain {
            out.put(" ")?;
        }
        out.put(&value.print())?;
        spaced = plain;
    }
    Ok(out.0)
}

/// `println`: a space between operands, and a newline.
pub(super) fn sprintln(values: &[Value]) -> Result<String, EvalError> {
    let mut out = BoundedOutput::default();
    for (index, value) in values.iter().enumerate() {
        out.put(if index > 0 { " " } else { "" })?;
        out.put(&value.print())?;
    }
    out.put("\n")?;
    Ok(out.0)
}

/// Flags, width and precision of a verb.
#[derive(Default)]
struct FormatSpec {
    minus: bool,
    plus: bool,
    sharp: bool,
    space: bool,
    zero: bool,
    width: Option<usize>,
    precision: Option<usize>,
}

/// `printf`.
pub(super) fn sprintf(layout: &str, values: &[Value]) -> Result<String, EvalError> {
    let mut out = BoundedOutput::default();
    let mut chars = layout.chars().peekable();
    let mut next = 0;
    let mut reordered = false;
    while let Some(c) = chars.next() {
        if c != '%' {
            out.put(c.encode_utf8(&mut [0; 4]))?;
            continue;
        }
        let mut spec = FormatSpec::default();
        while let Some(flag) = chars.next_if(|c| "-+# 0".contains(*c)) {
            match flag {
                '-' => (spec.minus, spec.zero) = (true, false),
                '+' => spec.plus = true,
                '#' => spec.sharp = true,
                ' ' => spec.space = true,
                _ => spec.zero = !spec.minus,
            }
        }
        let mut bad = "";
        for precise in [false, true] {
            if precise && chars.next_if_eq(&'.').is_none() {
                break;
            }
            if let Some(index) = explicit(&mut chars) {
                reordered = true;
                next = index;
            }
            let mut number = None;
            if chars.next_if_eq(&'*').is_some() {
                match values.get(next) {
                    Some(Value::Int(wanted)) if (-MAX_FIELD_WIDTH..=MAX_FIELD_WIDTH).contains(wanted) => {
                        number = Some(wanted.unsigned_abs() as usize);
                        if *wanted < 0 {
                            (spec.minus, spec.zero) = (true, false);
                        }
                    }
                    _ => bad = if precise { "%!(BADPREC)" } else { "%!(BADWIDTH)" },
                }
                next += 1;
            } else {
                while let Some(digit) = chars.next_if(char::is_ascii_digit) {
                    let digit = digit.to_digit(10).unwrap_or(0) as usize;
                    let grown = number.unwrap_or(0) * 10 + digit;
                    number = Some(grown.min(MAX_FIELD_WIDTH as usize));
                }
            }
            if precise { spec.precision = Some(number.unwrap_or(0)) } else { spec.width = number }
        }
        if let Some(index) = explicit(&mut chars) {
            reordered = true;
            next = index;
        }
        out.put(bad)?;
        let Some(verb) = chars.next() else {
            out.put("%!(NOVERB)")?;
            break;
        };
        if verb == '%' {
            out.put("%")?;
            continue;
        }
        match values.get(next) {
            Some(value) => out.put(&verbed(&spec, verb, value))?,
            None => out.put(&format!("%!{verb}({})", if reordered { "BADINDEX" } else { "MISSING" }))?,
        }
        next += 1;
    }
    if !reordered && next < values.len() {
        let extra: Vec<String> = values.iter().skip(next).map(described).collect();
        out.put(&format!("%!(EXTRA {})", extra.join(", ")))?;
    }
    Ok(out.0)
}

/// Parses `[3]`: the third operand is next.
fn explicit(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Option<usize> {
    chars.next_if_eq(&'[')?;
    let mut number = String::new();
    for c in chars.by_ref() {
        if c == ']' {
            break;
        }
        number.push(c);
    }
    number.parse::<usize>().ok().and_then(|number| number.checked_sub(1)).or(Some(usize::MAX / 2))
}

fn described(value: &Value) -> String {
    match value {
        Value::Nothing => "<nil>".to_owned(),
        value => format!("{}={}", value.type_name(), value.print()),
    }
}

fn verbed(spec: &FormatSpec, verb: char, value: &Value) -> String {
    if verb == 'T' {
        return padded(spec, value.type_name());
    }
    let known = match value {
        Value::Nothing => (verb == 'v').then(|| padded(spec, "<nil>")),
        Value::Bool(truth) => matches!(verb, 't' | 'v').then(|| padded(spec, &truth.to_string())),
        Value::Int(int) => integer(spec, verb, i128::from(*int)),
        Value::Byte(byte) => integer(spec, verb, i128::from(*byte)),
        Value::Float(float) => fraction(spec, verb, *float),
        Value::Text(text) => words(spec, verb, text),
        Value::List(list) => {
            let items: Vec<String> =
                list.iter().map(|item| verbed(spec, verb, &Value::Text(item.clone()))).collect();
            Some(format!("[{}]", items.join(" ")))
        }
        Value::Map(map) => {
            let inner = |text: &str| verbed(spec, verb, &Value::text(text));
            let items: Vec<String> =
                map.iter().map(|(key, item)| format!("{}:{}", inner(key), inner(item))).collect();
            Some(format!("map[{}]", items.join(" ")))
        }
        Value::Query(_) => {
            let fields = ["Series", "LabelMatchers", "LabelValuesByName", "GroupBy", "GroupBySlice"];
            let fields = fields.iter().filter_map(|field| value.field(field).ok());
            let items: Vec<String> = fields.map(|field| verbed(spec, verb, &field)).collect();
            Some(format!("{{{}}}", items.join(" ")))
        }
        Value::Resource(resource) => words(spec, verb, &resource.to_string()),
    };
    known.unwrap_or_else(|| match value {
        Value::Nothing => format!("%!{verb}(<nil>)"),
        value => format!("%!{verb}({})", described(value)),
    })
}

fn padded(spec: &FormatSpec, text: &str) -> String {
    let missing = spec.width.unwrap_or(0).saturating_sub(text.chars().count()).min(MAX_OUTPUT_BYTES);
    if spec.minus {
        return format!("{text}{}", " ".repeat(missing));
    }
    let fill = if spec.zero { "0" } else { " " };
    format!("{}{text}", fill.repeat(missing))
}

fn words(spec: &FormatSpec, verb: char, text: &str) -> Option<String> {
    let cut: String = match spec.precision {
        Some(most) if matches!(verb, 's' | 'v' | 'q') => text.chars().take(most).collect(),
        _ => text.to_owned(),
    };
    match verb {
        'v' if spec.sharp => Some(padded(spec, &quote(&cut))),
        's' | 'v' => Some(padded(spec, &cut)),
        'q' if spec.sharp && !cut.contains('`') => Some(padded(spec, &format!("`{cut}`"))),
        'q' => Some(padded(spec, &quote(&cut))),
        'x' | 'X' => {
            let most = spec.precision.unwrap_or(usize::MAX);
            let mut hex = String::new();
            for byte in cut.bytes().take(most) {
                let _ = write!(hex, "{byte:02x}");
            }
            Some(padded(spec, &if verb == 'X' { hex.to_uppercase() } else { hex }))
        }
        _ => None,
    }
}

fn integer(spec: &FormatSpec, verb: char, number: i128) -> Option<String> {
    let magnitude = number.unsigned_abs();
    let character =
        || u32::try_from(number).ok().and_then(char::from_u32).unwrap_or(char::REPLACEMENT_CHARACTER);
    let (prefix, digits) = match verb {
        'v' | 'd' => ("", magnitude.to_string()),
        'b' => (if spec.sharp { "0b" } else { "" }, format!("{magnitude:b}")),
        'o' => (if spec.sharp { "0" } else { "" }, format!("{magnitude:o}")),
        'O' => ("0o", format!("{magnitude:o}")),
        'x' => (if spec.sharp { "0x" } else { "" }, format!("{magnitude:x}")),
        'X' => (if spec.sharp { "0X" } else { "" }, format!("{magnitude:X}")),
        'c' => return Some(padded(spec, &character().to_string())),
        'q' => return Some(padded(spec, &format!("'{}'", character()))),
        'U' => return Some(padded(spec, &format!("U+{magnitude:04X}"))),
        _ => return None,
    };
    let sign = match (number < 0, spec.plus, spec.space) {
        (true, ..) => "-",
        (false, true, _) => "+",
        (false, false, true) => " ",
        _ => "",
    };
    let least = match (spec.precision, spec.width) {
        (Some(precision), _) => precision,
        (None, Some(width)) if spec.zero => width.saturating_sub(sign.len()),
        _ => 0,
    };
    let zeros = "0".repeat(least.saturating_sub(digits.len()).min(MAX_OUTPUT_BYTES));
    let spaces = FormatSpec { minus: spec.minus, width: spec.width, ..FormatSpec::default() };
    Some(padded(&spaces, &format!("{sign}{prefix}{zeros}{digits}")))
}

fn fraction(spec: &FormatSpec, verb: char, float: f64) -> Option<String> {
    // Digits beyond this are zero for every 64-bit number.
    let precision = |default: usize| spec.precision.unwrap_or(default).min(1100);
    let text = match verb {
        'f' | 'F' => format!("{float:.*}", precision(6)),
        'e' | 'E' => {
            let text = format!("{float:.*e}", precision(6));
            let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
            let exponent: i32 = exponent.parse().unwrap_or(0);
            let sign = if exponent < 0 { '-' } else { '+' };
            let text = format!("{mantissa}e{sign}{:02}", exponent.unsigned_abs());
            if verb == 'E' { text.to_uppercase() } else { text }
        }
        'g' | 'G' | 'v' => {
            let rounded = match spec.precision {
                Some(digits) => format!("{float:.*e}", digits.clamp(1, 1100) - 1).parse().unwrap_or(float),
                None => float,
            };
            let text = float_text(rounded);
            if verb == 'G' { text.to_uppercase() } else { text }
        }
        _ => return None,
    };
    let text = if spec.plus && float >= 0.0 { format!("+{text}") } else { text };
    if !spec.zero {
        return Some(padded(spec, &text));
    }
    let (sign, digits) = text.split_at(usize::from(text.starts_with(['+', '-'])));
    let rest = FormatSpec {
        zero: true,
        width: spec.width.map(|width| width.saturating_sub(sign.len())),
        ..FormatSpec::default()
    };
    Some(format!("{sign}{}", padded(&rest, digits)))
}

/// `html`.
pub(super) fn html(text: &str) -> Result<String, EvalError> {
    escaped(text, |c| match c {
        '\0' => Some("\u{fffd}".to_owned()),
        '"' => Some("&#34;".to_owned()),
        '\'' => Some("&#39;".to_owned()),
        '&' => Some("&amp;".to_owned()),
        '<' => Some("&lt;".to_owned()),
        '>' => Some("&gt;".to_owned()),
        _ => None,
    })
}

/// `js`.
pub(super) fn js(text: &str) -> Result<String, EvalError> {
    escaped(text, |c| match c {
        '\\' => Some("\\\\".to_owned()),
        '\'' => Some("\\'".to_owned()),
        '"' => Some("\\\"".to_owned()),
        '<' | '>' | '&' | '=' => Some(format!("\\u{:04X}", c as u32)),
        // Go leaves DEL as it is.
        c if c.is_control() && c != '\u{7f}' => Some(format!("\\u{:04X}", c as u32)),
        _ => None,
    })
}

/// `urlquery`.
pub(super) fn urlquery(text: &str) -> Result<String, EvalError> {
    escaped(text, |c| match c {
        ' ' => Some("+".to_owned()),
        c if c.is_ascii_alphanumeric() || "-_.~".contains(c) => None,
        c => {
            let mut out = String::new();
            for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                let _ = write!(out, "%{byte:02X}");
            }
            Some(out)
        }
    })
}

fn escaped(text: &str, escape: impl Fn(char) -> Option<String>) -> Result<String, EvalError> {
    let mut out = BoundedOutput::default();
    for c in text.chars() {
        match escape(c) {
            Some(escape) => out.put(&escape)?,
            None => out.put(c.encode_utf8(&mut [0; 4]))?,
        }
    }
    Ok(out.0)
}
