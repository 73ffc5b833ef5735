//! Follows a cluster: list-and-watch of autoscalers, and only the new passes of controller and operator.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use api::autoscaling::v2::HorizontalPodAutoscaler;
use api::decisions::passes::PassList;
use api::keda::{ScaledJob, ScaledObject};
use api::plimsoll::Autoscaler;
use cluster::AutoscalerKind;
use cluster::request::{with_query, within};
use cluster::watch::{View, WatchCondition, WatchHealth, WatchSource, list_and_watch};
use jiff::Timestamp;
use locks::MutexExt as _;
use runtime::Reflectors;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::latest::{NewPass, NewPasses};
use super::watched::WatchedStore;
use crate::live::decisions::{MissingDecision, Unavailable};
use crate::live::objects::Object;
use crate::live::{ClusterClient, RequestError, Scope};

/// How often new passes are read.
const PASSES_INTERVAL: Duration = Duration::from_secs(1);
/// How soon decisions are read again if there is no cursor for what is new.
const RETRY_INTERVAL: Duration = Duration::from_secs(5);
/// The same if there are more than [`MAX_FREQUENTLY_READ_DECISIONS`].
const SLOW_RETRY_INTERVAL: Duration = Duration::from_mins(1);
/// Up to this many decisions are read again every [`RETRY_INTERVAL`].
const MAX_FREQUENTLY_READ_DECISIONS: usize = 1000;
/// Passes of one answer.
const PAGE_SIZE: &str = "10000";
/// The HTTP status for a user without the right to send a request.
const FORBIDDEN_STATUS_CODE: u16 = 403;
/// An interruption of a watch that is shorter is not mentioned.
const MIN_REPORTED_INTERRUPTION: Duration = Duration::from_secs(5);

/// What is followed in a cluster. Dropping it ends the watches.
pub(super) struct Follower {
    store: Arc<Mutex<WatchedStore>>,
    watches: Reflectors,
    /// What is known of the decisions APIs of the controller and of the operator.
    decision_apis: Mutex<[DecisionApiState; 2]>,
    /// New passes were read.
    news: Notify,
}

/// What is known of a decisions API.
#[derive(Default)]
struct DecisionApiState {
    /// Whether it was read, or could not be read.
    is_queried: bool,
    unavailable: Option<Unavailable>,
}

impl Follower {
    /// Begins to watch autoscalers of some kinds.
    pub(super) fn start(client: &kube::Client, kinds: &[AutoscalerKind], scope: Scope<'_>) -> Self {
        let follower = Self {
            store: Arc::default(),
            watches: Reflectors::default(),
            decision_apis: Mutex::default(),
            news: Notify::new(),
        };
        kinds.iter().fold(follower, |follower, kind| match kind {
            AutoscalerKind::Hpa => follower.watch::<HorizontalPodAutoscaler>(client, *kind, scope),
            AutoscalerKind::Autoscaler => follower.watch::<Autoscaler>(client, *kind, scope),
            AutoscalerKind::ScaledObject => follower.watch::<ScaledObject>(client, *kind, scope),
            AutoscalerKind::ScaledJob => follower.watch::<ScaledJob>(client, *kind, scope),
        })
    }

    fn watch<T: View>(mut self, client: &kube::Client, kind: AutoscalerKind, scope: Scope<'_>) -> Self
    where
        Object: From<T>,
    {
        let path = within(&format!("/apis/{}/{}", kind.api_version(), kind.plural()), scope.namespace());
        let mut source = WatchSource::new(path);
        if kind == AutoscalerKind::Hpa {
            let store = Arc::clone(&self.store);
            source = source.with_text_handler(move |text| store.locked().apply_status(text));
        }
        let client = client.clone();
        let (store, scope) = (Arc::clone(&self.store), scope.namespace().to_owned());
        self.watches.spawn(
            kind.plural(),
            move |health: WatchHealth| list_and_watch::<T>(client.clone(), source.clone(), health),
            move |event| store.locked().apply(kind, &scope, event.map(Object::from)),
        );
        self
    }

    /// The store.
    pub(super) fn store(&self) -> MutexGuard<'_, WatchedStore> {
        self.store.locked()
    }

