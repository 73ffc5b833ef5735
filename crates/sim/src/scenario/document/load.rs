//! The load shapes of the `Scenario` document.

use serde::{Deserialize, Serialize};

use crate::scenario::values::{Extent, TimeOfDay, TimeOfWeek};
use crate::time::Millis;

/// One shape of a load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum LoadShape {
    /// A constant level.
    Constant(f64),
    /// A step to another level.
    Step(StepShape),
    /// A straight line from one level to another.
    Ramp(RampShape),
    /// A spike.
    Spike(SpikeShape),
    /// A wave with a period of one day.
    Daily(DailyShape),
    /// A wave with a period of one week.
    Weekly(WeeklyShape),
    /// A wave with any period.
    Wave(WaveShape),
    /// Random noise with the scenario's seed.
    Noise(NoiseShape),
    /// Numbers from a CSV file.
    Trace(TraceShape),
}

/// A step to another level.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StepShape {
    /// Level before `at`; default 0.
    #[serde(default)]
    pub from: f64,
    /// Level from `at` on.
    pub to: f64,
    /// Time of the change, from the start of the scenario.
    pub at: Millis,
    /// Time at which the level changes back; default: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Millis>,
}

/// A straight line from one level to another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RampShape {
    /// Level until `start`; default 0.
    #[serde(default)]
    pub from: f64,
    /// Level from `end` on.
    pub to: f64,
    /// Start of the ramp, from the start of the scenario; default `0s`.
    #[serde(default)]
    pub start: Millis,
    /// End of the ramp.
    pub end: Millis,
}

/// A spike.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SpikeShape {
    /// Highest level.
    pub height: f64,
    /// Start, from the start of the scenario.
    pub at: Millis,
    /// Time to the highest level; default `0s`.
    #[serde(default)]
    pub rise: Millis,
    /// Time at the highest level; default `1m`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold: Option<Millis>,
    /// Time back to zero; default `0s`.
    #[serde(default)]
    pub fall: Millis,
}

/// A wave with a period of one day.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DailyShape {
    /// Lowest level, half a day from the peak.
    pub low: f64,
    /// Highest level.
    pub high: f64,
    /// Time of the peak, such as `15:00` (UTC).
    pub peak: TimeOfDay,
}

/// A wave with a period of one week.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WeeklyShape {
    /// Lowest level, half a week from the peak; can be negative to reduce other shapes.
    pub low: f64,
    /// Highest level.
    pub high: f64,
    /// Time of the peak, such as `Wed 12:00` (UTC).
    pub peak: TimeOfWeek,
}

/// A wave with any period.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WaveShape {
    /// Lowest level.
    pub low: f64,
    /// Highest level.
    pub high: f64,
    /// Time from one peak to the next.
    pub period: Millis,
    /// Time of the first peak, from the start of the scenario; default: after half a period.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak: Option<Millis>,
}

/// Random noise with the scenario's seed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NoiseShape {
    /// Largest deviation in each direction: units per second, or a percentage of the other shapes such as `10%`.
    pub amplitude: Extent,
    /// Time between two random levels; default `1m`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub period: Option<Millis>,
}

/// Numbers from a CSV file with rows of time and value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TraceShape {
    /// The file, relative to the file of the scenario. Times are seconds from the start of the scenario, seconds since
    /// 1970, or RFC 3339; a first line with names is skipped.
    pub file: String,
    /// The name of the column with the values; default: the second column.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<String>,
    /// Whether values between two rows are interpolated; otherwise each row holds until the next. Default true.
    #[serde(default = "yes")]
    pub interpolate: bool,
    /// Whether the trace starts again after its last row; otherwise the last value stays. Default false.
    #[serde(default)]
    pub repeat: bool,
    /// `Clock` (the default) uses the times as they are; `Start` shifts them so that the first row is at the start of the scenario.
    #[serde(default)]
    pub align: Alignment,
    /// Factor for the values; default 1.
    #[serde(default = "one")]
    pub scale: f64,
}

/// Alignment of a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Alignment {
    /// At its own time.
    #[default]
    Clock,
    /// At the start of the scenario.
    Start,
}

fn yes() -> bool {
    true
}

fn one() -> f64 {
    1.0
}
