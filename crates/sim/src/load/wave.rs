//! A cosine from plain arithmetic. The math libraries of operating systems differ in the last bit; this one gives the same
//! result everywhere.

use std::f64::consts::FRAC_PI_2;

/// The cosine of `turn` full turns, for 0 to 1.
pub(super) fn cosine(turn: f64) -> f64 {
    // Fold into the first quarter, where the series converges fastest.
    let half = if turn > 0.5 { 1.0 - turn } else { turn };
    if half > 0.25 { -quarter(0.5 - half) } else { quarter(half) }
}

/// Coefficients of the Taylor series: reciprocals of the factorials of even numbers, with alternating sign.
const SERIES: [f64; 11] = [
    1.0,
    -1.0 / 2.0,
    1.0 / 24.0,
    -1.0 / 720.0,
    1.0 / 40_320.0,
    -1.0 / 3_628_800.0,
    1.0 / 479_001_600.0,
    -1.0 / 87_178_291_200.0,
    1.0 / 20_922_789_888_000.0,
    -1.0 / 6_402_373_705_728_000.0,
    1.0 / 2_432_902_008_176_640_000.0,
];

/// The cosine of up to a quarter of a turn, by its series.
fn quarter(turn: f64) -> f64 {
    let x = turn * 4.0 * FRAC_PI_2;
    let square = x * x;
    SERIES.iter().rev().fold(0.0, |sum, term| sum * square + term)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_library() {
        for i in 0..=1000 {
            let turn = f64::from(i) / 1000.0;
            let expected = (turn * std::f64::consts::TAU).cos();
            assert!((cosine(turn) - expected).abs() < 1e-14, "{turn}: {} and {expected}", cosine(turn));
        }
        assert_eq!((cosine(0.0), cosine(0.5), cosine(1.0)), (1.0, -1.0, 1.0));
    }
}
