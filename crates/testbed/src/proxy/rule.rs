//! Faults, and the requests to which they apply.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::Method;
use http::request::Parts;
use tokio::sync::watch;

/// Decides whether a rule applies to a request.
pub type Predicate = Arc<dyn Fn(&Parts) -> bool + Send + Sync>;

/// Rewrites a path with its query.
pub type Rewrite = Arc<dyn Fn(&str) -> String + Send + Sync>;

/// A fault that the proxy injects.
#[derive(Clone)]
pub enum Fault {
    /// The response is a Kubernetes `Status`, and the request is not forwarded.
    Status {
        /// The HTTP status code.
        code: u16,
        /// The machine-readable reason.
        reason: &'static str,
        /// The message for people.
        message: String,
        /// The `Retry-After` header in seconds, if any.
        retry_after: Option<u32>,
    },
    /// The connection is closed at once, and the request is not forwarded.
    Refuse,
    /// The request is forwarded, but the connection is closed instead of a response.
    LoseResponse,
    /// The connection is closed after some bytes of the response body.
    CutBody {
        /// The number of bytes that are sent.
        after_bytes: usize,
    },
    /// The response body stalls after some bytes, and the connection stays open.
    StallBody {
        /// The number of bytes that are sent.
        after_bytes: usize,
    },
    /// The request is delayed.
    Delay(Duration),
    /// The request is forwarded, and its response delayed.
    DelayResponse(Duration),
    /// The request is held while the value is true.
    Hold(watch::Receiver<bool>),
    /// The response is invalid with the content type JSON, and the request is not forwarded.
    Garbage,
    /// The response to a list is the first one that was stored for it, if there is one.
    StaleList,
    /// All watches that are open when the rule is added end; later ones do not.
    CutWatches,
    /// Watches that are open when the rule is added stay open, but their events are dropped until the rule is removed.
    StallWatches,
    /// The request is forwarded to another path. It is logged with the path that the client requested.
    RewritePath(Rewrite),
}

/// A fault, and the requests to which it applies.
#[derive(Clone)]
pub struct Rule {
    predicates: Vec<Predicate>,
    times: Option<u32>,
    fault: Fault,
}

/// The id of a rule, with which it is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuleId(u64);

/// The current rules.
#[derive(Default)]
pub(super) struct RuleSet {
    rules: Vec<(RuleId, Rule, u32)>,
    next: u64,
}

/// The combined effect of all rules that match a request.
#[derive(Default)]
pub(super) struct AppliedRules {
    pub(super) rewrites: Vec<Rewrite>,
    pub(super) delay: Duration,
    pub(super) hold: Option<watch::Receiver<bool>>,
    /// The first fault other than a delay, a hold or a rewrite.
    pub(super) fault: Option<Fault>,
}

impl Rule {
    /// A rule that applies to all requests.
    pub fn new(fault: Fault) -> Self {
        Self { predicates: Vec::new(), times: None, fault }
    }

    /// Limits the rule to requests with this method.
    pub fn method(self, method: Method) -> Self {
        self.when(move |parts| parts.method == method)
    }

    /// Limits the rule to requests whose path has this prefix.
    pub fn prefix(self, prefix: &str) -> Self {
        let prefix = prefix.to_owned();
        self.when(move |parts| parts.uri.path().starts_with(&prefix))
    }

    /// Limits the rule to requests whose path has this suffix.
    pub fn suffix(self, suffix: &str) -> Self {
        let suffix = suffix.to_owned();
        self.when(move |parts| parts.uri.path().ends_with(&suffix))
    }

    /// Limits the rule to requests for which the predicate is true, in addition to the other conditions.
    pub fn when(mut self, predicate: impl Fn(&Parts) -> bool + Send + Sync + 'static) -> Self {
        self.predicates.push(Arc::new(predicate));
        self
    }

    /// Limits the rule to this number of requests.
    pub fn times(self, times: u32) -> Self {
        Self { times: Some(times), ..self }
    }

    pub(super) fn matches(&self, parts: &Parts) -> bool {
        self.predicates.iter().all(|predicate| predicate(parts))
    }

    pub(super) fn fault(&self) -> &Fault {
        &self.fault
    }
}

impl RuleSet {
    pub(super) fn add(&mut self, rule: Rule) -> RuleId {
        self.next += 1;
        let id = RuleId(self.next);
        self.rules.push((id, rule, 0));
        id
    }

    pub(super) fn remove(&mut self, id: RuleId) {
        self.rules.retain(|(other, _, _)| *other != id);
    }

    pub(super) fn clear(&mut self) {
        self.rules.clear();
    }

    /// The number of requests to which a rule was applied.
    pub(super) fn hits(&self, id: RuleId) -> u32 {
        self.rules.iter().find(|(other, _, _)| *other == id).map_or(0, |(_, _, hits)| *hits)
    }

