//! Whom to ask, in which order, and what their answers make together. Pure.
//!
//! 1. Who has `metrics` or `namespaces` and fits all of them owns the question: the first such one (by priority, then by
//!    place) is asked, and nobody else.
//! 2. If nobody owns it, all who have neither are asked in turn: first those who announced the metric, then by priority, then
//!    by place. Whoever has values ends the turn.
//! 3. If nobody has values: a failure is the answer, else an empty list, else that there is no such metric.

use api::provider::Failure;

use super::pattern::Pattern;

/// What somebody may be asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Scope {
    pub(crate) metrics: Vec<Pattern>,
    pub(crate) namespaces: Vec<Pattern>,
    pub(crate) priority: i32,
}

/// Whether a question is somebody's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Claim {
    /// His alone.
    Owned,
    /// His among others.
    Open,
    /// Not his.
    Foreign,
}

/// Somebody who could be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub(crate) claim: Claim,
    pub(crate) announced: bool,
    pub(crate) priority: i32,
}

impl Scope {
    /// Whether a question about this metric in this namespace is in it.
    pub(crate) fn claim(&self, metric: &str, namespace: Option<&str>) -> Claim {
        if self.metrics.is_empty() && self.namespaces.is_empty() {
            return Claim::Open;
        }
        let name_fits = self.metrics.is_empty() || self.metrics.iter().any(|pattern| pattern.fits(metric));
        let place_fits = self.namespaces.is_empty()
            || namespace
                .is_some_and(|namespace| self.namespaces.iter().any(|pattern| pattern.fits(namespace)));
        if name_fits && place_fits { Claim::Owned } else { Claim::Foreign }
    }

    /// Whether a metric of this name can be asked for in some namespace.
    pub(crate) fn admits(&self, metric: &str) -> bool {
        self.metrics.is_empty() || self.metrics.iter().any(|pattern| pattern.fits(metric))
    }
}

/// Whom to ask, by their places in `candidates`.
pub(crate) fn order(candidates: &[Candidate]) -> Vec<usize> {
    let with = |claim: Claim| candidates.iter().enumerate().filter(move |(_, one)| one.claim == claim);
    if let Some((owner, _)) = with(Claim::Owned).min_by_key(|(place, one)| (-i64::from(one.priority), *place))
    {
        return vec![owner];
    }
    let mut open: Vec<(usize, &Candidate)> = with(Claim::Open).collect();
    // Stable: equals stay in their places.
    open.sort_by_key(|(_, one)| (!one.announced, -i64::from(one.priority)));
    open.into_iter().map(|(place, _)| place).collect()
}

/// What was heard so far.
#[derive(Debug)]
pub(crate) struct Tally<T> {
    failed: Option<Failure>,
    empty: Option<Vec<T>>,
    missing: Option<Failure>,
}

impl<T> Tally<T> {
    pub(crate) fn new() -> Self {
        Self { failed: None, empty: None, missing: None }
    }

    /// Takes one answer; gives back values that end the turn. An empty list ends it only if whoever sent it surely has the
    /// metric: some servers answer so for every name.
    pub(crate) fn hear(&mut self, answer: Result<Vec<T>, Failure>, has_metric: bool) -> Option<Vec<T>> {
        match answer {
            Ok(values) if has_metric || !values.is_empty() => return Some(values),
            Ok(values) => self.empty = Some(values),
            Err(missing @ Failure::NoMetric(_)) => {
                self.missing.get_or_insert(missing);
            }
            Err(failure) => {
                self.failed.get_or_insert(failure);
            }
        }
        None
    }

