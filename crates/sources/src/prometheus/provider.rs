//! Serves custom, external and resource metrics from Prometheus.
//!
//! ```text
//! discovery_loop  runs discovery periodically
//! custom          custom metrics
//! external        external metrics
//! resource        CPU and memory of pods and nodes
//! separable       whether one query can serve many objects
//! report          status of the provider
//! ```
//!
//! Rules, discovered metrics and resources form one [`ProviderState`], which is replaced as a whole.

mod custom;
mod discovery_loop;
mod external;
mod report;
mod resource;
mod separable;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::{Arc, Mutex, RwLock};
use std::time::Duration;

use api::provider::{Compat, MetricsError, ProviderFuture};
use api::selector::Selector;
use jiff::Timestamp;
use locks::{MutexExt as _, RwLockExt as _};
use tokio::sync::Notify;
use tokio::task::AbortHandle;

pub use report::{ProviderReport, RuleReport, SectionReport};

use super::client::PrometheusClient;
use super::config::{AdapterConfig, ConfigError};
use super::discovery::{DiscoverySettings, DiscoveryState};
use super::mapper::{KnownResource, RestMapper};
use super::registry::{Registry, Series};
use super::reload::ReloadOutcome;
use super::rule::{RuleFamily, Rules};
use crate::Clock;
use crate::inventory::{Node, Pod};

/// Cluster data that the provider needs.
pub trait ClusterResources: Send + Sync {
    /// Resources of the API server; a new `Arc` when they changed.
    fn mapper(&self) -> Arc<RestMapper>;
    /// Names of objects in list order.
    fn names<'a>(
        &'a self,
        resource: &'a KnownResource,
        namespace: Option<&'a str>,
        selector: &'a Selector,
    ) -> ProviderFuture<'a, Vec<String>>;
    /// Running pods of a namespace or of all, ascending by namespace and name.
    fn pods(&self, namespace: Option<&str>) -> Vec<Arc<Pod>>;
    /// Looks up a running pod.
    fn pod(&self, namespace: &str, name: &str) -> Option<Arc<Pod>>;
    /// All nodes, ascending by name.
    fn nodes(&self) -> Vec<Arc<Node>>;
    /// Looks up a node.
    fn node(&self, name: &str) -> Option<Arc<Node>>;
}

/// Settings of a provider.
#[derive(Clone, Debug)]
pub struct ProviderSettings {
    /// Whether prometheus-adapter is imitated exactly.
    pub compat: Compat,
    /// Settings of discovery.
    pub discovery: DiscoverySettings,
    /// Timeout of a query.
    pub query_timeout: Duration,
    /// Above this number of names a query selects all objects, if the rule allows it.
    pub max_names_per_query: usize,
    /// The wall clock.
    pub clock: Clock,
}

impl ProviderSettings {
    /// Default settings with this clock.
    pub fn new(clock: Clock) -> Self {
        Self {
            compat: Compat::default(),
            discovery: DiscoverySettings::default(),
            query_timeout: Duration::from_secs(30),
            max_names_per_query: 50,
            clock,
        }
    }
}

/// Serves custom, external and resource metrics. Cheap to clone; clones share their data.
#[derive(Clone)]
pub struct PrometheusProvider(Arc<ProviderInner>);

struct ProviderInner {
    settings: ProviderSettings,
    prometheus: PrometheusClient,
    cluster: Arc<dyn ClusterResources>,
    state: RwLock<Arc<ProviderState>>,
    discovery_states: Mutex<DiscoveryStates>,
    /// Wakes the discovery loops of custom and external metrics after a reload.
    changed: (Arc<Notify>, Arc<Notify>),
    discovery_tasks: Mutex<Vec<AbortHandle>>,
    warnings_log: report::ResponseWarnings,
}

#[derive(Default)]
struct DiscoveryStates {
    custom: DiscoveryState,
    external: DiscoveryState,
}

/// Rules and discovered metrics.
struct ProviderState {
    config: AdapterConfig,
    rules: Rules,
    mapper: Arc<RestMapper>,
    registry: Registry,
    /// Per custom rule: whether one query can select all objects.
    separable: Vec<bool>,
}

impl fmt::Debug for PrometheusProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PrometheusProvider").field("prometheus", &self.0.prometheus).finish_non_exhaustive()
    }
}

impl PrometheusProvider {
    /// Creates a provider and starts discovery. No metric is known before the first round.
    pub fn start(
        settings: ProviderSettings,
        prometheus: PrometheusClient,
        config: AdapterConfig,
        cluster: Arc<dyn ClusterResources>,
    ) -> Result<Self, ConfigError> {
        let provider = Self::idle(settings, prometheus, config, cluster)?;
        let tasks = [RuleFamily::Custom, RuleFamily::External]
            .map(|family| discovery_loop::spawn(&provider.0, family));
        provider.0.discovery_tasks.locked().extend(tasks);
        Ok(provider)
    }

