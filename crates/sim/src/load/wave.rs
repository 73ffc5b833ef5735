//! A cosine from plain arithmetic: the libraries of operating systems differ in the last bit, this one does not.

use std::f64::consts::FRAC_PI_2;

/// The cosine of `turn` full turns, for 0 to 1.
pub(super) fn cosine(turn: f64) -> f64 {
    // Fold into the first quarter, where the series converges fastest.
    let half = if turn > 0.5 { 1.0 - turn } else { turn };
    if half > 0.25 { -quarter(0.5 - half) } else { quarter(half) }
}

/// The cosine of up to a quarter of a turn, by its series.
fn quarter(turn: f64) -> f64 {
    let x = turn * 4.0 * FRAC_PI_2;
    let square = x * x;
    let mut term = 1.0;
    let mut sum = 1.0;
    for n in 1..=10 {
        let n = 2.0 * f64::from(n);
        term *= -square / (n * (n - 1.0));
        sum += term;
    }
    sum
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
