//! The numbers that copied passes have in the process that made them, so that every replica understands the cursors of the others.

use std::collections::VecDeque;

/// How many spans are kept. Spans that follow each other are one, so that only changes of the leader and gaps make new ones.
const MAX_SPANS: usize = 64;

/// A place in the order of passes: the process that counts, and the number of its last pass before the place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PassPlace {
    pub(super) epoch: u64,
    pub(super) number: u64,
}

/// Passes that were copied without a gap: those after `place`, which have here the numbers after `own`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CopiedSpan {
    place: PassPlace,
    own: u64,
    count: u64,
}

/// Where copied passes are here and there, oldest first.
#[derive(Clone, Debug, Default)]
pub(super) struct CopiedSpans(VecDeque<CopiedSpan>);

/// What a place of another process means here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OwnPlace {
    /// The number here.
    pub(super) number: u64,
    /// Whether the place is after all passes that were copied: the client has seen more passes than this replica.
    pub(super) is_ahead: bool,
}

impl PassPlace {
    /// Parses a cursor.
    pub(super) fn parse(cursor: &str) -> Option<Self> {
        let (epoch, number) = cursor.split_once('-')?;
        Some(Self { epoch: u64::from_str_radix(epoch, 16).ok()?, number: number.parse().ok()? })
    }

    /// The cursor of this place.
    pub(super) fn cursor(self) -> String {
        format!("{:x}-{}", self.epoch, self.number)
    }
}

impl CopiedSpans {
    /// Adds passes that were copied without a gap.
    pub(super) fn add(&mut self, place: PassPlace, own: u64, count: u64) {
        if count == 0 {
            return;
        }
        if let Some(last) = self.0.back_mut()
            && last.place.epoch == place.epoch
            && last.place.number + last.count == place.number
            && last.own + last.count == own
        {
            last.count += count;
            return;
        }
        if self.0.len() >= MAX_SPANS {
            self.0.pop_front();
        }
        self.0.push_back(CopiedSpan { place, own, count });
    }

    /// What a place of another process means here; none if it is not known.
    pub(super) fn own(&self, place: PassPlace) -> Option<OwnPlace> {
        let epoch = place.epoch;
        let of_epoch = || self.0.iter().rev().filter(move |span| span.place.epoch == epoch);
        let newest = of_epoch().next()?;
        if place.number > newest.place.number + newest.count {
            return Some(OwnPlace { number: newest.own + newest.count, is_ahead: true });
        }
        // The end of a span before the start of another: passes of others may lie between them.
        let is_in = |span: &&CopiedSpan| {
            place.number > span.place.number && place.number <= span.place.number + span.count
        };
        let is_start = |span: &&CopiedSpan| place.number == span.place.number;
        let found = of_epoch().find(is_in).or_else(|| of_epoch().find(is_start))?;
        Some(OwnPlace { number: found.own + (place.number - found.place.number), is_ahead: false })
    }

    /// The place of a pass in the process that made it; none if it was not copied.
    pub(super) fn origin(&self, own: u64) -> Option<PassPlace> {
        let found = self.0.iter().rev().find(|span| own > span.own && own <= span.own + span.count)?;
        let PassPlace { epoch, number } = found.place;
        Some(PassPlace { epoch, number: number + (own - found.own) })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn at(epoch: u64, number: u64) -> PassPlace {
        PassPlace { epoch, number }
    }

    #[test]
    fn places_are_found_both_ways() {
        let mut spans = CopiedSpans::default();
        spans.add(at(1, 0), 0, 10);
        spans.add(at(1, 10), 10, 5);
        assert_eq!(spans.0.len(), 1, "spans that follow each other are one");
        // Numbers 16 and 17 were missing, and another process leads after 20.
        spans.add(at(1, 17), 15, 3);
        spans.add(at(2, 100), 18, 4);
        for (own, origin) in
            [(1, at(1, 1)), (15, at(1, 15)), (16, at(1, 18)), (18, at(1, 20)), (22, at(2, 104))]
        {
            assert_eq!(spans.origin(own), Some(origin), "{own}");
            assert_eq!(spans.own(origin), Some(OwnPlace { number: own, is_ahead: false }), "{origin:?}");
        }
        assert_eq!(spans.origin(23), None, "it was made here");
        assert_eq!(spans.own(at(1, 16)), None, "in a gap");
        assert_eq!(spans.own(at(1, 17)), Some(OwnPlace { number: 15, is_ahead: false }));
        assert_eq!(spans.own(at(2, 99)), None);
        assert_eq!(spans.own(at(3, 1)), None);
        assert_eq!(spans.own(at(2, 110)), Some(OwnPlace { number: 22, is_ahead: true }));
        for n in 0..200 {
            spans.add(at(n, 5), 1000 + n, 1);
        }
        assert_eq!(spans.0.len(), MAX_SPANS);
    }

    #[test]
    fn cursors_are_places() {
        assert_eq!(PassPlace::parse("ff-7"), Some(at(255, 7)));
        assert_eq!(at(255, 7).cursor(), "ff-7");
        for text in ["", "1", "x-1", "1-x", "-", "1-"] {
            assert_eq!(PassPlace::parse(text), None, "{text}");
        }
    }
}