    /// Combines all rules that match a request, and counts their use.
    pub(super) fn apply(&mut self, parts: &Parts) -> AppliedRules {
        let mut applied = AppliedRules::default();
        for (_, rule, hits) in &mut self.rules {
            let watches = matches!(rule.fault, Fault::CutWatches | Fault::StallWatches);
            let used_up = rule.times.is_some_and(|times| *hits >= times);
            let later = applied.fault.is_some()
                && !matches!(rule.fault, Fault::Delay(_) | Fault::Hold(_) | Fault::RewritePath(_));
            if watches || used_up || later || !rule.matches(parts) {
                continue;
            }
            *hits += 1;
            match &rule.fault {
                Fault::Delay(delay) => applied.delay += *delay,
                Fault::Hold(held) => applied.hold = Some(held.clone()),
                Fault::RewritePath(rewrite) => applied.rewrites.push(Arc::clone(rewrite)),
                fault => applied.fault = Some(fault.clone()),
            }
        }
        applied
    }

    /// Whether a watch that was opened before rule number `opened` is stalled now.
    pub(super) fn stalls(&self, parts: &Parts, opened: u64) -> bool {
        self.rules.iter().any(|(id, rule, _)| {
            id.0 > opened && matches!(rule.fault, Fault::StallWatches) && rule.matches(parts)
        })
    }

    /// The number of the newest rule.
    pub(super) fn newest(&self) -> u64 {
        self.next
    }
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Rule({:?}, {} predicates, times {:?})", self.fault, self.predicates.len(), self.times)
    }
}

impl fmt::Debug for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status { code, reason, .. } => write!(f, "Status({code} {reason})"),
            Self::CutBody { after_bytes } => write!(f, "CutBody({after_bytes})"),
            Self::StallBody { after_bytes } => write!(f, "StallBody({after_bytes})"),
            Self::Delay(delay) => write!(f, "Delay({delay:?})"),
            Self::DelayResponse(delay) => write!(f, "DelayResponse({delay:?})"),
            Self::Hold(held) => write!(f, "Hold({})", *held.borrow()),
            Self::Refuse => f.write_str("Refuse"),
            Self::LoseResponse => f.write_str("LoseResponse"),
            Self::Garbage => f.write_str("Garbage"),
            Self::StaleList => f.write_str("StaleList"),
            Self::CutWatches => f.write_str("CutWatches"),
            Self::StallWatches => f.write_str("StallWatches"),
            Self::RewritePath(_) => f.write_str("RewritePath"),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn parts(method: Method, path: &str) -> Parts {
        http::Request::builder().method(method).uri(path).body(()).unwrap().into_parts().0
    }

    #[test]
    fn first_fault_wins_and_delays_add_up() {
        let mut rule_set = RuleSet::default();
        let second = Duration::from_secs(1);
        rule_set.add(Rule::new(Fault::Delay(second)));
        let refused = rule_set.add(Rule::new(Fault::Refuse).method(Method::PUT).prefix("/apis/").times(1));
        let garbage = rule_set.add(Rule::new(Fault::Garbage).suffix("/scale"));
        rule_set.add(Rule::new(Fault::Delay(second)).when(|parts| parts.uri.query() == Some("a")));
        let mut apply = |method, path| {
            let applied = rule_set.apply(&parts(method, path));
            (applied.fault.map(|fault| format!("{fault:?}")), applied.delay)
        };
        assert_eq!(apply(Method::PUT, "/apis/x/scale?a"), (Some("Refuse".into()), 2 * second));
        assert_eq!(apply(Method::PUT, "/apis/x/scale"), (Some("Garbage".into()), second), "used up");
        assert_eq!(apply(Method::GET, "/apis/x"), (None, second));
        assert_eq!((rule_set.hits(refused), rule_set.hits(garbage)), (1, 1));
        rule_set.remove(garbage);
        assert!(rule_set.apply(&parts(Method::GET, "/x/scale")).fault.is_none());
    }

    #[test]
    fn only_watches_from_before_the_rule_are_stalled() {
        let mut rule_set = RuleSet::default();
        let pods = parts(Method::GET, "/api/v1/pods?watch=1");
        let before = rule_set.newest();
        let rule = rule_set.add(Rule::new(Fault::StallWatches).prefix("/api/v1/pods"));
        assert!(rule_set.stalls(&pods, before) && !rule_set.stalls(&pods, rule_set.newest()));
        assert!(!rule_set.stalls(&parts(Method::GET, "/api/v1/nodes?watch=1"), before));
        assert!(rule_set.apply(&pods).fault.is_none());
        rule_set.remove(rule);
        assert!(!rule_set.stalls(&pods, before));
    }
}
