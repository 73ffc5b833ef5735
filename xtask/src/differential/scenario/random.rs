//! Reproducible random numbers.

/// A sequence of numbers that depends only on its seed (SplitMix64).
#[derive(Clone, Debug)]
pub(crate) struct RandomSource(u64);

impl RandomSource {
    /// The sequence of one scenario of a run.
    pub(crate) fn new(seed: u64, scenario: u64) -> Self {
        // The seed is mixed twice, because sequences that begin one step apart would otherwise be the same, shifted.
        Self(mix(mix(seed) ^ scenario))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        mix(self.0)
    }

    /// A number from 0 to below `end`; 0 if `end` is 0.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }

    /// A number from `low` to `high`, both included.
    pub(crate) fn between(&mut self, low: i64, high: i64) -> i64 {
        low + self.below((high - low + 1).max(1) as usize) as i64
    }

    /// True with a probability of one in `times`.
    pub(crate) fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// A random element of a slice, which must not be empty.
    pub(crate) fn of<T: Copy, const N: usize>(&mut self, these: [T; N]) -> T {
        const { assert!(N > 0) };
        let place = self.below(N);
        these.into_iter().nth(place).unwrap_or(these[0])
    }

    /// The index of one of these weights, chosen in proportion to them.
    pub(crate) fn weighted(&mut self, weights: impl IntoIterator<Item = usize> + Clone) -> usize {
        let mut left = self.below(weights.clone().into_iter().sum());
        let heavy = |weight: usize| {
            let here = left < weight;
            left = left.saturating_sub(weight);
            here
        };
        weights.into_iter().map(heavy).position(|here| here).unwrap_or_default()
    }
}

const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(STEP);
    let value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]

    use super::*;

    #[test]
    fn chance_is_determined_by_its_seed() {
        let draw = |seed, scenario| {
            let mut random = RandomSource::new(seed, scenario);
            (0..9).map(|_| random.below(1000)).collect::<Vec<_>>()
        };
        assert_eq!(draw(1, 2), draw(1, 2));
        assert_ne!(draw(1, 2), draw(1, 3));
        assert_ne!(draw(1, 2), draw(2, 2));
        assert_ne!(draw(1, 2)[1..], draw(1, 3)[..8], "not the same, shifted");
    }

    #[test]
    fn weights_are_kept() {
        let mut random = RandomSource::new(1, 1);
        let mut seen = [0; 3];
        for _ in 0..3000 {
            seen[random.weighted([1, 0, 5])] += 1;
        }
        assert!(seen[0] > 400 && seen[0] < 600 && seen[1] == 0, "{seen:?}");
        assert_eq!(random.weighted([]), 0);
    }
}