    /// Creates a provider without background discovery; see [`PrometheusProvider::discover`].
    pub fn idle(
        settings: ProviderSettings,
        prometheus: PrometheusClient,
        config: AdapterConfig,
        cluster: Arc<dyn ClusterResources>,
    ) -> Result<Self, ConfigError> {
        let state =
            ProviderState::new(config, cluster.mapper(), settings.compat, &DiscoveryStates::default())?;
        Ok(Self(Arc::new(ProviderInner {
            settings,
            prometheus,
            cluster,
            state: RwLock::new(Arc::new(state)),
            discovery_states: Mutex::default(),
            changed: (Arc::default(), Arc::default()),
            discovery_tasks: Mutex::default(),
            warnings_log: report::ResponseWarnings::default(),
        })))
    }

    /// Runs one round of discovery.
    pub async fn discover(&self) {
        for family in [RuleFamily::Custom, RuleFamily::External] {
            discovery_loop::round(&self.0, family, false).await;
        }
    }

    /// Replaces the rules. Known series are used at once and new selectors are listed now. Invalid rules change
    /// nothing.
    pub fn reload(&self, config: AdapterConfig) -> ReloadOutcome {
        let old = self.0.state();
        if old.config == config {
            return ReloadOutcome::Unchanged;
        }
        let states = self.0.discovery_states.locked();
        match ProviderState::new(config, self.0.cluster.mapper(), self.0.settings.compat, &states) {
            Ok(state) => {
                self.0.exchange(state);
                drop(states);
                self.0.changed.0.notify_one();
                self.0.changed.1.notify_one();
                ReloadOutcome::Reloaded
            }
            Err(error) => {
                let place = error
                    .rule
                    .map_or_else(|| error.stage.to_string(), |rule| format!("{}[{rule}]", error.stage));
                ReloadOutcome::Refused(format!("{place}: {error}"))
            }
        }
    }

    /// Which APIs have rules: custom, external, resource.
    pub fn serves(&self) -> (bool, bool, bool) {
        let state = self.0.state();
        let has = |family| !state.rules.of(family).is_empty();
        (has(RuleFamily::Custom), has(RuleFamily::External), state.rules.resource().is_some())
    }

    /// The Prometheus client.
    pub fn prometheus(&self) -> &PrometheusClient {
        &self.0.prometheus
    }
}

impl Drop for ProviderInner {
    fn drop(&mut self) {
        self.discovery_tasks.locked().iter().for_each(AbortHandle::abort);
    }
}

impl ProviderInner {
    fn state(&self) -> Arc<ProviderState> {
        Arc::clone(&self.state.read_locked())
    }

    fn exchange(&self, state: ProviderState) {
        *self.state.write_locked() = Arc::new(state);
    }

    fn now(&self) -> Timestamp {
        self.settings.clock.now()
    }

    fn compat(&self) -> Compat {
        self.settings.compat
    }

    /// An internal error; the cause is included outside strict mode only.
    fn unable(&self, what: &str, why: &dyn fmt::Display) -> MetricsError {
        tracing::debug!(%why, "{what}");
        MetricsError::Internal(if self.compat().is_strict() {
            what.to_owned()
        } else {
            format!("{what}: {why}")
        })
    }
}

impl ProviderState {
    fn new(
        config: AdapterConfig,
        mapper: Arc<RestMapper>,
        compat: Compat,
        states: &DiscoveryStates,
    ) -> Result<Self, ConfigError> {
        let rules = Rules::compile(&config, &mapper, compat)?;
        let separable = rules
            .of(RuleFamily::Custom)
            .iter()
            .map(|rule| separable::is_separable(rule.query.text()))
            .collect();
        let mut registry = Registry::new(&rules);
        for family in [RuleFamily::Custom, RuleFamily::External] {
            registry.replace(&rules, &mapper, family, &known_series(states, &rules, family));
        }
        Ok(Self { config, rules, mapper, registry, separable })
    }
}

impl DiscoveryStates {
    fn of(&self, family: RuleFamily) -> &DiscoveryState {
        match family {
            RuleFamily::Custom => &self.custom,
            RuleFamily::External => &self.external,
        }
    }

    fn of_mut(&mut self, family: RuleFamily) -> &mut DiscoveryState {
        match family {
            RuleFamily::Custom => &mut self.custom,
            RuleFamily::External => &mut self.external,
        }
    }
}

fn selectors(rules: &Rules, family: RuleFamily) -> Vec<Arc<str>> {
    match family {
        RuleFamily::Custom => rules.custom_selectors(),
        RuleFamily::External => rules.external_selectors(),
    }
}

/// Known series of the selectors of a family.
fn known_series(states: &DiscoveryStates, rules: &Rules, family: RuleFamily) -> Vec<(Arc<str>, Vec<Series>)> {
    let state = states.of(family);
    selectors(rules, family)
        .into_iter()
        .map(|selector| {
            let series = state.shapes(&selector).cloned().collect();
            (selector, series)
        })
        .collect()
}
