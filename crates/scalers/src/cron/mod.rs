//! cron: a number of replicas between two times of day.

pub mod schedule;
#[cfg(test)]
mod tests;

use jiff::Timestamp;
use runtime::Clock;
use schedule::CronSchedule;

use crate::prelude::*;

/// The scaler type `cron`.
pub const TYPE: ScalerType = ScalerType {
    name: "cron",
    about: "So many replicas between two times of the day, in a time zone.",
    display: "cronScaler",
    parameters: Parameters::PARAMETERS,
    build,
    samples: &[Sample::offline(
        &[
            ("start", "0 8 * * *"),
            ("end", "0 18 * * *"),
            ("timezone", "Europe/Berlin"),
            ("desiredReplicas", "3"),
        ],
        &[],
    )],
    ..ScalerType::DEFAULT
};

crate::parameters! {
    /// Parameters of cron.
    pub struct Parameters of "error parsing cron metadata" {
        /// Start of the period: minute, hour, day of month, month, day of week, e.g. `0 8 * * 1-5`.
        start: String = "start" in [Metadata], required;
        /// End of the period, in the same format.
        end: String = "end" in [Metadata], required;
        /// The time zone of both, e.g. `Europe/Berlin`.
        timezone: String = "timezone" in [Metadata], required;
        /// Number of replicas during the period.
        desired_replicas: i64 = "desiredReplicas" in [Metadata], required;
    }
    check Parameters::check
}

impl Parameters {
    fn check(&mut self, _: &Trigger) -> Result<(), ParseError> {
        CronSchedule::parse(&self.start).map_err(|error| format!("error parsing start schedule: {error}"))?;
        CronSchedule::parse(&self.end).map_err(|error| format!("error parsing end schedule: {error}"))?;
        if self.start == self.end {
            return Err("start and end can not have exactly same time input".into());
        }
        if self.desired_replicas == 0 {
            return Err("no desiredReplicas specified".into());
        }
        Ok(())
    }
}

/// The scaler of a cron trigger.
pub struct CronScaler {
    spec: MetricSpec,
    start: CronSchedule,
    end: CronSchedule,
    timezone: String,
    desired_replicas: i64,
    clock: Clock,
}

impl CronScaler {
    /// Reads the parameters of a trigger.
    pub fn new(trigger: &Trigger) -> Result<Self, ScalerError> {
        target_type(trigger)?;
        let Parameters { start, end, timezone, desired_replicas } = Parameters::read(trigger)?;
        let plain = |text: &str| {
            text.replace(' ', "").replace('*', "x").replace('/', "Sl").replace('?', "Qm").replace(',', "Cm")
        };
        let name = format!("cron-{timezone}-{}-{}", plain(&start), plain(&end));
        Ok(Self {
            spec: external(trigger, &name, whole(1)),
            start: CronSchedule::parse(&start).map_err(ScalerError::new)?,
            end: CronSchedule::parse(&end).map_err(ScalerError::new)?,
            timezone,
            desired_replicas,
            clock: Clock::system(),
        })
    }

    /// The metric and its target.
    pub fn spec(&self) -> &MetricSpec {
        &self.spec
    }

    /// Whether a time is between start and end: the next end is not later than the next start.
    pub fn is_open(&self, now: Timestamp) -> Result<bool, ScalerError> {
        let zone = schedule::zone(&self.timezone)
            .ok_or_else(|| scaler_error!("unable to load timezone: unknown time zone {}", self.timezone))?;
        let start = self.start.next(now, &zone);
        let end = self.end.next(now, &zone);
        // A time that never comes counts as the latest.
        let late = |time: Option<Timestamp>| time.unwrap_or(Timestamp::MAX);
        Ok(late(end) <= late(start))
    }

    /// The reading at a time.
    pub fn at(&self, metric: &str, now: Timestamp) -> Result<Reading, ScalerError> {
        let open = self.is_open(now)?;
        let replicas = if open { self.desired_replicas as f64 } else { 0.0 };
        Ok(Reading::one(metric, milli(replicas), open))
    }
}

fn build(trigger: &Trigger, backends: &Backends) -> Result<Arc<dyn Scaler>, ScalerError> {
    Ok(Arc::new(CronScaler { clock: backends.web.settings().clock.clone(), ..CronScaler::new(trigger)? }))
}

impl Scaler for CronScaler {
    fn specs(&self) -> ScalerFuture<'_, Vec<MetricSpec>> {
        Box::pin(async { Ok(vec![self.spec.clone()]) })
    }

    fn read<'a>(&'a self, metric: &'a str) -> ScalerFuture<'a, Reading> {
        Box::pin(async move { self.at(metric, self.clock.now()) })
    }
}
