//! Go's `sort.Sort`, which is not stable: requirements of equal keys come out in an order that texts show.
//!
//! The algorithm is pattern-defeating quicksort with Go's constants: short ranges are sorted by insertion (stable),
//! longer ones are partitioned around a median, and ranges that stay unbalanced end in a heap sort.

/// Sorts by `less`, leaving equal elements in the order Go leaves them in.
pub(crate) fn sort<T>(items: &mut [T], less: impl Fn(&T, &T) -> bool) {
    let end = items.len();
    let limit = usize::BITS - end.leading_zeros();
    Sorter { items, less }.quick(0, end, limit);
}

const INSERTION: usize = 12;
const NINTHER: usize = 50;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Hint {
    Unknown,
    Increasing,
    Decreasing,
}

struct Sorter<'a, T, F> {
    items: &'a mut [T],
    less: F,
}

impl<T, F: Fn(&T, &T) -> bool> Sorter<'_, T, F> {
    fn less(&self, i: usize, j: usize) -> bool {
        match (self.items.get(i), self.items.get(j)) {
            (Some(a), Some(b)) => (self.less)(a, b),
            _ => false,
        }
    }

    fn swap(&mut self, i: usize, j: usize) {
        self.items.swap(i, j);
    }

    fn quick(&mut self, mut start: usize, mut end: usize, mut limit: u32) {
        let (mut balanced, mut partitioned) = (true, true);
        loop {
            let length = end - start;
            if length <= INSERTION {
                return self.insertion(start, end);
            }
            if limit == 0 {
                return self.heap(start, end);
            }
            if !balanced {
                self.break_patterns(start, end);
                limit -= 1;
            }
            let (mut pivot, mut hint) = self.choose_pivot(start, end);
            if hint == Hint::Decreasing {
                self.reverse(start, end);
                pivot = (end - 1) - (pivot - start);
                hint = Hint::Increasing;
            }
            if balanced && partitioned && hint == Hint::Increasing && self.nearly_sorted(start, end) {
                return;
            }
            // Everything left of the range is at most the pivot: equal elements need no further sorting.
            if start > 0 && !self.less(start - 1, pivot) {
                start = self.partition_equal(start, end, pivot);
                continue;
            }
            let (middle, already) = self.partition(start, end, pivot);
            partitioned = already;
            let (left, right) = (middle - start, end - middle);
            balanced = left.min(right) >= length / 8;
            if left < right {
                self.quick(start, middle, limit);
                start = middle + 1;
            } else {
                self.quick(middle + 1, end, limit);
                end = middle;
            }
        }
    }

    fn insertion(&mut self, start: usize, end: usize) {
        for i in start + 1..end {
            let mut j = i;
            while j > start && self.less(j, j - 1) {
                self.swap(j, j - 1);
                j -= 1;
            }
        }
    }

    fn heap(&mut self, start: usize, end: usize) {
        let length = end - start;
        for root in (0..=length.saturating_sub(1) / 2).rev() {
            self.sift_down(root, length, start);
        }
        for last in (0..length).rev() {
            self.swap(start, start + last);
            self.sift_down(0, last, start);
        }
    }

    fn sift_down(&mut self, mut root: usize, length: usize, first: usize) {
        loop {
            let mut child = 2 * root + 1;
            if child >= length {
                return;
            }
            if child + 1 < length && self.less(first + child, first + child + 1) {
                child += 1;
            }
            if !self.less(first + root, first + child) {
                return;
            }
            self.swap(first + root, first + child);
            root = child;
        }
    }

    fn partition(&mut self, start: usize, end: usize, pivot: usize) -> (usize, bool) {
        self.swap(start, pivot);
        let (mut i, mut j) = (start + 1, end - 1);
        let mut already = true;
        loop {
            while i <= j && self.less(i, start) {
                i += 1;
            }
            while i <= j && !self.less(j, start) {
                j -= 1;
            }
            if i > j {
                break;
            }
            already = false;
            self.swap(i, j);
            i += 1;
            j -= 1;
        }
        self.swap(j, start);
        (j, already)
    }

    fn partition_equal(&mut self, start: usize, end: usize, pivot: usize) -> usize {
        self.swap(start, pivot);
        let (mut i, mut j) = (start + 1, end - 1);
        loop {
            while i <= j && !self.less(start, i) {
                i += 1;
            }
            while i <= j && self.less(start, j) {
                j -= 1;
            }
            if i > j {
                return i;
            }
            self.swap(i, j);
            i += 1;
            j -= 1;
        }
    }

    /// Tries to finish a range that looks sorted with a few moves.
    fn nearly_sorted(&mut self, start: usize, end: usize) -> bool {
        let mut i = start + 1;
        for _ in 0..5 {
            while i < end && !self.less(i, i - 1) {
                i += 1;
            }
            if i == end {
                return true;
            }
            if end - start < NINTHER {
                return false;
            }
            self.swap(i, i - 1);
            if i - start >= 2 {
                let mut j = i - 1;
                while j >= 1 && self.less(j, j - 1) {
                    self.swap(j, j - 1);
                    j -= 1;
                }
            }
            if end - i >= 2 {
                let mut j = i + 1;
                while j < end && self.less(j, j - 1) {
                    self.swap(j, j - 1);
                    j += 1;
                }
            }
        }
        false
    }

    fn break_patterns(&mut self, start: usize, end: usize) {
        let length = end - start;
        let mut random = length as u64;
        let mask = (1_usize << (usize::BITS - length.leading_zeros())) - 1;
        let middle = start + (length / 4) * 2;
        for i in 0..3 {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let mut other = (random as usize) & mask;
            if other >= length {
                other -= length;
            }
            self.swap(middle - 1 + i, start + other);
        }
    }

    fn choose_pivot(&mut self, start: usize, end: usize) -> (usize, Hint) {
        let length = end - start;
        let quarter = length / 4;
        let mut swaps = 0;
        let (mut i, mut j, mut k) = (start + quarter, start + quarter * 2, start + quarter * 3);
        if length >= NINTHER {
            i = self.median(i - 1, i, i + 1, &mut swaps);
            j = self.median(j - 1, j, j + 1, &mut swaps);
            k = self.median(k - 1, k, k + 1, &mut swaps);
        }
        let pivot = self.median(i, j, k, &mut swaps);
        let hint = match swaps {
            0 => Hint::Increasing,
            12 => Hint::Decreasing,
            _ => Hint::Unknown,
        };
        (pivot, hint)
    }

    fn median(&self, a: usize, b: usize, c: usize, swaps: &mut u32) -> usize {
        let mut order = |a, b| {
            if self.less(b, a) {
                *swaps += 1;
                (b, a)
            } else {
                (a, b)
            }
        };
        let (a, b) = order(a, b);
        let (b, _) = order(b, c);
        order(a, b).1
    }

    fn reverse(&mut self, start: usize, end: usize) {
        if let Some(range) = self.items.get_mut(start..end) {
            range.reverse();
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::sort;

    /// Recorded from Go 1.26: keys `i*7 % 5`, the numbers are the original places.
    #[test]
    fn leaves_equal_elements_where_go_does() {
        let order = |n: u32| {
            let mut items: Vec<(u32, u32)> = (0..n).map(|i| (i * 7 % 5, i)).collect();
            sort(&mut items, |a, b| a.0 < b.0);
            items.into_iter().map(|(_, place)| place).collect::<Vec<_>>()
        };
        assert_eq!(order(12), [0, 5, 10, 3, 8, 1, 6, 11, 4, 9, 2, 7]);
        assert_eq!(order(20), GO_20);
        assert_eq!(order(70), GO_70);
    }

    const GO_20: [u32; 20] = [10, 5, 15, 0, 13, 3, 18, 8, 6, 16, 1, 11, 9, 14, 4, 19, 12, 2, 17, 7];
    const GO_70: [u32; 70] = [
        60, 50, 65, 25, 35, 5, 20, 15, 30, 55, 10, 45, 40, 0, 58, 48, 13, 53, 18, 43, 8, 28, 38, 23, 63, 3,
        33, 68, 16, 46, 1, 31, 66, 26, 61, 6, 36, 56, 11, 51, 21, 41, 49, 9, 44, 69, 64, 4, 14, 29, 34, 39,
        24, 59, 54, 19, 62, 27, 7, 22, 52, 12, 42, 37, 57, 2, 32, 67, 47, 17,
    ];

    proptest! {
        #[test]
        fn sorts(mut items in prop::collection::vec(0..40_u8, 0..300)) {
            let mut expected = items.clone();
            expected.sort_unstable();
            sort(&mut items, |a, b| a < b);
            prop_assert_eq!(items, expected);
        }
    }
}
