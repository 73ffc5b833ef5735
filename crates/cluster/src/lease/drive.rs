//! Runs the election: waits, sends requests, and publishes the state.

use std::time::Duration;

use http::Method;
use kube::Client;
use runtime::Heartbeat;
use runtime::leader::{LeadershipTerm, LeadershipView};
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, sleep_until, timeout};

use super::elector::{ElectionAction, ElectionEvent, Elector, LeaseRequestFailure, StepTime};
use super::record::Lease;
use super::settings::LeaseSettings;
use crate::request::{ApiError, Request, below, send, within};
use crate::{Clock, random};

/// Takes part in the election until `stop`, then releases the lease.
pub(super) async fn run(
    mut lease_client: LeaseClient,
    clock: Clock,
    view: watch::Sender<LeadershipView>,
    mut stop: oneshot::Receiver<()>,
) {
    let mut elector = Elector::new(lease_client.settings.clone());
    let mut event = ElectionEvent::Due;
    let mut stopping = false;
    loop {
        let moment = StepTime { now: Instant::now(), wall: clock.now(), jitter: random::fraction() };
        let action = elector.step(moment, event);
        publish(&view, &elector, &lease_client.settings);
        event = match action {
            ElectionAction::Wait(until) => tokio::select! {
                () = sleep_until(until) => ElectionEvent::Due,
                _ = &mut stop => { stopping = true; ElectionEvent::Release }
            },
            ElectionAction::Stop => return,
            request => {
                let answer = lease_client.send_action(request).await;
                // Waits for a write under way: only its response says whether there is a lease to release.
                if !stopping && stop.try_recv() != Err(oneshot::error::TryRecvError::Empty) {
                    stopping = true;
                    elector.step(StepTime { now: Instant::now(), ..moment }, ElectionEvent::Answer(answer));
                    ElectionEvent::Release
                } else {
                    ElectionEvent::Answer(answer)
                }
            }
        };
    }
}

/// Publishes the state of the election, and logs changes.
fn publish(view: &watch::Sender<LeadershipView>, elector: &Elector, settings: &LeaseSettings) {
    let term = elector.leading().zip(elector.leads_until()).map(|(renewal, until)| LeadershipTerm {
        until,
        wall: renewal.wall.saturating_add(settings.write_window()).unwrap_or(renewal.wall),
    });
    let lease = elector.lease();
    let holder = lease.map(Lease::holder).filter(|holder| !holder.is_empty());
    let address = lease.and_then(Lease::address);
    view.send_if_modified(|view| {
        let term = term.filter(|_| !view.stopping);
        let changed = view.term != term || view.holder.as_deref() != holder || view.address != address;
        if view.term.is_none() && term.is_some() {
            tracing::info!(lease = %settings.name, identity = %settings.identity, "became leader");
        }
        if view.term.is_some() && term.is_none() {
            tracing::warn!(lease = %settings.name, identity = %settings.identity, "stopped leading");
        }
        if view.holder.as_deref() != holder {
            let holder = holder.unwrap_or_default();
            tracing::info!(lease = %settings.name, holder, "the lease has a new holder");
            view.holder = Some(holder).filter(|holder| !holder.is_empty()).map(Into::into);
        }
        view.term = term;
        view.address = address;
        view.transitions = lease.map(Lease::transitions);
        changed
    });
}

/// Sends requests for the lease.
pub(super) struct LeaseClient {
    client: Client,
    settings: LeaseSettings,
    heartbeat: Option<Heartbeat>,
    /// Whether the main thread made no progress at the last write, which is logged once.
    stuck: bool,
    /// Whether the last request failed: only the first of several failures is logged.
    has_failed: bool,
}

impl LeaseClient {
    pub(super) fn new(client: Client, settings: LeaseSettings, heartbeat: Option<Heartbeat>) -> Self {
        Self { client, settings, heartbeat, stuck: false, has_failed: false }
    }

    async fn send_action(&mut self, action: ElectionAction) -> Result<Lease, LeaseRequestFailure> {
        let is_read = matches!(action, ElectionAction::Get(_));
        if !is_read {
            // Another process must take over from one that does nothing.
            let is_stuck = self.heartbeat.as_ref().is_some_and(|heartbeat| !heartbeat.is_beating());
            if is_stuck && !self.stuck {
                let lease = &*self.settings.name;
                tracing::error!(lease, "the main thread makes no progress; the lease is not renewed");
            }
            self.stuck = is_stuck;
            if is_stuck {
                return Err(LeaseRequestFailure::Unknown);
            }
        }
        let Some(request) = self.request(action) else { return Err(LeaseRequestFailure::Unknown) };
        let limit = request.deadline;
        let answer = timeout(limit, send(&self.client, request))
            .await
            .unwrap_or_else(|_| Err(ApiError::unanswered(format!("no response within {limit:?}"))));
        match answer {
            Ok(body) => {
                self.has_failed = false;
                Lease::parse(&body).ok_or(LeaseRequestFailure::Unknown)
            }
            Err(error) if error.is_not_found() => Err(LeaseRequestFailure::NotFound),
            Err(error) if error.code == Some(409) => Err(LeaseRequestFailure::Conflict),
            Err(error) => {
                if !self.has_failed {
                    tracing::warn!(lease = %self.settings.name, %error, "failed to read or write the lease");
                }
                self.has_failed = true;
                Err(LeaseRequestFailure::Unknown)
            }
        }
    }

    fn request(&self, action: ElectionAction) -> Option<Request> {
        let LeaseSettings { namespace, name, .. } = &self.settings;
        let all = within("/apis/coordination.k8s.io/v1/leases", namespace);
        let one = below(&all, [name.as_str()]);
        Some(match action {
            ElectionAction::Get(limit) => self.with(Method::GET, one, None, limit),
            ElectionAction::Create(lease, limit) => self.with(Method::POST, all, Some(&lease), limit),
            ElectionAction::Update(lease, limit) => self.with(Method::PUT, one, Some(&lease), limit),
            ElectionAction::Wait(_) | ElectionAction::Stop => return None,
        })
    }

    fn with(&self, method: Method, uri: String, lease: Option<&Lease>, deadline: Duration) -> Request {
        let request = Request::get(uri, "leases.coordination.k8s.io", deadline).named(&self.settings.name);
        Request { method, body: lease.map(|lease| ("application/json", lease.body())), ..request }
    }
}
