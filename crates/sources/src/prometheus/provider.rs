//! Answers custom, external and resource metrics from Prometheus.
//!
//! ```text
//! rounds      looks for series from time to time
//! custom      metrics of objects
//! external    metrics of anything else
//! resource    CPU and memory of pods and nodes
//! separable   whether one query may answer for many objects
//! report      how all this fares
//! ```
//!
//! Rules, what they found and the resources they refer to are one [`State`] that is exchanged as a whole.

mod custom;
mod external;
mod report;
mod resource;
mod rounds;
mod separable;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use api::provider::{Answer, Compat, Failure};
use api::selector::Selector;
use jiff::Timestamp;
use tokio::sync::Notify;
use tokio::task::AbortHandle;

pub use report::{Report, RuleReport, SectionReport};

use super::client::Prometheus;
use super::config::{Config, ConfigError};
use super::discovery::{Memory, Plan};
use super::mapper::{KnownResource, Mapper};
use super::registry::{Registry, Series};
use super::reload::Reloaded;
use super::rule::{Family, Rules};
use crate::inventory::{Node, Pod};

/// What must be known about the cluster.
pub trait World: Send + Sync {
    /// All resources; another one when they changed.
    fn mapper(&self) -> Arc<Mapper>;
    /// Names of objects, in the order in which the API lists them.
    fn names<'a>(
        &'a self,
        resource: &'a KnownResource,
        namespace: Option<&'a str>,
        selector: &'a Selector,
    ) -> Answer<'a, Vec<String>>;
    /// Running pods of a namespace, or all, ascending by namespace and name.
    fn pods(&self, namespace: Option<&str>) -> Vec<Arc<Pod>>;
    /// One running pod.
    fn pod(&self, namespace: &str, name: &str) -> Option<Arc<Pod>>;
    /// All nodes, ascending by name.
    fn nodes(&self) -> Vec<Arc<Node>>;
    /// One node.
    fn node(&self, name: &str) -> Option<Arc<Node>>;
}

/// How metrics are provided.
#[derive(Clone)]
pub struct Settings {
    /// How exactly the adapter is imitated.
    pub compat: Compat,
    /// How series are looked for.
    pub plan: Plan,
    /// How long a question may take.
    pub patience: Duration,
    /// From how many names on a query is asked for all objects, if that is the same.
    pub many_names: usize,
    /// What time it is.
    pub clock: Arc<dyn Fn() -> Timestamp + Send + Sync>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            compat: Compat::default(),
            plan: Plan::default(),
            patience: Duration::from_secs(30),
            many_names: 50,
            clock: Arc::new(Timestamp::now),
        }
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("compat", &self.compat)
            .field("plan", &self.plan)
            .finish_non_exhaustive()
    }
}

/// Answers custom, external and resource metrics. Cheap to clone; all clones are the same provider.
#[derive(Clone)]
pub struct Provider(Arc<Inner>);

struct Inner {
    settings: Settings,
    prometheus: Prometheus,
    world: Arc<dyn World>,
    state: RwLock<Arc<State>>,
    memory: Mutex<Memories>,
    /// Wakes the rounds of custom and external metrics when there are new rules.
    changed: (Arc<Notify>, Arc<Notify>),
    rounds: Mutex<Vec<AbortHandle>>,
    oddities: report::Oddities,
}

#[derive(Default)]
struct Memories {
    custom: Memory,
    external: Memory,
}

/// Rules, and what they found.
struct State {
    config: Config,
    rules: Rules,
    mapper: Arc<Mapper>,
    registry: Registry,
    /// Which rules of custom metrics may be asked for all objects at once.
    separable: Vec<bool>,
}

impl fmt::Debug for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Provider").field("prometheus", &self.0.prometheus).finish_non_exhaustive()
    }
}

impl Provider {
    /// Provides metrics by these rules, and begins to look for their series. Nothing is known before the first round.
    pub fn start(
        settings: Settings,
        prometheus: Prometheus,
        config: Config,
        world: Arc<dyn World>,
    ) -> Result<Self, ConfigError> {
        let provider = Self::idle(settings, prometheus, config, world)?;
        let rounds = [Family::Custom, Family::External].map(|family| rounds::spawn(&provider.0, family));
        locked(&provider.0.rounds).extend(rounds);
        Ok(provider)
    }

