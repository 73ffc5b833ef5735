//! Times and durations, and their methods.

use std::sync::Arc;

use jiff::civil::Weekday;
use jiff::tz::TimeZone;
use jiff::{Span, Zoned};

use super::Given;
use crate::formula::budget::Budget;
use crate::formula::catalog::Function;
use crate::formula::dates::{format_date, parse_date, parse_span, zone};
use crate::formula::error::EvalError;
use crate::formula::operators::{between, later};
use crate::formula::text::span_text;
use crate::formula::types::Type;
use crate::formula::value::Value;

/// Nanoseconds from the beginning of the year 1, Go's zero time, to 1970. Go rounds times to multiples of a unit since then, so that
/// weeks begin on Mondays.
const NANOSECONDS_BEFORE_1970: i128 = 62_135_596_800 * 1_000_000_000;

pub(super) fn call(function: Function, given: &Given<'_>, run: &mut Budget) -> Result<Value, EvalError> {
    run.spend(20)?;
    match function {
        Function::Now if !given.is_given(0) => Ok(time(run.now().to_zoned(TimeZone::UTC))),
        Function::Now => match given.value(0) {
            Value::Zone(zone) => Ok(time(run.now().to_zoned(zone.clone()))),
            other => Err(given.refused(other)),
        },
        Function::Duration => parse_span(given.text(0)?).map(Value::Span),
        Function::Timezone => zone(given.text(0)?).map(Value::Zone),
        _ => {
            let layout = given.is_given(1).then(|| given.text(1)).transpose()?;
            let place = given.is_given(2).then(|| given.text(2)).transpose()?;
            let place = place.map_or(Ok(TimeZone::UTC), zone)?;
            parse_date(given.text(0)?, layout, &place).map(time)
        }
    }
}

fn time(zoned: Zoned) -> Value {
    Value::Time(Arc::new(zoned))
}

/// The result type of a method, if it exists.
pub(in crate::formula) fn method_type(base: &Type, name: &str) -> Option<Type> {
    Some(match (base, name) {
        (Type::Span, "Hours" | "Minutes" | "Seconds") => Type::Float,
        (Type::Span, "Abs" | "Round" | "Truncate") | (Type::Time, "Sub") => Type::Span,
        (Type::Time, "Add" | "AddDate" | "In" | "UTC" | "Local" | "Truncate" | "Round") => Type::Time,
        (Type::Time, "Before" | "After" | "Equal" | "IsZero") => Type::Bool,
        (Type::Span | Type::Zone, "String") | (Type::Time, "String" | "Format") => Type::Text,
        (Type::Span, "Milliseconds" | "Microseconds" | "Nanoseconds")
        | (
            Type::Time,
            "Year" | "Month" | "Day" | "Hour" | "Minute" | "Second" | "Nanosecond" | "Weekday" | "YearDay"
            | "Unix" | "UnixMilli" | "UnixMicro" | "UnixNano",
        ) => Type::Int,
        _ => return None,
    })
}

/// Calls a method.
pub(in crate::formula) fn method(base: &Value, name: &str, arguments: &[Value]) -> Result<Value, EvalError> {
    let found = match base {
        Value::Span(span) => span_method(*span, name, arguments),
        Value::Time(at) => time_method(at, name, arguments)?,
        Value::Zone(_) if name == "String" && arguments.is_empty() => Some(Value::text(&base.to_string())),
        Value::Nil => return Err(format!("cannot fetch {name} from <nil>").into()),
        _ => None,
    };
    found.ok_or_else(|| {
        format!("type {} has no method {name} with {} such arguments", base.type_name(), arguments.len())
            .into()
    })
}

fn span_method(span: i64, name: &str, arguments: &[Value]) -> Option<Value> {
    let float = |unit: f64| Value::Float(span as f64 / unit);
    Some(match (name, arguments) {
        ("Hours", []) => float(3600e9),
        ("Minutes", []) => float(60e9),
        ("Seconds", []) => float(1e9),
        ("Milliseconds", []) => Value::Int(span / 1_000_000),
        ("Microseconds", []) => Value::Int(span / 1_000),
        ("Nanoseconds", []) => Value::Int(span),
        ("Abs", []) => Value::Span(span.saturating_abs()),
        ("Truncate", [Value::Span(unit)]) if *unit > 0 => Value::Span(span - span % unit),
        ("Round", [Value::Span(unit)]) if *unit > 0 => {
            let rest = span % unit;
            let up = rest.unsigned_abs() * 2 >= unit.unsigned_abs();
            Value::Span((span - rest).saturating_add(if up { unit * span.signum() } else { 0 }))
        }
        ("Truncate" | "Round", [Value::Span(_)]) => Value::Span(span),
        ("String", []) => Value::text(&span_text(span)),
        _ => return None,
    })
}

