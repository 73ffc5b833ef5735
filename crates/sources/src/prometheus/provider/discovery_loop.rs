//! Runs discovery periodically.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures::FutureExt as _;
use locks::MutexExt as _;
use runtime::panic_text;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::{ProviderInner, ProviderState, known_series, selectors};
use crate::prometheus::discovery;
use crate::prometheus::rule::RuleFamily;

/// First retry delay after a failure.
const FIRST_RETRY_DELAY: Duration = Duration::from_secs(5);

/// Starts the discovery loop of a rule family; it ends with the provider.
pub(super) fn spawn(inner: &Arc<ProviderInner>, family: RuleFamily) -> AbortHandle {
    let inner = Arc::downgrade(inner);
    tokio::spawn(run(inner, family)).abort_handle()
}

async fn run(inner: Weak<ProviderInner>, family: RuleFamily) {
    let (mut failures, mut panicked) = (0_u32, false);
    let mut next_whole_round = Instant::now();
    loop {
        let Some(provider) = inner.upgrade() else { return };
        // After a panic no selector is known to have failed. A selector that always fails must not keep the others from
        // being listed, or their new series would never be found.
        let only_failed = failures > 0 && !panicked && Instant::now() < next_whole_round;
        let done = AssertUnwindSafe(round(&provider, family, only_failed)).catch_unwind().await;
        panicked = done.is_err();
        // The loop goes on, or the served metrics would stay as they are for ever.
        let all_answered = done.unwrap_or_else(|payload| {
            tracing::error!(error = panic_text(&*payload), "discovery of series panicked");
            false
        });
        let settings = &provider.settings;
        if !only_failed {
            next_whole_round = Instant::now() + settings.discovery.pause(settings.compat);
        }
        let pause = next_whole_round.saturating_duration_since(Instant::now());
        let pause = if all_answered || settings.compat.is_strict() {
            failures = 0;
            pause
        } else {
            failures = failures.saturating_add(1);
            pause.min(FIRST_RETRY_DELAY.saturating_mul(1 << failures.min(10).saturating_sub(1)))
        };
        let changed = match family {
            RuleFamily::Custom => Arc::clone(&provider.changed.0),
            RuleFamily::External => Arc::clone(&provider.changed.1),
        };
        // The loop must not keep the provider alive.
        drop(provider);
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = changed.notified() => failures = 0,
        }
    }
}

/// Runs one round for a rule family, or only for the selectors that failed before; whether all succeeded.
pub(super) async fn round(inner: &ProviderInner, family: RuleFamily, only_failed: bool) -> bool {
    refresh(inner);
    let state = inner.state();
    let wanted = selectors(&state.rules, family);
    let listed =
        if only_failed { inner.discovery_states.locked().of(family).failed(&wanted) } else { wanted.clone() };
    if listed.is_empty() {
        return true;
    }
    let now = inner.now();
    let attempts = discovery::list_series(&inner.prometheus, listed, &inner.settings.discovery, now).await;
    let all_answered = attempts.iter().all(|attempt| attempt.result.is_ok());
    for attempt in &attempts {
        match &attempt.result {
            Err(error) => {
                tracing::warn!(selector = %attempt.selector, %error, remedy = error.remedy(), "discovery of series failed");
            }
            Ok(found) => tracing::debug!(
                selector = %attempt.selector, series = found.series, distinct = found.shapes.len(), took = ?attempt.took,
                "series discovered"
            ),
        }
    }
    let mut states = inner.discovery_states.locked();
    // The rules may have changed meanwhile; results are kept if they still use the selector.
    let state = inner.state();
    let wanted = selectors(&state.rules, family);
    if states.of_mut(family).update(&wanted, attempts, now, inner.compat(), &inner.settings.discovery) {
        let mut registry = state.registry.clone();
        registry.replace(&state.rules, &state.mapper, family, &known_series(&states, &state.rules, family));
        inner.exchange(ProviderState {
            registry,
            config: state.config.clone(),
            rules: state.rules.clone(),
            mapper: Arc::clone(&state.mapper),
            separable: state.separable.clone(),
        });
    }
    all_answered
}

/// Recompiles the rules if the resources of the cluster changed; if that fails, the old ones stay.
fn refresh(inner: &ProviderInner) {
    let mapper = inner.cluster.mapper();
    let states = inner.discovery_states.locked();
    let state = inner.state();
    if Arc::ptr_eq(&mapper, &state.mapper) {
        return;
    }
    match ProviderState::new(state.config.clone(), mapper, inner.compat(), &states) {
        Ok(state) => inner.exchange(state),
        Err(error) => {
            tracing::warn!(%error, "rules no longer fit the resources of the cluster; they stay as they were");
        }
    }
}
