//! Compares quantities with recorded results of `resource.Quantity`.

use std::cmp::Ordering;
use std::fmt::Display;

use anyhow::{Context as _, bail};
use quantity::{Format, Quantity};
use serde_json::Value;

use crate::conformance::Difference;

/// Compares one line of `quantity.jsonl`; an error means that the line is invalid.
pub(crate) fn check(record: &Value) -> anyhow::Result<Vec<Difference>> {
    let mut found = FoundQuantity(Vec::new());
    match text(record, "op")? {
        "parse" | "json" => check_reading(record, &mut found)?,
        "arith" => {
            let (a, b) = (parse(text(record, "a")?)?, parse(text(record, "b")?)?);
            let (mut sum, mut difference) = (a.clone(), a.clone());
            sum.add(&b);
            difference.sub(&b);
            check_full("add", get(record, "add")?, &sum, &mut found)?;
            check_full("sub", get(record, "sub")?, &difference, &mut found)?;
            let order = match a.cmp(&b) {
                Ordering::Less => -1,
                Ordering::Equal => 0,
                Ordering::Greater => 1,
            };
            found.compare("cmp", &integer(record, "cmp")?, &order);
        }
        "sum" => {
            let mut sum = Quantity::default();
            for term in get(record, "in")?.as_array().context("`in` is not a list")? {
                sum.add(&parse(term.as_str().context("`in` holds something else than texts")?)?);
            }
            check_full("out", get(record, "out")?, &sum, &mut found)?;
        }
        "new" => {
            let (n, format) = (integer(record, "n")?, format_named(text(record, "format")?)?);
            let quantity = match text(record, "ctor")? {
                "quantity" => Quantity::new(n, format),
                "milli" => Quantity::from_milli(n, format),
                "scaled" => Quantity::from_scaled(n, scale(record)?, format),
                other => bail!("unknown constructor {other}"),
            };
            check_full("out", get(record, "out")?, &quantity, &mut found)?;
        }
        "scaled" => {
            // A result that does not fit 64 bits is an artefact in Go and saturates here.
            if record.get("overflow").is_none() {
                let quantity = parse(text(record, "in")?)?;
                found.compare("out", &integer(record, "out")?, &quantity.scaled_value(scale(record)?));
            }
        }
        "roundUp" => {
            let mut quantity = parse(text(record, "in")?)?;
            let exact = quantity.round_up(scale(record)?);
            found.compare("exact", &flag(record, "exact")?, &exact);
            check_short("out", get(record, "out")?, &quantity, &mut found)?;
        }
        "mul" => {
            let mut quantity = parse(text(record, "in")?)?;
            let exact = quantity.mul(integer(record, "by")?);
            found.compare("exact", &flag(record, "exact")?, &exact);
            check_short("out", get(record, "out")?, &quantity, &mut found)?;
        }
        other => bail!("unknown operation {other}"),
    }
    Ok(found.0)
}

/// Differences collected so far.
struct FoundQuantity(Vec<Difference>);

impl FoundQuantity {
    fn compare<T: PartialEq + Display + ?Sized>(&mut self, at: impl Display, expected: &T, got: &T) {
        if expected != got {
            let (expected, got) = (expected.to_string(), got.to_string());
            self.0.push(Difference { at: at.to_string(), expected, got });
        }
    }
}

fn check_reading(record: &Value, found: &mut FoundQuantity) -> anyhow::Result<()> {
    let input = text(record, "in")?;
    let is_json = text(record, "op")? == "json";
    if exponent_beyond_32_bits(input) && record.get("error").is_none() {
        // The reference keeps the low 32 bits; the notes on the vectors say not to copy that.
        return Ok(());
    }
    let result = if is_json { Quantity::from_json_text(input) } else { Quantity::parse(input) };
    let expected = match record.get("error") {
        Some(error) => Err(error.as_str().context("`error` is not a text")?),
        None => Ok(get(record, "out")?),
    };
    match (expected, result) {
        (Ok(out), Ok(quantity)) if is_json => {
            check_short("out", out, &quantity, found)?;
            found.compare("out.json", text(out, "json")?, &json(&quantity)?);
        }
        (Ok(out), Ok(quantity)) => check_full("out", out, &quantity, found)?,
        (Err(expected), Err(error)) => found.compare("error", expected, &error.to_string()),
        (Ok(out), Err(error)) => found.compare("error", &out.to_string(), &format!("error: {error}")),
        (Err(expected), Ok(quantity)) => {
            found.compare("out", &format!("error: {expected}"), &quantity.to_string());
        }
    }
    Ok(())
}