fn time_method(at: &Zoned, name: &str, arguments: &[Value]) -> Result<Option<Value>, EvalError> {
    let int = |number: i64| Ok(Some(Value::Int(number)));
    let nanoseconds = at.timestamp().as_nanosecond();
    let since_year_one = nanoseconds + NANOSECONDS_BEFORE_1970;
    match (name, arguments) {
        ("Year", []) => int(at.year().into()),
        ("Month", []) => int(at.month().into()),
        ("Day", []) => int(at.day().into()),
        ("Hour", []) => int(at.hour().into()),
        ("Minute", []) => int(at.minute().into()),
        ("Second", []) => int(at.second().into()),
        ("Nanosecond", []) => int(at.subsec_nanosecond().into()),
        ("YearDay", []) => int(at.day_of_year().into()),
        // Sunday is 0.
        ("Weekday", []) => int(Weekday::to_sunday_zero_offset(at.weekday()).into()),
        ("Unix", []) => int(nanoseconds.div_euclid(1_000_000_000) as i64),
        ("UnixMilli", []) => int(nanoseconds.div_euclid(1_000_000) as i64),
        ("UnixMicro", []) => int(nanoseconds.div_euclid(1_000) as i64),
        ("UnixNano", []) => int(nanoseconds as i64),
        ("IsZero", []) => Ok(Some(Value::Bool(at.year() <= 1))),
        ("UTC" | "Local", []) => Ok(Some(time(at.with_time_zone(TimeZone::UTC)))),
        ("In", [Value::Zone(zone)]) => Ok(Some(time(at.with_time_zone(zone.clone())))),
        ("Add", [Value::Span(span)]) => later(at, (*span).into()).map(Some),
        ("Truncate", [Value::Span(unit)]) if *unit > 0 => {
            later(at, -since_year_one.rem_euclid((*unit).into())).map(Some)
        }
        ("Round", [Value::Span(unit)]) if *unit > 0 => {
            let unit = i128::from(*unit);
            let rest = since_year_one.rem_euclid(unit);
            later(at, if rest * 2 >= unit { unit - rest } else { -rest }).map(Some)
        }
        ("Truncate" | "Round", [Value::Span(_)]) => Ok(Some(time(at.clone()))),
        ("AddDate", [Value::Int(years), Value::Int(months), Value::Int(days)]) => {
            let moved = with_date_added(at, *years, *months, *days);
            moved.map(|moved| Some(time(moved))).map_err(|_| "time is out of range".into())
        }
        ("Sub", [Value::Time(other)]) => Ok(Some(between(at, other))),
        ("Before", [Value::Time(other)]) => Ok(Some(Value::Bool(at.timestamp() < other.timestamp()))),
        ("After", [Value::Time(other)]) => Ok(Some(Value::Bool(at.timestamp() > other.timestamp()))),
        ("Equal", [Value::Time(other)]) => Ok(Some(Value::Bool(at.timestamp() == other.timestamp()))),
        ("Format", [Value::Text(layout)]) => format_date(at, layout).map(|text| Some(Value::text(&text))),
        ("String", []) => Ok(Some(Value::text(&Value::Time(Arc::new(at.clone())).to_string()))),
        _ => Ok(None),
    }
}

/// Go counts days beyond the end of a month into the next one: one month after January 31 is a day in March.
fn with_date_added(at: &Zoned, years: i64, months: i64, days: i64) -> Result<Zoned, jiff::Error> {
    let to_month = Span::new().try_years(years)?.try_months(months)?;
    let to_day = Span::new().try_days(days.saturating_add(i64::from(at.day()) - 1))?;
    let date = at.date().first_of_month().checked_add(to_month)?.checked_add(to_day)?;
    date.to_datetime(at.time()).to_zoned(at.time_zone().clone())
}