    /// The answer if nobody ended the turn: what failed must not look like what is not there.
    pub(crate) fn close(self, missing: impl FnOnce() -> Failure) -> Result<Vec<T>, Failure> {
        match (self.failed, self.empty) {
            (Some(failure), _) => Err(failure),
            (None, Some(empty)) => Ok(empty),
            (None, None) => Err(self.missing.unwrap_or_else(missing)),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]

    use proptest::prelude::*;

    use super::*;

    fn scope(metrics: &[&str], namespaces: &[&str]) -> Scope {
        let patterns = |texts: &[&str]| texts.iter().map(|text| Pattern::parse(text).unwrap()).collect();
        Scope { metrics: patterns(metrics), namespaces: patterns(namespaces), priority: 0 }
    }

    #[test]
    fn claims() {
        for (metrics, namespaces, metric, namespace, expected) in [
            (&[][..], &[][..], "a", None, Claim::Open),
            (&["a*"], &[], "ab", Some("x"), Claim::Owned),
            (&["a*"], &[], "b", Some("x"), Claim::Foreign),
            (&["b", "a"], &[], "a", None, Claim::Owned),
            (&[], &["team-*"], "b", Some("team-1"), Claim::Owned),
            (&[], &["team-*"], "b", Some("other"), Claim::Foreign),
            (&[], &["*"], "b", None, Claim::Foreign),
            (&["a"], &["x"], "a", Some("x"), Claim::Owned),
            (&["a"], &["x"], "a", Some("y"), Claim::Foreign),
        ] {
            assert_eq!(
                scope(metrics, namespaces).claim(metric, namespace),
                expected,
                "{metrics:?} {namespaces:?}"
            );
        }
    }

    #[test]
    fn orders() {
        use Claim::{Foreign, Open, Owned};
        let on = |table: &[(Claim, bool, i32)]| {
            let candidate = |&(claim, announced, priority): &_| Candidate { claim, announced, priority };
            order(&table.iter().map(candidate).collect::<Vec<_>>())
        };
        assert_eq!(on(&[]), Vec::<usize>::new());
        assert_eq!(on(&[(Open, true, 0), (Owned, false, 0), (Owned, true, 0)]), [1]);
        assert_eq!(on(&[(Open, true, 0), (Owned, false, 0), (Owned, true, 5)]), [2]);
        assert_eq!(on(&[(Open, false, 0), (Open, true, 0), (Foreign, true, 9), (Open, false, 1)]), [1, 3, 0]);
        assert_eq!(on(&[(Open, true, 0), (Open, true, 0), (Open, true, i32::MIN)]), [0, 1, 2]);
    }

    #[test]
    fn a_failure_is_not_hidden() {
        let none = || Failure::NoMetric("nobody".into());
        let down = || Failure::Unavailable("down".into());
        let close = |answers: Vec<Result<Vec<u8>, Failure>>| {
            let mut tally = Tally::new();
            for answer in answers {
                if let Some(values) = tally.hear(answer, false) {
                    return Ok(values);
                }
            }
            tally.close(none)
        };
        let missing = || Failure::NoMetric("first".into());
        assert_eq!(close(vec![]), Err(none()));
        assert_eq!(close(vec![Err(missing()), Err(none())]), Err(missing()));
        assert_eq!(close(vec![Ok(vec![]), Err(none())]), Ok(vec![]));
        assert_eq!(close(vec![Err(none()), Err(down()), Ok(vec![])]), Err(down()));
        assert_eq!(close(vec![Err(none()), Err(down()), Ok(vec![1])]), Ok(vec![1]));
        assert_eq!(Tally::<u8>::new().hear(Ok(vec![]), true), Some(vec![]));
    }

    fn candidates() -> impl Strategy<Value = Vec<Candidate>> {
        let claim =
            prop_oneof![Just(Claim::Owned), Just(Claim::Open), Just(Claim::Foreign), Just(Claim::Open)];
        let one = (claim, any::<bool>(), -2..3_i32);
        let one = one.prop_map(|(claim, announced, priority)| Candidate { claim, announced, priority });
        proptest::collection::vec(one, 0..8)
    }

    proptest! {
        #[test]
        fn the_order_follows_the_rule(candidates in candidates()) {
            let order = order(&candidates);
            let owned = candidates.iter().any(|one| one.claim == Claim::Owned);
            let open = candidates.iter().filter(|one| one.claim == Claim::Open).count();
            prop_assert_eq!(order.len(), if owned { 1 } else { open });
            for place in &order {
                let expected = if owned { Claim::Owned } else { Claim::Open };
                prop_assert_eq!(candidates[*place].claim, expected);
            }
            for pair in order.windows(2) {
                let (a, b) = (candidates[pair[0]], candidates[pair[1]]);
                let key = |one: Candidate, place| (one.announced, one.priority, std::cmp::Reverse(place));
                prop_assert!(key(a, pair[0]) > key(b, pair[1]));
            }
        }

        #[test]
        fn no_outage_looks_like_nothing(answers in proptest::collection::vec(0..4_u8, 0..6)) {
            let mut tally = Tally::new();
            let mut ended = None;
            for answer in &answers {
                let answer = match answer {
                    0 => Ok(vec![1_u8]),
                    1 => Ok(vec![]),
                    2 => Err(Failure::NoMetric(String::new())),
                    _ => Err(Failure::Internal("broken".into())),
                };
                ended = tally.hear(answer, false);
                if ended.is_some() {
                    break;
                }
            }
            let answer = ended.map_or_else(|| tally.close(|| Failure::NoMetric(String::new())), Ok);
            let expected = match () {
                () if answers.contains(&0) => Ok(vec![1]),
                () if answers.contains(&3) => Err(Failure::Internal("broken".into())),
                () if answers.contains(&1) => Ok(vec![]),
                () => Err(Failure::NoMetric(String::new())),
            };
            prop_assert_eq!(answer, expected);
        }
    }
}
