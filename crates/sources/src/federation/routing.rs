//! Routing of queries: candidates, their order, and the combination of their responses.
//!
//! 1. A candidate with `metrics` or `namespaces` that match the query owns it: only the first such candidate (by priority,
//!    then by position) is queried.
//! 2. Without an owner, all candidates without patterns are queried one after the other: first those that announced the
//!    metric, then by priority, then by position. The first values end the search.
//! 3. Without values the result is a failure, else an empty list, else that there is no such metric.

use api::provider::MetricsError;

use super::glob::GlobPattern;

/// Metrics and namespaces of an upstream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct UpstreamScope {
    pub(crate) metrics: Vec<GlobPattern>,
    pub(crate) namespaces: Vec<GlobPattern>,
    pub(crate) priority: i32,
}

/// Relation of a candidate to a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Claim {
    /// The candidate owns the query exclusively.
    Owned,
    /// The candidate is one of several.
    Open,
    /// The query is outside the scope of the candidate.
    Foreign,
}

/// A provider that may be queried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub(crate) claim: Claim,
    pub(crate) announced: bool,
    pub(crate) priority: i32,
}

impl UpstreamScope {
    /// Relation of this scope to a query of a metric in a namespace.
    pub(crate) fn claim(&self, metric: &str, namespace: Option<&str>) -> Claim {
        if self.metrics.is_empty() && self.namespaces.is_empty() {
            return Claim::Open;
        }
        let metric_matches =
            self.metrics.is_empty() || self.metrics.iter().any(|pattern| pattern.matches(metric));
        let namespace_matches = self.namespaces.is_empty()
            || namespace
                .is_some_and(|namespace| self.namespaces.iter().any(|pattern| pattern.matches(namespace)));
        if metric_matches && namespace_matches { Claim::Owned } else { Claim::Foreign }
    }

    /// Whether the scope includes this metric in some namespace.
    pub(crate) fn admits(&self, metric: &str) -> bool {
        self.metrics.is_empty() || self.metrics.iter().any(|pattern| pattern.matches(metric))
    }
}

/// Candidates in query order, as indices of `candidates`.
pub(crate) fn order(candidates: &[Candidate]) -> Vec<usize> {
    let with = |claim: Claim| candidates.iter().enumerate().filter(move |(_, one)| one.claim == claim);
    if let Some((owner, _)) = with(Claim::Owned).min_by_key(|(index, one)| (-i64::from(one.priority), *index))
    {
        return vec![owner];
    }
    let mut open: Vec<(usize, &Candidate)> = with(Claim::Open).collect();
    // A stable sort keeps the order of equal candidates.
    open.sort_by_key(|(_, one)| (!one.announced, -i64::from(one.priority)));
    open.into_iter().map(|(index, _)| index).collect()
}

/// Responses so far.
#[derive(Debug)]
pub(crate) struct ResponseCollector<T> {
    failed: Option<MetricsError>,
    empty: Option<Vec<T>>,
    missing: Option<MetricsError>,
}

impl<T> ResponseCollector<T> {
    pub(crate) fn new() -> Self {
        Self { failed: None, empty: None, missing: None }
    }

    /// Adds a response; returns values that end the search. An empty list ends it only if the provider surely has the
    /// metric, because some servers return an empty list for every name.
    pub(crate) fn add(&mut self, answer: Result<Vec<T>, MetricsError>, has_metric: bool) -> Option<Vec<T>> {
        match answer {
            Ok(values) if has_metric || !values.is_empty() => return Some(values),
            Ok(values) => self.empty = Some(values),
            Err(missing @ MetricsError::NoMetric(_)) => {
                self.missing.get_or_insert(missing);
            }
            Err(failure) => {
                self.failed.get_or_insert(failure);
            }
        }
        None
    }

    /// Result if no response ended the search: a failure takes precedence over an empty list and over a missing
    /// metric.
    pub(crate) fn finish(self, missing: impl FnOnce() -> MetricsError) -> Result<Vec<T>, MetricsError> {
        match (self.failed, self.empty) {
            (Some(failure), _) => Err(failure),
            (None, Some(empty)) => Ok(empty),
            (None, None) => Err(self.missing.unwrap_or_else(missing)),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn scope(metrics: &[&str], namespaces: &[&str]) -> UpstreamScope {
        let patterns = |texts: &[&str]| texts.iter().map(|text| GlobPattern::parse(text).unwrap()).collect();
        UpstreamScope { metrics: patterns(metrics), namespaces: patterns(namespaces), priority: 0 }
    }

    #[test]
    fn scope_decides_about_claims() {
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
    fn owner_is_queried_alone_and_others_in_order() {
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
    fn failure_takes_precedence_over_empty_list() {
        let none = || MetricsError::NoMetric("nobody".into());
        let down = || MetricsError::Unavailable("down".into());
        let close = |answers: Vec<Result<Vec<u8>, MetricsError>>| {
            let mut collector = ResponseCollector::new();
            for answer in answers {
                if let Some(values) = collector.add(answer, false) {
                    return Ok(values);
                }
            }
            collector.finish(none)
        };
        let missing = || MetricsError::NoMetric("first".into());
        assert_eq!(close(vec![]), Err(none()));
        assert_eq!(close(vec![Err(missing()), Err(none())]), Err(missing()));
        assert_eq!(close(vec![Ok(vec![]), Err(none())]), Ok(vec![]));
        assert_eq!(close(vec![Err(none()), Err(down()), Ok(vec![])]), Err(down()));
        assert_eq!(close(vec![Err(none()), Err(down()), Ok(vec![1])]), Ok(vec![1]));
        assert_eq!(ResponseCollector::<u8>::new().add(Ok(vec![]), true), Some(vec![]));
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
        fn order_follows_claims_and_priorities(candidates in candidates()) {
            let order = order(&candidates);
            let owned = candidates.iter().any(|one| one.claim == Claim::Owned);
            let open = candidates.iter().filter(|one| one.claim == Claim::Open).count();
            prop_assert_eq!(order.len(), if owned { 1 } else { open });
            for index in &order {
                let expected = if owned { Claim::Owned } else { Claim::Open };
                prop_assert_eq!(candidates[*index].claim, expected);
            }
            for pair in order.windows(2) {
                let (a, b) = (candidates[pair[0]], candidates[pair[1]]);
                let key = |one: Candidate, index| (one.announced, one.priority, std::cmp::Reverse(index));
                prop_assert!(key(a, pair[0]) > key(b, pair[1]));
            }
        }

        #[test]
        fn outage_is_never_reported_as_missing_metric(answers in proptest::collection::vec(0..4_u8, 0..6)) {
            let mut collector = ResponseCollector::new();
            let mut ended = None;
            for answer in &answers {
                let answer = match answer {
                    0 => Ok(vec![1_u8]),
                    1 => Ok(vec![]),
                    2 => Err(MetricsError::NoMetric(String::new())),
                    _ => Err(MetricsError::Internal("broken".into())),
                };
                ended = collector.add(answer, false);
                if ended.is_some() {
                    break;
                }
            }
            let answer = ended.map_or_else(|| collector.finish(|| MetricsError::NoMetric(String::new())), Ok);
            let expected = match () {
                () if answers.contains(&0) => Ok(vec![1]),
                () if answers.contains(&3) => Err(MetricsError::Internal("broken".into())),
                () if answers.contains(&1) => Ok(vec![]),
                () => Err(MetricsError::NoMetric(String::new())),
            };
            prop_assert_eq!(answer, expected);
        }
    }
}
