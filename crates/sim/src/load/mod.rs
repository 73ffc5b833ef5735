//! Load: the work that arrives over virtual time, as a sum of shapes.

#[cfg(test)]
mod tests;
pub mod trace;
mod wave;

use std::sync::Arc;

pub use trace::Trace;

use crate::random::Seed;
use crate::time::Millis;

/// The work that arrives at a workload, in units per second.
#[derive(Clone, Debug, Default)]
pub struct LoadCurve {
    shapes: Vec<CurveShape>,
    noises: Vec<Noise>,
}

/// One shape of a load curve.
#[derive(Clone, Debug)]
pub enum CurveShape {
    /// A constant level.
    Constant(f64),
    /// One level before `at`, another from then on; back again at `until`.
    Step {
        /// Level before `at` and after `until`.
        from: f64,
        /// Level in between.
        to: f64,
        /// When the level changes.
        at: Millis,
        /// When it changes back.
        until: Millis,
    },
    /// A straight line from one level to another.
    Ramp {
        /// Until `start`.
        from: f64,
        /// From `end` on.
        to: f64,
        /// Where the line begins.
        start: Millis,
        /// Where it ends.
        end: Millis,
    },
    /// A spike: rises, stays and falls back to zero.
    Spike {
        /// The level on top.
        height: f64,
        /// When it begins to rise.
        at: Millis,
        /// How long it rises.
        rise: Millis,
        /// How long it stays.
        hold: Millis,
        /// How long it falls.
        fall: Millis,
    },
    /// A cosine.
    Wave {
        /// The lowest level.
        low: f64,
        /// The highest level.
        high: f64,
        /// From one peak to the next.
        period: Millis,
        /// Any one of the peaks.
        peak: Millis,
    },
    /// Values from a file.
    Trace(Arc<Trace>),
}

/// Random noise that is added to the shapes.
#[derive(Clone, Copy, Debug)]
pub struct Noise {
    /// Largest deviation in each direction.
    pub amplitude: Amplitude,
    /// Time between two random numbers; values in between are interpolated.
    pub period: Millis,
    /// Seed of the numbers.
    pub seed: Seed,
}

/// Largest deviation of noise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Amplitude {
    /// In units per second.
    Units(f64),
    /// As a share of the other shapes together.
    Share(f64),
}

impl LoadCurve {
    /// The sum of `shapes` with `noises` on top.
    pub fn new(shapes: Vec<CurveShape>, noises: Vec<Noise>) -> Self {
        Self { shapes, noises }
    }

    /// Number of shapes, including noise.
    pub fn len(&self) -> usize {
        self.shapes.len() + self.noises.len()
    }

    /// Whether it has no shapes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The level at a time, never below zero. Before the start it is that of the start.
    pub fn at(&self, at: Millis) -> f64 {
        let at = at.max(Millis::ZERO);
        let base: f64 = self.shapes.iter().map(|shape| shape.at(at)).sum();
        let noise: f64 = self.noises.iter().map(|noise| noise.at(at, base)).sum();
        let level = base + noise;
        // `max` also replaces NaN by zero.
        if level > 0.0 { level } else { 0.0 }
    }
}

impl CurveShape {
    /// The level at a time.
    pub fn at(&self, now: Millis) -> f64 {
        match *self {
            Self::Constant(level) => level,
            Self::Step { from, to, at, until } => {
                if now >= at && now < until {
                    to
                } else {
                    from
                }
            }
            Self::Ramp { from, to, start, end } => {
                from + (to - from) * (now - start).fraction_of(end - start)
            }
            Self::Spike { height, at, rise, hold, fall } => {
                if now < at {
                    return 0.0;
                }
                let top = at + rise;
                let down = top + hold;
                let up = if now >= top { 1.0 } else { (now - at).fraction_of(rise) };
                let gone = if now < down { 0.0 } else { (now - down).fraction_of(fall) };
                let gone = if fall == Millis::ZERO && now >= down { 1.0 } else { gone };
                height * (up - gone)
            }
            Self::Wave { low, high, period, peak } => {
                let turn = (now - peak).0.rem_euclid(period.0.max(1)) as f64 / period.0.max(1) as f64;
                low + (high - low) * 0.5 * (1.0 + wave::cosine(turn))
            }
            Self::Trace(ref trace) => trace.at(now),
        }
    }
}

impl Noise {
    fn at(&self, now: Millis, base: f64) -> f64 {
        let period = self.period.0.max(1);
        let index = now.0.div_euclid(period);
        let between = now.0.rem_euclid(period) as f64 / period as f64;
        let (left, right) = (self.seed.swing(index), self.seed.swing(index + 1));
        let swing = left + (right - left) * between;
        match self.amplitude {
            Amplitude::Units(units) => units * swing,
            Amplitude::Share(share) => base * share * swing,
        }
    }
}
