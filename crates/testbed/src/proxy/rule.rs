//! What goes wrong, and with which requests.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::Method;
use http::request::Parts;
use tokio::sync::watch;

/// Decides about a request.
pub type Predicate = Arc<dyn Fn(&Parts) -> bool + Send + Sync>;

/// Makes another path (with its query) of a path.
pub type Rewrite = Arc<dyn Fn(&str) -> String + Send + Sync>;

/// What goes wrong.
#[derive(Clone)]
pub enum Fault {
    /// The answer is a Kubernetes `Status`, and nothing is forwarded.
    Status {
        /// The HTTP code.
        code: u16,
        /// One word for programs.
        reason: &'static str,
        /// A sentence for people.
        message: String,
        /// The `Retry-After` header in seconds, if any.
        retry_after: Option<u32>,
    },
    /// The connection is closed at once, and nothing is forwarded.
    Refuse,
    /// The request is forwarded, and the answer never sent: the connection is closed when it comes.
    LoseAnswer,
    /// The connection breaks after so many bytes of the answer's body.
    CutBody {
        /// How many bytes arrive.
        after_bytes: usize,
    },
    /// Nothing comes after so many bytes of the answer's body, and the connection stays open.
    StallBody {
        /// How many bytes arrive.
        after_bytes: usize,
    },
    /// The request is held back for so long.
    Delay(Duration),
    /// The request is forwarded, and its answer held back for so long.
    DelayAnswer(Duration),
    /// The request is held back for as long as this says so.
    Hold(watch::Receiver<bool>),
    /// The answer is nonsense that says it is JSON, and nothing is forwarded.
    Garbage,
    /// The answer to a list is the first one that was ever seen for it, if there is one.
    StaleList,
    /// All watches that are open now end; later ones do not.
    CutWatches,
    /// Watches that are open now stay so and deliver nothing while the rule is there; what arrives meanwhile is lost.
    StallWatches,
    /// The request goes to another path. It is logged under the one that the client asked for.
    RewritePath(Rewrite),
}

/// A fault, and the requests it happens to.
#[derive(Clone)]
pub struct Rule {
    predicates: Vec<Predicate>,
    times: Option<u32>,
    fault: Fault,
}

/// Names a rule, to remove it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuleId(u64);

/// The rules in force.
#[derive(Default)]
pub(super) struct Book {
    rules: Vec<(RuleId, Rule, u32)>,
    next: u64,
}

/// What happens to one request.
#[derive(Default)]
pub(super) struct Sentence {
    pub(super) rewrites: Vec<Rewrite>,
    pub(super) delay: Duration,
    pub(super) hold: Option<watch::Receiver<bool>>,
    /// The first fault that is none of these.
    pub(super) fault: Option<Fault>,
}

impl Rule {
    /// A fault of all requests, for ever.
    pub fn new(fault: Fault) -> Self {
        Self { predicates: Vec::new(), times: None, fault }
    }

    /// Only of requests with this method.
    pub fn method(self, method: Method) -> Self {
        self.when(move |parts| parts.method == method)
    }

    /// Only of requests whose path begins so.
    pub fn prefix(self, prefix: &str) -> Self {
        let prefix = prefix.to_owned();
        self.when(move |parts| parts.uri.path().starts_with(&prefix))
    }

    /// Only of requests whose path ends so.
    pub fn suffix(self, suffix: &str) -> Self {
        let suffix = suffix.to_owned();
        self.when(move |parts| parts.uri.path().ends_with(&suffix))
    }

    /// Only requests for which this is true, in addition to the other conditions.
    pub fn when(mut self, predicate: impl Fn(&Parts) -> bool + Send + Sync + 'static) -> Self {
        self.predicates.push(Arc::new(predicate));
        self
    }

    /// Only so many times.
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

impl Book {
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

    /// How often a rule in force was applied.
    pub(super) fn hits(&self, id: RuleId) -> u32 {
        self.rules.iter().find(|(other, _, _)| *other == id).map_or(0, |(_, _, hits)| *hits)
    }

    /// What happens to a request; rules that apply are counted.
    pub(super) fn judge(&mut self, parts: &Parts) -> Sentence {
        let mut sentence = Sentence::default();
        for (_, rule, hits) in &mut self.rules {
            let watches = matches!(rule.fault, Fault::CutWatches | Fault::StallWatches);
            let used_up = rule.times.is_some_and(|times| *hits >= times);
            let later = sentence.fault.is_some()
                && !matches!(rule.fault, Fault::Delay(_) | Fault::Hold(_) | Fault::RewritePath(_));
            if watches || used_up || later || !rule.matches(parts) {
                continue;
            }
            *hits += 1;
            match &rule.fault {
                Fault::Delay(delay) => sentence.delay += *delay,
                Fault::Hold(held) => sentence.hold = Some(held.clone()),
                Fault::RewritePath(rewrite) => sentence.rewrites.push(Arc::clone(rewrite)),
                fault => sentence.fault = Some(fault.clone()),
            }
        }
        sentence
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
            Self::DelayAnswer(delay) => write!(f, "DelayAnswer({delay:?})"),
            Self::Hold(held) => write!(f, "Hold({})", *held.borrow()),
            Self::Refuse => f.write_str("Refuse"),
            Self::LoseAnswer => f.write_str("LoseAnswer"),
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
        let mut book = Book::default();
        let second = Duration::from_secs(1);
        book.add(Rule::new(Fault::Delay(second)));
        let refused = book.add(Rule::new(Fault::Refuse).method(Method::PUT).prefix("/apis/").times(1));
        let garbage = book.add(Rule::new(Fault::Garbage).suffix("/scale"));
        book.add(Rule::new(Fault::Delay(second)).when(|parts| parts.uri.query() == Some("a")));
        let mut judge = |method, path| {
            let sentence = book.judge(&parts(method, path));
            (sentence.fault.map(|fault| format!("{fault:?}")), sentence.delay)
        };
        assert_eq!(judge(Method::PUT, "/apis/x/scale?a"), (Some("Refuse".into()), 2 * second));
        assert_eq!(judge(Method::PUT, "/apis/x/scale"), (Some("Garbage".into()), second), "used up");
        assert_eq!(judge(Method::GET, "/apis/x"), (None, second));
        assert_eq!((book.hits(refused), book.hits(garbage)), (1, 1));
        book.remove(garbage);
        assert!(book.judge(&parts(Method::GET, "/x/scale")).fault.is_none());
    }

    #[test]
    fn only_watches_from_before_the_rule_are_stalled() {
        let mut book = Book::default();
        let pods = parts(Method::GET, "/api/v1/pods?watch=1");
        let before = book.newest();
        let rule = book.add(Rule::new(Fault::StallWatches).prefix("/api/v1/pods"));
        assert!(book.stalls(&pods, before) && !book.stalls(&pods, book.newest()));
        assert!(!book.stalls(&parts(Method::GET, "/api/v1/nodes?watch=1"), before));
        assert!(book.judge(&pods).fault.is_none());
        book.remove(rule);
        assert!(!book.stalls(&pods, before));
    }
}
