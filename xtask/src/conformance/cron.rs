//! Compares the cron trigger with recorded answers: activity and value at an instant.

use anyhow::Context;
use api::autoscaling::v2::MetricTarget;
use jiff::Timestamp;
use quantity::Quantity;
use scalers::ScalerError;
use scalers::cron::CronScaler;
use serde_json::Value;

use super::metric_specs::{same_error, trigger};
use super::{Difference, Outcome};

/// Replays all records.
pub(crate) fn replay(records: &[Value]) -> Vec<Outcome> {
    records.iter().map(|record| Outcome::of(record, |_| check(record))).collect()
}

fn check(record: &Value) -> anyhow::Result<Vec<Difference>> {
    let input = record.get("in").context("no `in`")?;
    let out = record.get("out").context("no `out`")?;
    let now: Timestamp = input.get("now").and_then(Value::as_str).context("no `now`")?.parse()?;
    let mut trigger = trigger(input)?;
    "cron".clone_into(&mut trigger.type_);
    let crashed = out.get("recoveredPanic").is_some();
    let error = |at: &str, got: ScalerError| {
        let wanted = out.get(at).and_then(Value::as_str).unwrap_or_default();
        let got = String::from(got);
        let same = crashed || same_error(wanted, &got);
        let difference = Difference { at: at.to_owned(), expected: wanted.to_owned(), got };
        Ok(if same { Vec::new() } else { vec![difference] })
    };
    let cron = match CronScaler::new(&trigger) {
        Ok(cron) => cron,
        Err(got) => return error("buildError", got),
    };
    let mut found = Vec::new();
    let mut compare = |at: &str, got: Value| {
        let wanted = out.get(at).unwrap_or(&Value::Null);
        if *wanted != got {
            found.push(Difference::json(at, wanted, &got));
        }
    };
    compare("buildError", Value::Null);
    let spec = cron.spec().external.clone().context("no external metric")?;
    compare("metricName", spec.metric.name.into());
    let target: MetricTarget = serde_json::from_value(out.get("target").cloned().unwrap_or_default())
        .context("no target was recorded")?;
    if target != spec.target {
        compare("target", serde_json::to_value(&spec.target)?);
    }
    let read = match cron.at("", now) {
        Ok(read) => read,
        Err(got) => return error("queryError", got),
    };
    compare("queryError", Value::Null);
    compare("active", read.active.into());
    let value = read.values.first().map(|value| value.value.clone());
    let wanted = out.get("value").and_then(Value::as_str).map(Quantity::parse).transpose()?;
    if value != wanted {
        compare("value", value.map(|value| value.to_string()).into());
    }
    Ok(found)
}
