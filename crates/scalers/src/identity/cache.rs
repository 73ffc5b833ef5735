//! Credentials per identity, renewed ahead of time.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use locks::MutexExt as _;
use tokio::time::Instant;

use crate::ScalerError;

/// How long before their end credentials are renewed; short-lived ones after half of their time.
const RENEW_BEFORE: Duration = Duration::from_mins(5);
/// How long a failure is returned to all triggers without another request.
const FAILURE_PAUSE: Duration = Duration::from_secs(5);
/// Credentials that were not used for this time are removed.
const UNUSED_CREDENTIAL_TTL: Duration = Duration::from_hours(2);

/// Credentials by identity. It has no Debug, because keys and values are secrets.
pub(super) struct CredentialCache<K, V>(Mutex<HashMap<K, Slot<V>>>);

struct Slot<V> {
    state: Arc<tokio::sync::Mutex<SlotState<V>>>,
    used: Instant,
}

struct SlotState<V> {
    credentials: Option<Credentials<V>>,
    failure: Option<(ScalerError, Instant)>,
}

struct Credentials<V> {
    value: V,
    renew: Instant,
    end: Instant,
}

impl<K, V> Default for CredentialCache<K, V> {
    fn default() -> Self {
        Self(Mutex::new(HashMap::new()))
    }
}

impl<K: Eq + Hash + Clone, V: Clone> CredentialCache<K, V> {
    /// The credentials of an identity. `fetch` returns new ones and how long they are valid; one caller fetches for all. If they
    /// cannot be renewed, the old ones are used until their end.
    pub(super) async fn get<F>(&self, key: &K, fetch: impl FnOnce() -> F) -> Result<V, ScalerError>
    where
        F: Future<Output = Result<(V, Duration), ScalerError>>,
    {
        let slot = self.slot(key);
        let mut state = slot.lock().await;
        let now = Instant::now();
        let valid = match &state.credentials {
            Some(credentials) if now < credentials.renew => return Ok(credentials.value.clone()),
            Some(credentials) if now < credentials.end => Some(credentials.value.clone()),
            _ => None,
        };
        if let Some((error, until)) = &state.failure
            && now < *until
        {
            return valid.ok_or_else(|| error.clone());
        }
        match fetch().await {
            Ok((value, lifetime)) => {
                let now = Instant::now();
                let renew = now + lifetime.saturating_sub(RENEW_BEFORE.min(lifetime / 2));
                let end = now + lifetime;
                *state = SlotState {
                    credentials: Some(Credentials { value: value.clone(), renew, end }),
                    failure: None,
                };
                Ok(value)
            }
            Err(error) => {
                state.failure = Some((error.clone(), Instant::now() + FAILURE_PAUSE));
                valid.ok_or(error)
            }
        }
    }

    fn slot(&self, key: &K) -> Arc<tokio::sync::Mutex<SlotState<V>>> {
        let now = Instant::now();
        let mut slots = self.0.locked();
        if let Some(slot) = slots.get_mut(key) {
            slot.used = now;
            return Arc::clone(&slot.state);
        }
        slots.retain(|_, slot| now.duration_since(slot.used) < UNUSED_CREDENTIAL_TTL);
        let state = SlotState { credentials: None, failure: None };
        let state = Arc::new(tokio::sync::Mutex::new(state));
        slots.insert(key.clone(), Slot { state: Arc::clone(&state), used: now });
        state
    }
}