    /// Waits for new passes, at most so long. A decision and the status that follows from it are then published together.
    pub(super) async fn wait_for_passes(&self, at_most: Duration) {
        let _ = tokio::time::timeout(at_most, self.news.notified()).await;
    }

    /// Whether every watch has listed its objects, and the decisions of both roles were read, as far as they can be.
    pub(super) fn is_complete(&self) -> bool {
        self.decision_apis.locked().iter().all(|api| api.is_queried) && self.is_listed()
    }

    /// Whether every watch has listed its objects.
    pub(super) fn is_listed(&self) -> bool {
        self.conditions().iter().all(|(_, condition)| condition.is_current())
    }

    /// Whether every watch receives changes.
    pub(super) fn is_connected(&self) -> bool {
        let is_connected =
            |condition: &WatchCondition| condition.absent || condition.disconnected_since.is_none();
        self.conditions().iter().all(|(_, condition)| is_connected(condition))
    }

    /// The watch that the user has no right for.
    pub(super) fn refused(&self) -> Option<String> {
        let is_refused = |condition: &WatchCondition| {
            condition.disconnected_since.is_some() && condition.last_error_code == Some(FORBIDDEN_STATUS_CODE)
        };
        self.conditions()
            .into_iter()
            .find(|(_, condition)| is_refused(condition))
            .map(|(resource, _)| resource)
    }

    /// What is missing, and the remedy.
    pub(super) fn notes(&self) -> Vec<Value> {
        let mut notes = Vec::new();
        for (resource, condition) in self.conditions() {
            let is_long = |since: Instant| since.elapsed() >= MIN_REPORTED_INTERRUPTION;
            if !condition.absent && condition.disconnected_since.is_some_and(is_long) {
                let error = condition.last_error.unwrap_or_else(|| "there is no answer".to_owned());
                let text = format!("{resource} are shown as they were: their watch is interrupted: {error}");
                notes.push(json!({"text": text, "remedy": "the console tries again"}));
            }
        }
        let unavailable = self.decision_apis.locked().iter().find_map(|api| api.unavailable.clone());
        notes.extend(unavailable.map(|why| without_decisions(&why)));
        notes
    }

    fn conditions(&self) -> Vec<(String, WatchCondition)> {
        let all = self.watches.watches().all().into_iter();
        all.map(|(resource, health)| (resource, health.condition())).collect()
    }

    /// Reads what is decided, without an end.
    pub(super) async fn read_decisions(&self, client: &ClusterClient, scope: Scope<'_>) {
        let controller = self.read_decisions_of(client, scope, AutoscalerKind::Hpa);
        let operator = self.read_decisions_of(client, scope, AutoscalerKind::ScaledObject);
        futures::future::join(controller, operator).await;
    }

    async fn read_decisions_of(&self, client: &ClusterClient, scope: Scope<'_>, kind: AutoscalerKind) {
        let mut cursor: Option<String> = None;
        loop {
            if !self.is_listed() {
                tokio::time::sleep(PASSES_INTERVAL / 10).await;
                continue;
            }
            let had_cursor = cursor.is_some();
            if let Some(known) = &cursor {
                match self.read_passes(client, scope, kind, known).await {
                    Ok(next) => {
                        cursor = next;
                        self.news.notify_one();
                    }
                    // The cluster does not answer; the watches say so.
                    Err(RequestError::Unreachable(_)) => {}
                    Err(_) => cursor = None,
                }
            }
            let mut pause = PASSES_INTERVAL;
            if cursor.is_none() {
                (cursor, pause) = self.read_all(client, scope, kind).await;
                if had_cursor {
                    // A server that refuses its own cursors must not get a request for all decisions each second.
                    pause = pause.max(RETRY_INTERVAL);
                }
            }
            tokio::time::sleep(pause).await;
        }
    }

