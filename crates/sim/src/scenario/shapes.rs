//! Converts load shapes of the document to a [`LoadCurve`].

use std::path::Path;
use std::sync::Arc;

use api::yaml::SourceFile;
use jiff::Timestamp;

use super::Files;
use super::document::{Alignment, LoadShape, TraceShape};
use super::faults::Faults;
use super::limits::{MAX_SCENARIO_DELAY, MAX_SCENARIO_DURATION, MAX_UNITS_PER_SECOND};
use super::values::{DAY, TimeOfDay, TimeOfWeek, WEEK};
use crate::load::trace::TraceOptions;
use crate::load::{Amplitude, CurveShape, LoadCurve, Noise, Trace};
use crate::random::Seed;
use crate::time::Millis;

/// Maximum size of a trace file.
const MAX_TRACE_BYTES: usize = 128 << 20;
/// The shortest period of a wave or of noise.
const MIN_PERIOD: Millis = Millis::from_secs(1);

/// The part of a scenario that shapes need.
pub(super) struct Setting<'a> {
    pub(super) files: &'a dyn Files,
    pub(super) start: Timestamp,
    pub(super) duration: Millis,
}

/// Checks and builds the load written at `path`.
pub(super) fn load(
    faults: &mut Faults<'_>,
    setting: &Setting<'_>,
    path: &str,
    shapes: &[LoadShape],
    seed: Seed,
) -> LoadCurve {
    let (mut sum, mut noises) = (Vec::new(), Vec::new());
    for (index, shape) in shapes.iter().enumerate() {
        let path = format!("{path}[{index}]");
        if let LoadShape::Noise(noise) = shape {
            let period = noise.period.unwrap_or(Millis::from_mins(1));
            let amplitude = match noise.amplitude.0 {
                Amplitude::Units(units) => Amplitude::Units(faults.number(
                    &format!("{path}.noise.amplitude"),
                    units,
                    0.0,
                    MAX_UNITS_PER_SECOND,
                )),
                Amplitude::Share(share) => {
                    let percent =
                        faults.number(&format!("{path}.noise.amplitude"), share * 100.0, 0.0, 1000.0);
                    Amplitude::Share(percent / 100.0)
                }
            };
            let period = faults.length(&format!("{path}.noise.period"), period, MIN_PERIOD, WEEK);
            noises.push(Noise { amplitude, period, seed: seed.part(index as u64) });
        } else {
            sum.extend(one(faults, setting, &path, shape));
        }
    }
    LoadCurve::new(sum, noises)
}

