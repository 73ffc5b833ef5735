//! How all this fares.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::{Provider, locked};
use crate::prometheus::client::{BackendReport, Reply};
use crate::prometheus::discovery::SelectorStatus;
use crate::prometheus::registry::Shadowed;
use crate::prometheus::rule::Family;

/// How the provider fares.
#[derive(Clone, Debug)]
pub struct Report {
    /// Custom metrics; none if there are no rules.
    pub custom: Option<SectionReport>,
    /// External metrics; none if there are no rules.
    pub external: Option<SectionReport>,
    /// Whether resource metrics are served from here.
    pub resource: bool,
    /// Prometheus.
    pub backend: BackendReport,
    /// Metrics that more than one rule claims.
    pub shadowed: Vec<Shadowed>,
    /// Samples that were of no use because another had the same name of the object.
    pub duplicates: u64,
    /// Samples that had no number.
    pub without_value: u64,
    /// Answers of which Prometheus warned.
    pub warned: u64,
}

/// How the rules of one kind fare.
#[derive(Clone, Debug)]
pub struct SectionReport {
    /// How many metrics are known.
    pub metrics: usize,
    /// Rules, in the order of the file.
    pub rules: Vec<RuleReport>,
}

/// How one rule fares.
#[derive(Clone, Debug)]
pub struct RuleReport {
    /// Its place: `rules[3]`.
    pub place: String,
    /// How asking for its series went; none before the first round.
    pub selector: Option<SelectorStatus>,
    /// How many metrics it has.
    pub metrics: usize,
}

impl RuleReport {
    /// Whether its series were listed, and nothing came of it.
    pub fn matches_nothing(&self) -> bool {
        let listed = self.selector.as_ref().is_some_and(|status| status.last_success.is_some());
        listed && self.metrics == 0
    }
}

impl Provider {
    /// How the provider fares, for those who look after it.
    pub fn report(&self) -> Report {
        let state = self.0.state();
        let memory = locked(&self.0.memory);
        let section = |family: Family, key: &str, metrics: usize| {
            let rules = state.rules.of(family);
            let reports = rules.iter().enumerate().map(|(index, rule)| RuleReport {
                place: format!("{key}[{index}]"),
                selector: memory.of(family).status(&rule.selector),
                metrics: state.registry.count(family, index),
            });
            (!rules.is_empty()).then(|| SectionReport { metrics, rules: reports.collect() })
        };
        let oddities = &self.0.oddities;
        Report {
            custom: section(Family::Custom, "rules", state.registry.custom_metrics().len()),
            external: section(Family::External, "externalRules", state.registry.external_metrics().len()),
            resource: state.rules.resource().is_some(),
            backend: self.0.prometheus.report(),
            shadowed: state.registry.shadowed().cloned().collect(),
            duplicates: oddities.duplicates.load(Relaxed),
            without_value: oddities.without_value.load(Relaxed),
            warned: oddities.warned.load(Relaxed),
        }
    }
}

/// What was odd about answers, counted, and logged once per query.
#[derive(Default)]
pub(super) struct Oddities {
    duplicates: AtomicU64,
    without_value: AtomicU64,
    warned: AtomicU64,
    /// Hashes of queries that were complained about.
    logged: Mutex<HashSet<u64>>,
}

/// So many queries are complained about, and then it begins again.
const MOST_LOGGED: usize = 1000;

impl Oddities {
    pub(super) fn note(&self, query: &str, reply: &Reply, duplicates: usize, without_value: usize) {
        let warned = !reply.warnings.is_empty();
        if duplicates == 0 && without_value == 0 && !warned {
            return;
        }
        self.duplicates.fetch_add(duplicates as u64, Relaxed);
        self.without_value.fetch_add(without_value as u64, Relaxed);
        self.warned.fetch_add(u64::from(warned), Relaxed);
        let mut hasher = DefaultHasher::new();
        query.hash(&mut hasher);
        let mut logged = locked(&self.logged);
        if logged.len() >= MOST_LOGGED {
            logged.clear();
        }
        if logged.insert(hasher.finish()) {
            tracing::warn!(
                query, duplicates, without_value, warnings = ?reply.warnings, infos = ?reply.infos,
                "an answer is odd: only the last of several samples of one object counts, those without a number do not"
            );
        }
    }
}
