//! Status of the provider.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use locks::MutexExt as _;

use super::PrometheusProvider;
use crate::prometheus::client::{PrometheusReport, QueryResponse};
use crate::prometheus::discovery::SelectorStatus;
use crate::prometheus::registry::ShadowedMetric;
use crate::prometheus::rule::RuleFamily;

/// Status of the provider.
#[derive(Clone, Debug)]
pub struct ProviderReport {
    /// Custom metrics; `None` without rules.
    pub custom: Option<SectionReport>,
    /// External metrics; `None` without rules.
    pub external: Option<SectionReport>,
    /// Whether resource metrics are served.
    pub resource: bool,
    /// Counters and health of Prometheus.
    pub backend: PrometheusReport,
    /// Metrics produced by more than one rule.
    pub shadowed: Vec<ShadowedMetric>,
    /// Number of samples overridden by another of the same object.
    pub duplicates: u64,
    /// Number of samples without a value.
    pub without_value: u64,
    /// Number of responses with warnings.
    pub warned: u64,
}

/// Status of the rules of one section.
#[derive(Clone, Debug)]
pub struct SectionReport {
    /// Number of known metrics.
    pub metrics: usize,
    /// Rules in file order.
    pub rules: Vec<RuleReport>,
}

/// Status of one rule.
#[derive(Clone, Debug)]
pub struct RuleReport {
    /// Path in the file: `rules[3]`.
    pub place: String,
    /// Discovery status; `None` before the first round.
    pub selector: Option<SelectorStatus>,
    /// Number of its metrics.
    pub metrics: usize,
}

impl RuleReport {
    /// Whether discovery succeeded without any metric.
    pub fn matches_nothing(&self) -> bool {
        let listed = self.selector.as_ref().is_some_and(|status| status.last_success.is_some());
        listed && self.metrics == 0
    }
}

impl PrometheusProvider {
    /// Status of the provider.
    pub fn report(&self) -> ProviderReport {
        let state = self.0.state();
        let states = self.0.discovery_states.locked();
        let section = |family: RuleFamily, key: &str, metrics: usize| {
            let rules = state.rules.of(family);
            let reports = rules.iter().enumerate().map(|(index, rule)| RuleReport {
                place: format!("{key}[{index}]"),
                selector: states.of(family).status(&rule.selector),
                metrics: state.registry.count(family, index),
            });
            (!rules.is_empty()).then(|| SectionReport { metrics, rules: reports.collect() })
        };
        let warnings_log = &self.0.warnings_log;
        ProviderReport {
            custom: section(RuleFamily::Custom, "rules", state.registry.custom_metrics().len()),
            external: section(RuleFamily::External, "externalRules", state.registry.external_metrics().len()),
            resource: state.rules.resource().is_some(),
            backend: self.0.prometheus.report(),
            shadowed: state.registry.shadowed().cloned().collect(),
            duplicates: warnings_log.duplicates.load(Relaxed),
            without_value: warnings_log.without_value.load(Relaxed),
            warned: warnings_log.warned.load(Relaxed),
        }
    }
}

/// Counts samples without use and warnings; logs once per query.
#[derive(Default)]
pub(super) struct ResponseWarnings {
    duplicates: AtomicU64,
    without_value: AtomicU64,
    warned: AtomicU64,
    /// Hashes of logged queries.
    logged: Mutex<HashSet<u64>>,
}

/// Size limit of the set of logged queries, which is then cleared.
const MAX_LOGGED_QUERIES: usize = 1000;

impl ResponseWarnings {
    pub(super) fn note(&self, query: &str, reply: &QueryResponse, duplicates: usize, without_value: usize) {
        let warned = !reply.warnings.is_empty();
        if duplicates == 0 && without_value == 0 && !warned {
            return;
        }
        self.duplicates.fetch_add(duplicates as u64, Relaxed);
        self.without_value.fetch_add(without_value as u64, Relaxed);
        self.warned.fetch_add(u64::from(warned), Relaxed);
        let mut hasher = DefaultHasher::new();
        query.hash(&mut hasher);
        let mut logged = self.logged.locked();
        if logged.len() >= MAX_LOGGED_QUERIES {
            logged.clear();
        }
        if logged.insert(hasher.finish()) {
            tracing::warn!(
                query, duplicates, without_value, warnings = ?reply.warnings, infos = ?reply.infos,
                "a query result has duplicate samples, samples without a value, or warnings; the last sample of an object is used"
            );
        }
    }
}