    /// Adds the passes after a cursor; the cursor after them, or none if some were lost.
    async fn read_passes(
        &self,
        client: &ClusterClient,
        scope: Scope<'_>,
        kind: AutoscalerKind,
        after: &str,
    ) -> Result<Option<String>, RequestError> {
        // The values of triggers are only in whole records.
        let detail = if kind.has_triggers() { "full" } else { "changed" };
        let mut after = after.to_owned();
        loop {
            let query = [("after", after.as_str()), ("detail", detail), ("limit", PAGE_SIZE)];
            let text = client.get_plain(&with_query(&passes(kind, scope), query)).await?;
            // If another version wrote a record, the decisions are read again, which leaves it out and names it.
            let Ok(NewPasses { metadata, items }) = serde_json::from_str(&text) else { return Ok(None) };
            let is_complete = self.add_passes(items);
            if !is_complete || metadata.lost || metadata.cursor.is_empty() {
                return Ok(None);
            }
            // A server whose cursor does not advance must not get requests without a pause.
            if !metadata.remaining || metadata.cursor == after {
                return Ok(Some(metadata.cursor));
            }
            after = metadata.cursor;
        }
    }

    /// Adds passes. False if a decision is missing: another replica than the one that gave the cursor may have given the decisions,
    /// and replicas copy from the leader a moment late.
    fn add_passes(&self, passes: Vec<NewPass<'_>>) -> bool {
        let mut store = self.store();
        let mut is_complete = true;
        for pass in passes {
            is_complete &= store.add(pass);
        }
        is_complete
    }

    /// Reads the latest decisions about all autoscalers; the cursor for later ones, and how long to wait.
    async fn read_all(
        &self,
        client: &ClusterClient,
        scope: Scope<'_>,
        kind: AutoscalerKind,
    ) -> (Option<String>, Duration) {
        let by = kind.decisions();
        let (is_there, has_others) = self.store().has_objects(by);
        // Without objects of its kinds, a missing operator is not a problem.
        if kind.has_triggers() && !is_there {
            self.record_api_state(kind, None);
            return (None, PASSES_INTERVAL);
        }
        // Read before the decisions, so that none is missed in between.
        let cursor = newest(client, scope, kind).await;
        match client.latest_decisions(kind, scope).await {
            Ok(found) => {
                let is_many = found.records.len() > MAX_FREQUENTLY_READ_DECISIONS;
                self.store().replace_records(by, found.records);
                self.record_api_state(kind, found.undecodable);
                let retry = if is_many { SLOW_RETRY_INTERVAL } else { RETRY_INTERVAL };
                let pause = if cursor.is_some() { PASSES_INTERVAL } else { retry };
                (cursor, pause)
            }
            Err(MissingDecision::NoRecord) => {
                self.record_api_state(kind, None);
                (None, RETRY_INTERVAL)
            }
            // The cluster does not answer, so that what was decided stays.
            Err(MissingDecision::Unavailable(_)) if !self.is_connected() => (None, RETRY_INTERVAL),
            Err(MissingDecision::Unavailable(why)) => {
                self.store().replace_records(by, Vec::new());
                self.record_api_state(kind, Some(why).filter(|_| is_there || !has_others));
                (None, RETRY_INTERVAL)
            }
        }
    }

    fn record_api_state(&self, kind: AutoscalerKind, unavailable: Option<Unavailable>) {
        let mut decision_apis = self.decision_apis.locked();
        let [controller, operator] = &mut *decision_apis;
        let api = if kind.has_triggers() { operator } else { controller };
        *api = DecisionApiState { is_queried: true, unavailable };
    }
}

/// The note about decisions that cannot be read.
pub(super) fn without_decisions(why: &Unavailable) -> Value {
    let text = format!("decisions cannot be read, so conditions are shown: {}", why.cause);
    json!({"text": text, "remedy": why.remedy})
}

fn passes(kind: AutoscalerKind, scope: Scope<'_>) -> String {
    within(&format!("/apis/{}/passes", kind.decisions()), scope.namespace())
}

/// The cursor after the newest pass, if the server keeps passes.
async fn newest(client: &ClusterClient, scope: Scope<'_>, kind: AutoscalerKind) -> Option<String> {
    let never = Timestamp::MAX.to_string();
    let query = [("since", never.as_str()), ("limit", "1")];
    let list: PassList = client.get(&with_query(&passes(kind, scope), query)).await.ok()?;
    Some(list.metadata.cursor).filter(|cursor| !cursor.is_empty())
}
