//! The times in which one limit applied: exact totals, and a bounded number of spans for the chart.

use super::page::{Limit, LimitSum, Span};

/// Maximum number of spans; beyond it, neighbouring spans are merged.
const MAX_DRAWN_SPANS: usize = 4000;

/// The times in which one limit applied.
#[derive(Clone, Debug)]
pub(super) struct LimitSpans {
    limit: Limit,
    /// Spans in order of time.
    pub(super) spans: Vec<Span>,
    /// Spans with a smaller gap, in seconds, are merged.
    pub(super) gap: f64,
    open: Option<Span>,
    longest: Option<Span>,
    times: usize,
    seconds: f64,
}

impl LimitSpans {
    pub(super) fn new(limit: Limit) -> Self {
        Self { limit, spans: Vec::new(), gap: 0.0, open: None, longest: None, times: 0, seconds: 0.0 }
    }

    /// The limit.
    pub(super) fn limit(&self) -> Limit {
        self.limit
    }

    /// Adds a limited decision with the time in which it holds.
    pub(super) fn add(&mut self, from: f64, to: f64, why: impl FnOnce() -> String) {
        self.seconds += to - from;
        if let Some(open) = self.open.as_mut().filter(|open| open.to >= from) {
            open.to = to;
            open.decisions += 1;
        } else {
            self.close();
            self.times += 1;
            self.open = Some(Span { from, to, limit: self.limit, decisions: 1, why: why() });
        }
        match (self.spans.last_mut(), &self.open) {
            (Some(last), _) if last.to + self.gap >= from => {
                last.to = to;
                last.decisions += 1;
            }
            (_, open) => self.spans.extend(open.clone()),
        }
        if self.spans.len() > MAX_DRAWN_SPANS {
            self.merge();
        }
    }

    /// The totals so far; absent if the limit never applied.
    pub(super) fn sum(&self) -> Option<LimitSum> {
        let longest = longer(self.longest.as_ref(), self.open.as_ref())?.clone();
        Some(LimitSum { times: self.times, seconds: self.seconds, longest })
    }

    fn close(&mut self) {
        if let Some(open) = self.open.take() {
            self.longest = longer(self.longest.as_ref(), Some(&open)).cloned();
        }
    }

    /// Halves the number of spans by merging those with the smallest gaps.
    fn merge(&mut self) {
        let gaps = self.spans.windows(2).filter_map(|pair| match pair {
            [a, b] => Some(b.from - a.to),
            _ => None,
        });
        let mut gaps: Vec<f64> = gaps.collect();
        gaps.sort_by(f64::total_cmp);
        self.gap = gaps.get(gaps.len() / 2).copied().unwrap_or(self.gap);
        let mut merged: Vec<Span> = Vec::new();
        for span in self.spans.drain(..) {
            match merged.last_mut() {
                Some(last) if last.to + self.gap >= span.from => {
                    last.to = span.to;
                    last.decisions += span.decisions;
                }
                _ => merged.push(span),
            }
        }
        self.spans = merged;
    }
}

/// The longer of two spans; the earlier one if both have the same length.
fn longer<'a>(a: Option<&'a Span>, b: Option<&'a Span>) -> Option<&'a Span> {
    match (a, b) {
        (Some(a), Some(b)) if b.to - b.from > a.to - a.from => Some(b),
        (Some(a), _) => Some(a),
        (None, b) => b,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decisions_in_a_row_are_one_span() {
        let mut applied = LimitSpans::new(Limit::Rate);
        assert_eq!(applied.sum(), None);
        for from in [0.0, 15.0, 60.0] {
            applied.add(from, from + 15.0, || format!("at {from}"));
        }
        let spans: Vec<_> = applied.spans.iter().map(|s| (s.from, s.to, s.decisions)).collect();
        assert_eq!(spans, [(0.0, 30.0, 2), (60.0, 75.0, 1)]);
        let sum = applied.sum().unwrap();
        assert_eq!((sum.times, sum.seconds, sum.longest.why.as_str()), (2, 45.0, "at 0"));
    }

    #[test]
    fn many_spans_are_merged_and_totals_stay_exact() {
        let mut applied = LimitSpans::new(Limit::Window);
        let mut from = 0.0;
        for index in 0..100_000 {
            applied.add(from, from + 15.0, String::new);
            from += if index % 100 == 0 { 6000.0 } else { 30.0 };
        }
        assert!(applied.spans.len() <= MAX_DRAWN_SPANS, "{}", applied.spans.len());
        assert!(applied.spans.len() >= MAX_DRAWN_SPANS / 8, "{}", applied.spans.len());
        let sum = applied.sum().unwrap();
        assert_eq!((sum.times, sum.seconds), (100_000, 1_500_000.0));
        assert_eq!(applied.spans.iter().map(|s| s.decisions).sum::<usize>(), 100_000);
        assert!(applied.spans.windows(2).all(|pair| pair[0].to < pair[1].from));
    }
}