fn check_full(at: &str, out: &Value, quantity: &Quantity, found: &mut FoundQuantity) -> anyhow::Result<()> {
    check_short(at, out, quantity, found)?;
    let string = text(out, "string")?;
    let canonical = if out.get("canonical").is_some() { text(out, "canonical")? } else { string };
    found.compare(format_args!("{at}.canonical"), canonical, &quantity.canonical());
    found.compare(format_args!("{at}.json"), text(out, "json")?, &json(quantity)?);
    found.compare(format_args!("{at}.sign"), &integer(out, "sign")?, &quantity.sign().into());
    let approx = text(out, "approx")?;
    let expected: f64 = approx.parse().with_context(|| format!("`approx` is not a number: {approx}"))?;
    // Not a number: zero or infinity times the other, where ours is the number itself.
    if !expected.is_nan() {
        found.compare(format_args!("{at}.approx"), &expected, &quantity.as_f64());
    }

    let overflow = out.get("overflow").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let numbers =
        [("value", quantity.value()), ("milli", quantity.milli_value()), ("nano", quantity.scaled_value(-9))];
    for (name, got) in numbers {
        if !overflow.iter().any(|field| field == name) {
            found.compare(format_args!("{at}.{name}"), &integer(out, name)?, &got);
        }
    }
    Ok(())
}

fn check_short(at: &str, out: &Value, quantity: &Quantity, found: &mut FoundQuantity) -> anyhow::Result<()> {
    found.compare(format_args!("{at}.string"), text(out, "string")?, &quantity.to_string());
    let format = match text(out, "format")? {
        // The zero value of the reference has no format yet; ours is decimal from the start.
        "" if quantity.is_zero() => "DecimalSI",
        format => format,
    };
    found.compare(format_args!("{at}.format"), format, format_name(quantity.format()));
    Ok(())
}

fn json(quantity: &Quantity) -> anyhow::Result<String> {
    Ok(serde_json::to_string(quantity)?)
}

fn parse(text: &str) -> anyhow::Result<Quantity> {
    Quantity::parse(text).with_context(|| text.to_owned())
}

/// Whether the text ends in an exponent that is a number, but too large.
fn exponent_beyond_32_bits(text: &str) -> bool {
    let text = text.trim_matches('"');
    let exponent = text.rsplit_once(['e', 'E']).and_then(|(_, exponent)| exponent.parse::<i64>().ok());
    exponent.is_some_and(|exponent| i32::try_from(exponent).is_err())
}

fn format_name(format: Format) -> &'static str {
    match format {
        Format::DecimalSi => "DecimalSI",
        Format::BinarySi => "BinarySI",
        Format::DecimalExponent => "DecimalExponent",
    }
}

fn format_named(name: &str) -> anyhow::Result<Format> {
    match name {
        "DecimalSI" => Ok(Format::DecimalSi),
        "BinarySI" => Ok(Format::BinarySi),
        "DecimalExponent" => Ok(Format::DecimalExponent),
        _ => bail!("unknown format {name}"),
    }
}

fn get<'a>(record: &'a Value, field: &str) -> anyhow::Result<&'a Value> {
    record.get(field).with_context(|| format!("`{field}` is missing"))
}

fn text<'a>(record: &'a Value, field: &str) -> anyhow::Result<&'a str> {
    get(record, field)?.as_str().with_context(|| format!("`{field}` is not a text"))
}

fn integer(record: &Value, field: &str) -> anyhow::Result<i64> {
    get(record, field)?.as_i64().with_context(|| format!("`{field}` is not a 64-bit integer"))
}

fn flag(record: &Value, field: &str) -> anyhow::Result<bool> {
    get(record, field)?.as_bool().with_context(|| format!("`{field}` is not a boolean"))
}

fn scale(record: &Value) -> anyhow::Result<i32> {
    i32::try_from(integer(record, "scale")?).context("`scale` exceeds 32 bits")
}
