//! Random numbers without state: every number is a function of the seed and an index, so the order of calls does not matter.

/// A seed. Parts of a scenario derive seeds of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seed(u64);

impl Seed {
    /// The seed of a scenario.
    pub fn new(seed: u64) -> Self {
        Self(mix(seed))
    }

    /// The seed of a part.
    pub fn part(self, part: u64) -> Self {
        Self(mix(self.0 ^ mix(part)))
    }

    /// The number of `index`, evenly spread over 0 (included) to 1 (excluded).
    pub fn fraction(self, index: i64) -> f64 {
        let bits = mix(self.0 ^ mix(index as u64)) >> 11;
        bits as f64 / (1_u64 << 53) as f64
    }

    /// The number of `index`, evenly spread over -1 to 1.
    pub fn swing(self, index: i64) -> f64 {
        2.0 * self.fraction(index) - 1.0
    }

    /// All 64 bits, for names.
    pub fn bits(self) -> u64 {
        self.0
    }
}

/// Stafford's thirteenth variant of the 64-bit finalizer, as used by SplitMix64.
fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_spread_and_repeatable() {
        let seed = Seed::new(1).part(2);
        assert_eq!(seed.fraction(7), Seed::new(1).part(2).fraction(7));
        assert_ne!(seed.fraction(7), Seed::new(2).part(2).fraction(7));
        assert_ne!(seed.fraction(7), Seed::new(1).part(3).fraction(7));
        let mean = (0..10_000).map(|i| seed.fraction(i)).sum::<f64>() / 10_000.0;
        assert!((mean - 0.5).abs() < 0.02, "{mean}");
        assert!((0..10_000).all(|i| (0.0..1.0).contains(&seed.fraction(i)) && seed.swing(i).abs() <= 1.0));
    }
}
