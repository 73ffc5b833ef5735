//! Looks for series from time to time.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::task::AbortHandle;

use super::{Inner, State, locked, remembered, selectors};
use crate::prometheus::discovery;
use crate::prometheus::rule::Family;

/// How long after a failure it is tried again, at first.
const SOON: Duration = Duration::from_secs(5);

/// Begins to look for the series of a family of rules, for as long as the provider is used.
pub(super) fn spawn(inner: &Arc<Inner>, family: Family) -> AbortHandle {
    let inner = Arc::downgrade(inner);
    tokio::spawn(go_on(inner, family)).abort_handle()
}

async fn go_on(inner: Weak<Inner>, family: Family) {
    let mut failures = 0_u32;
    loop {
        let Some(provider) = inner.upgrade() else { return };
        let all_answered = round(&provider, family, failures > 0).await;
        let settings = &provider.settings;
        let pause = settings.plan.pause(settings.compat);
        let pause = if all_answered || settings.compat.is_strict() {
            failures = 0;
            pause
        } else {
            failures = failures.saturating_add(1);
            pause.min(SOON.saturating_mul(1 << failures.min(10).saturating_sub(1)))
        };
        let changed = match family {
            Family::Custom => Arc::clone(&provider.changed.0),
            Family::External => Arc::clone(&provider.changed.1),
        };
        // A provider that nobody uses is not kept.
        drop(provider);
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = changed.notified() => failures = 0,
        }
    }
}

/// Asks for the selectors of a family once, or only for those that failed before; says whether all were answered.
pub(super) async fn round(inner: &Inner, family: Family, only_failed: bool) -> bool {
    refresh(inner);
    let state = inner.state();
    let wanted = selectors(&state.rules, family);
    let asked = if only_failed { locked(&inner.memory).of(family).failed(&wanted) } else { wanted.clone() };
    if asked.is_empty() {
        return true;
    }
    let now = inner.now();
    let attempts = discovery::survey(&inner.prometheus, asked, &inner.settings.plan, now).await;
    let all_answered = attempts.iter().all(|attempt| attempt.result.is_ok());
    for attempt in &attempts {
        match &attempt.result {
            Err(error) => {
                tracing::warn!(selector = %attempt.selector, %error, remedy = error.remedy(), "series could not be listed");
            }
            Ok(found) => tracing::debug!(
                selector = %attempt.selector, series = found.series, distinct = found.shapes.len(), took = ?attempt.took,
                "series were listed"
            ),
        }
    }
    let mut memory = locked(&inner.memory);
    // Rules may have been exchanged meanwhile; what was learned is of use if they ask for it, too.
    let state = inner.state();
    let wanted = selectors(&state.rules, family);
    if memory.of_mut(family).learn(&wanted, attempts, now, inner.compat(), &inner.settings.plan) {
        let mut registry = state.registry.clone();
        registry.replace(&state.rules, &state.mapper, family, &remembered(&memory, &state.rules, family));
        inner.exchange(State {
            registry,
            config: state.config.clone(),
            rules: state.rules.clone(),
            mapper: Arc::clone(&state.mapper),
            separable: state.separable.clone(),
        });
    }
    all_answered
}

/// Makes the rules anew if there are other resources in the cluster; those that cannot be made stay as they are.
fn refresh(inner: &Inner) {
    let mapper = inner.world.mapper();
    let memory = locked(&inner.memory);
    let state = inner.state();
    if Arc::ptr_eq(&mapper, &state.mapper) {
        return;
    }
    match State::new(state.config.clone(), mapper, inner.compat(), &memory) {
        Ok(state) => inner.exchange(state),
        Err(error) => {
            tracing::warn!(%error, "rules no longer fit the resources of the cluster; they stay as they were");
        }
    }
}
