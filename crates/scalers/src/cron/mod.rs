//! cron: so many replicas between two times of the day.

pub mod schedule;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use api::autoscaling::v2::MetricSpec;
use jiff::Timestamp;
use schedule::Schedule;

use crate::backends::Backends;
use crate::metric::{external, milli, target_type, whole};
use crate::table::Type;
use crate::{Answer, Error, Reading, Scaler, Trigger};

/// cron.
pub const TYPE: Type = Type {
    name: "cron",
    about: "So many replicas between two times of the day, in a time zone.",
    display: "cronScaler",
    parameters: Parameters::PARAMETERS,
    push: false,
    build,
};

crate::parameters! {
    /// What cron accepts.
    pub struct Parameters of "error parsing cron metadata" {
        /// When the time begins: minute, hour, day of month, month, day of week, e.g. `0 8 * * 1-5`.
        start: String = "start" in [Metadata], required;
        /// When it ends, likewise.
        end: String = "end" in [Metadata], required;
        /// The time zone of both, e.g. `Europe/Berlin`.
        timezone: String = "timezone" in [Metadata], required;
        /// How many replicas there are in between.
        desired_replicas: i64 = "desiredReplicas" in [Metadata], required;
    }
    check Parameters::check
}

impl Parameters {
    fn check(&mut self, _: &Trigger) -> Result<(), String> {
        Schedule::parse(&self.start).map_err(|error| format!("error parsing start schedule: {error}"))?;
        Schedule::parse(&self.end).map_err(|error| format!("error parsing end schedule: {error}"))?;
        if self.start == self.end {
            return Err("start and end can not have exactly same time input".to_owned());
        }
        if self.desired_replicas == 0 {
            return Err("no desiredReplicas specified".to_owned());
        }
        Ok(())
    }
}

/// A trigger, ready to be asked at any time.
pub struct Cron {
    spec: MetricSpec,
    start: Schedule,
    end: Schedule,
    timezone: String,
    desired_replicas: i64,
}

impl Cron {
    /// Reads it.
    pub fn new(trigger: &Trigger) -> Result<Self, Error> {
        target_type(trigger)?;
        let Parameters { start, end, timezone, desired_replicas } = Parameters::read(trigger)?;
        let plain = |text: &str| {
            text.replace(' ', "").replace('*', "x").replace('/', "Sl").replace('?', "Qm").replace(',', "Cm")
        };
        let name = format!("cron-{timezone}-{}-{}", plain(&start), plain(&end));
        Ok(Self {
            spec: external(trigger, &name, whole(1)),
            start: Schedule::parse(&start).map_err(Error::new)?,
            end: Schedule::parse(&end).map_err(Error::new)?,
            timezone,
            desired_replicas,
        })
    }

    /// The metric and its target.
    pub fn spec(&self) -> &MetricSpec {
        &self.spec
    }

    /// Whether a time is between start and end: whether the next end comes no later than the next start.
    pub fn is_open(&self, now: Timestamp) -> Result<bool, Error> {
        let zone = schedule::zone(&self.timezone).ok_or_else(|| {
            Error::new(format!("unable to load timezone: unknown time zone {}", self.timezone))
        })?;
        let start = self.start.next(now, &zone);
        let end = self.end.next(now, &zone);
        // What never comes is later than everything else.
        let late = |time: Option<Timestamp>| time.unwrap_or(Timestamp::MAX);
        Ok(late(end) <= late(start))
    }

    /// What there is at a time.
    pub fn at(&self, metric: &str, now: Timestamp) -> Result<Reading, Error> {
        let open = self.is_open(now)?;
        let replicas = if open { self.desired_replicas as f64 } else { 0.0 };
        Ok(Reading::one(metric, milli(replicas), open))
    }
}

fn build(trigger: &Trigger, _: &Backends) -> Result<Arc<dyn Scaler>, Error> {
    Ok(Arc::new(Cron::new(trigger)?))
}

impl Scaler for Cron {
    fn specs(&self) -> Answer<'_, Vec<MetricSpec>> {
        Box::pin(async { Ok(vec![self.spec.clone()]) })
    }

    fn read<'a>(&'a self, metric: &'a str) -> Answer<'a, Reading> {
        Box::pin(async move { self.at(metric, Timestamp::now()) })
    }
}