fn one(faults: &mut Faults<'_>, setting: &Setting<'_>, path: &str, shape: &LoadShape) -> Option<CurveShape> {
    let level = |faults: &mut Faults<'_>, field: &str, level: f64| {
        faults.number(&format!("{path}.{field}"), level, -MAX_UNITS_PER_SECOND, MAX_UNITS_PER_SECOND)
    };
    let moment = |faults: &mut Faults<'_>, field: &str, at: Millis| {
        faults.length(&format!("{path}.{field}"), at, Millis::ZERO, MAX_SCENARIO_DURATION)
    };
    Some(match shape {
        LoadShape::Constant(units) => CurveShape::Constant(level(faults, "constant", *units)),
        LoadShape::Step(step) => {
            let at = moment(faults, "step.at", step.at);
            let until = step.until.map_or(Millis::NEVER, |until| moment(faults, "step.until", until));
            if until <= at {
                faults.add(&format!("{path}.step.until"), "`until` must be later than `at`");
            }
            CurveShape::Step {
                from: level(faults, "step.from", step.from),
                to: level(faults, "step.to", step.to),
                at,
                until,
            }
        }
        LoadShape::Ramp(ramp) => {
            let (start, end) =
                (moment(faults, "ramp.start", ramp.start), moment(faults, "ramp.end", ramp.end));
            if end <= start {
                faults.add(&format!("{path}.ramp.end"), "`end` must be later than `start`");
            }
            CurveShape::Ramp {
                from: level(faults, "ramp.from", ramp.from),
                to: level(faults, "ramp.to", ramp.to),
                start,
                end,
            }
        }
        LoadShape::Spike(spike) => CurveShape::Spike {
            height: level(faults, "spike.height", spike.height),
            at: moment(faults, "spike.at", spike.at),
            rise: moment(faults, "spike.rise", spike.rise),
            hold: moment(faults, "spike.hold", spike.hold.unwrap_or(Millis::from_mins(1))),
            fall: moment(faults, "spike.fall", spike.fall),
        },
        LoadShape::Daily(daily) => CurveShape::Wave {
            low: level(faults, "daily.low", daily.low),
            high: level(faults, "daily.high", daily.high),
            period: DAY,
            peak: daily.peak.0 - TimeOfDay::of(setting.start).0,
        },
        LoadShape::Weekly(weekly) => CurveShape::Wave {
            low: level(faults, "weekly.low", weekly.low),
            high: level(faults, "weekly.high", weekly.high),
            period: WEEK,
            peak: weekly.peak.0 - TimeOfWeek::of(setting.start).0,
        },
        LoadShape::Wave(wave) => {
            let period =
                faults.length(&format!("{path}.wave.period"), wave.period, MIN_PERIOD, MAX_SCENARIO_DURATION);
            CurveShape::Wave {
                low: level(faults, "wave.low", wave.low),
                high: level(faults, "wave.high", wave.high),
                period,
                peak: moment(faults, "wave.peak", wave.peak.unwrap_or(Millis(period.0 / 2))),
            }
        }
        LoadShape::Noise(_) => return None,
        LoadShape::Trace(trace) => {
            CurveShape::Trace(Arc::new(self::trace(faults, setting, &format!("{path}.trace"), trace)?))
        }
    })
}

/// Reads and checks a trace. Problems are reported with their position in the trace file.
fn trace(faults: &mut Faults<'_>, setting: &Setting<'_>, path: &str, shape: &TraceShape) -> Option<Trace> {
    let at_file = format!("{path}.file");
    let scale =
        faults.number(&format!("{path}.scale"), shape.scale, -MAX_UNITS_PER_SECOND, MAX_UNITS_PER_SECOND);
    let scenario = faults.document().source.name.clone();
    let file = Path::new(&*scenario).parent().unwrap_or(Path::new("")).join(&shape.file);
    let shown = file.display().to_string();
    let bytes = match setting.files.read(&file) {
        Ok(bytes) if bytes.len() <= MAX_TRACE_BYTES => bytes,
        Ok(_) => {
            faults.add(&at_file, format!("{shown} is larger than {} MiB", MAX_TRACE_BYTES >> 20));
            return None;
        }
        Err(error) => {
            faults.add(&at_file, format!("cannot read {shown}: {error}"));
            return None;
        }
    };
    let reading = TraceOptions {
        column: shape.column.as_deref(),
        interpolate: shape.interpolate,
        repeat: shape.repeat,
        from_start: shape.align == Alignment::Start,
        scale,
        start: setting.start,
    };
    let trace = match SourceFile::from_bytes(shown.as_str(), &bytes)
        .and_then(|source| Trace::parse(&source, &reading))
    {
        Ok(trace) => trace,
        Err(problem) => {
            faults.push(problem);
            return None;
        }
    };
    let (first, last) = trace.range();
    if !trace.repeats() && (last < Millis::ZERO || first > setting.duration) {
        let message = format!(
            "the trace lies outside the scenario: it covers {} to {}, the scenario {} to {}",
            first.after(setting.start),
            last.after(setting.start),
            setting.start,
            setting.duration.after(setting.start),
        );
        let hint = "`align: Start` lays its first row at the start of the scenario".to_owned();
        faults.add_with_hint(&at_file, message, Some(hint));
    }
    Some(trace)
}

/// Checks a delay against [`MAX_SCENARIO_DELAY`].
pub(super) fn delay(faults: &mut Faults<'_>, path: &str, given: Option<Millis>, default: Millis) -> Millis {
    given.map_or(default, |given| faults.length(path, given, Millis::ZERO, MAX_SCENARIO_DELAY))
}
