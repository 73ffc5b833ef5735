//! The shapes of a load as they are written.

use serde::{Deserialize, Serialize};

use crate::scenario::values::{Extent, TimeOfDay, TimeOfWeek};
use crate::time::Millis;

/// One summand of a load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum LoadShape {
    /// Always the same.
    Constant(f64),
    /// Another level from a moment on.
    Step(StepShape),
    /// A straight line from one level to another.
    Ramp(RampShape),
    /// Up and down again.
    Spike(SpikeShape),
    /// A wave with a period of one day.
    Daily(DailyShape),
    /// A wave with a period of one week.
    Weekly(WeeklyShape),
    /// A wave with any period.
    Wave(WaveShape),
    /// Random, with the scenario's seed.
    Noise(NoiseShape),
    /// Numbers from a CSV file.
    Trace(TraceShape),
}

/// Another level from a moment on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StepShape {
    /// The level before; default 0.
    #[serde(default)]
    pub from: f64,
    /// The level from `at` on.
    pub to: f64,
    /// When, from the start of the scenario.
    pub at: Millis,
    /// When it goes back; default: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Millis>,
}

/// A straight line from one level to another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RampShape {
    /// The level until `start`; default 0.
    #[serde(default)]
    pub from: f64,
    /// The level from `end` on.
    pub to: f64,
    /// Where the line begins, from the start of the scenario; default `0s`.
    #[serde(default)]
    pub start: Millis,
    /// Where the line ends.
    pub end: Millis,
}

/// Up and down again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SpikeShape {
    /// The level on top.
    pub height: f64,
    /// When it begins, from the start of the scenario.
    pub at: Millis,
    /// How long it takes to the top; default `0s`.
    #[serde(default)]
    pub rise: Millis,
    /// How long it stays there; default `1m`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold: Option<Millis>,
    /// How long it takes back; default `0s`.
    #[serde(default)]
    pub fall: Millis,
}

/// A wave with a period of one day.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DailyShape {
    /// The lowest level, half a day from the peak.
    pub low: f64,
    /// The highest level.
    pub high: f64,
    /// When it is highest, such as `15:00` (UTC).
    pub peak: TimeOfDay,
}

/// A wave with a period of one week.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WeeklyShape {
    /// The lowest level, half a week from the peak; may be below zero to take away from other shapes.
    pub low: f64,
    /// The highest level.
    pub high: f64,
    /// When it is highest, such as `Wed 12:00` (UTC).
    pub peak: TimeOfWeek,
}

/// A wave with any period.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WaveShape {
    /// The lowest level.
    pub low: f64,
    /// The highest level.
    pub high: f64,
    /// From one peak to the next.
    pub period: Millis,
    /// When it is highest for the first time, from the start of the scenario; default: after half a period.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak: Option<Millis>,
}

/// Random, with the scenario's seed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NoiseShape {
    /// How far it goes to each side: units per second, or a percentage of the other shapes such as `10%`.
    pub amplitude: Extent,
    /// How long it takes from one random level to the next; default `1m`.
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
    /// Whether levels between two rows lie on a straight line; otherwise each row holds until the next. Default true.
    #[serde(default = "yes")]
    pub interpolate: bool,
    /// Whether the trace begins again after its last row; otherwise the last level stays. Default false.
    #[serde(default)]
    pub repeat: bool,
    /// `Clock` (the default) takes times as they are; `Start` lays the first row at the start of the scenario.
    #[serde(default)]
    pub align: Alignment,
    /// What values are multiplied with; default 1.
    #[serde(default = "one")]
    pub scale: f64,
}

/// Where the first row of a trace is laid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Alignment {
    /// Where its time says.
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