    /// The same, but series are looked for only by [`Provider::discover`].
    pub fn idle(
        settings: Settings,
        prometheus: Prometheus,
        config: Config,
        world: Arc<dyn World>,
    ) -> Result<Self, ConfigError> {
        let state = State::new(config, world.mapper(), settings.compat, &Memories::default())?;
        Ok(Self(Arc::new(Inner {
            settings,
            prometheus,
            world,
            state: RwLock::new(Arc::new(state)),
            memory: Mutex::default(),
            changed: (Arc::default(), Arc::default()),
            rounds: Mutex::default(),
            oddities: report::Oddities::default(),
        })))
    }

    /// Looks for the series of all rules once.
    pub async fn discover(&self) {
        for family in [Family::Custom, Family::External] {
            rounds::round(&self.0, family, false).await;
        }
    }

    /// Takes new rules. What is known about their selectors is used at once; new ones are asked for now. If they cannot be
    /// used, nothing changes.
    pub fn reload(&self, config: Config) -> Reloaded {
        let old = self.0.state();
        if old.config == config {
            return Reloaded::Unchanged;
        }
        let memory = locked(&self.0.memory);
        match State::new(config, self.0.world.mapper(), self.0.settings.compat, &memory) {
            Ok(state) => {
                self.0.exchange(state);
                drop(memory);
                self.0.changed.0.notify_one();
                self.0.changed.1.notify_one();
                Reloaded::Reloaded
            }
            Err(error) => {
                let place = error
                    .rule
                    .map_or_else(|| error.stage.to_string(), |rule| format!("{}[{rule}]", error.stage));
                Reloaded::Refused(format!("{place}: {error}"))
            }
        }
    }

    /// Which APIs the rules can answer: custom, external and resource metrics.
    pub fn serves(&self) -> (bool, bool, bool) {
        let state = self.0.state();
        let has = |family| !state.rules.of(family).is_empty();
        (has(Family::Custom), has(Family::External), state.rules.resource().is_some())
    }

    /// The Prometheus that is asked.
    pub fn prometheus(&self) -> &Prometheus {
        &self.0.prometheus
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        locked(&self.rounds).iter().for_each(AbortHandle::abort);
    }
}

impl Inner {
    fn state(&self) -> Arc<State> {
        Arc::clone(&self.state.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn exchange(&self, state: State) {
        *self.state.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(state);
    }

    fn now(&self) -> Timestamp {
        (self.settings.clock)()
    }

    fn compat(&self) -> Compat {
        self.settings.compat
    }

    /// That something cannot be done; why is said to clients only unless the adapter is imitated.
    fn unable(&self, what: &str, why: &dyn fmt::Display) -> Failure {
        tracing::debug!(%why, "{what}");
        Failure::Internal(if self.compat().is_strict() { what.to_owned() } else { format!("{what}: {why}") })
    }
}

impl State {
    fn new(
        config: Config,
        mapper: Arc<Mapper>,
        compat: Compat,
        memory: &Memories,
    ) -> Result<Self, ConfigError> {
        let rules = Rules::compile(&config, &mapper, compat)?;
        let separable =
            rules.of(Family::Custom).iter().map(|rule| separable::is_separable(rule.query.text())).collect();
        let mut registry = Registry::new(&rules);
        for family in [Family::Custom, Family::External] {
            registry.replace(&rules, &mapper, family, &remembered(memory, &rules, family));
        }
        Ok(Self { config, rules, mapper, registry, separable })
    }
}

impl Memories {
    fn of(&self, family: Family) -> &Memory {
        match family {
            Family::Custom => &self.custom,
            Family::External => &self.external,
        }
    }

    fn of_mut(&mut self, family: Family) -> &mut Memory {
        match family {
            Family::Custom => &mut self.custom,
            Family::External => &mut self.external,
        }
    }
}

fn selectors(rules: &Rules, family: Family) -> Vec<Arc<str>> {
    match family {
        Family::Custom => rules.custom_selectors(),
        Family::External => rules.external_selectors(),
    }
}

/// What is known about the selectors of a family.
fn remembered(memory: &Memories, rules: &Rules, family: Family) -> Vec<(Arc<str>, Vec<Series>)> {
    let memory = memory.of(family);
    selectors(rules, family)
        .into_iter()
        .map(|selector| {
            let series = memory.shapes(&selector).cloned().collect();
            (selector, series)
        })
        .collect()
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
