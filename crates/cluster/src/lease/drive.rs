//! The election, carried out: time, requests, and word of how it stands.

use std::time::Duration;

use http::Method;
use kube::Client;
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, sleep_until, timeout};

use super::chance;
use super::elector::{Action, Elector, Event, Failure, Moment};
use super::leadership::{Term, View};
use super::record::Lease;
use super::settings::Settings;
use crate::clock::Clock;
use crate::request::{ApiError, Request, send};

/// Stands for election until `stop` is told, then gives the lease back.
pub(super) async fn run(
    client: Client,
    settings: Settings,
    clock: Clock,
    view: watch::Sender<View>,
    mut stop: oneshot::Receiver<()>,
) {
    let mut desk = Desk { client, settings: settings.clone(), troubled: false };
    let mut elector = Elector::new(settings);
    let mut event = Event::Due;
    let mut stopping = false;
    loop {
        let moment = Moment { now: Instant::now(), wall: clock.now(), jitter: chance::unit() };
        let action = elector.step(moment, event);
        publish(&view, &elector, &desk.settings);
        event = match action {
            Action::Wait(until) => tokio::select! {
                () = sleep_until(until) => Event::Due,
                _ = &mut stop => { stopping = true; Event::Release }
            },
            Action::Stop => return,
            request => {
                let answer = desk.carry_out(request).await;
                // A write that is on its way is waited for: only then is it known what there is to give back.
                if !stopping && stop.try_recv() != Err(oneshot::error::TryRecvError::Empty) {
                    stopping = true;
                    elector.step(Moment { now: Instant::now(), ..moment }, Event::Answer(answer));
                    Event::Release
                } else {
                    Event::Answer(answer)
                }
            }
        };
    }
}

/// Tells how the election stands, and logs what changed.
fn publish(view: &watch::Sender<View>, elector: &Elector, settings: &Settings) {
    let term = elector.leading().zip(elector.leads_until()).map(|(renewal, until)| Term {
        until,
        wall: renewal.wall.saturating_add(settings.trust()).unwrap_or(renewal.wall),
    });
    let lease = elector.lease();
    let holder = lease.map(Lease::holder).filter(|holder| !holder.is_empty());
    view.send_if_modified(|view| {
        let term = term.filter(|_| !view.stopping);
        let changed = view.term != term || view.holder.as_deref() != holder;
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
        view.transitions = lease.map(Lease::transitions);
        changed
    });
}

/// Where requests are made.
struct Desk {
    client: Client,
    settings: Settings,
    /// Whether the last request failed: trouble is logged when it begins, not at each try.
    troubled: bool,
}

impl Desk {
    async fn carry_out(&mut self, action: Action) -> Result<Lease, Failure> {
        let Some(request) = self.request(action) else { return Err(Failure::Unknown) };
        let limit = request.deadline;
        let answer = timeout(limit, send(&self.client, request)).await.unwrap_or_else(|_| {
            let message = format!("no answer within {limit:?}");
            Err(ApiError { code: 0, reason: String::new(), message, retry_after: None })
        });
        match answer {
            Ok(body) => {
                self.troubled = false;
                Lease::parse(&body).ok_or(Failure::Unknown)
            }
            Err(error) if error.is_not_found() => Err(Failure::NotFound),
            Err(error) if error.code == 409 => Err(Failure::Conflict),
            Err(error) => {
                if !self.troubled {
                    tracing::warn!(lease = %self.settings.name, %error, "failed to read or write the lease");
                }
                self.troubled = true;
                Err(Failure::Unknown)
            }
        }
    }

    fn request(&self, action: Action) -> Option<Request> {
        let Settings { namespace, name, .. } = &self.settings;
        let all = format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases");
        let one = format!("{all}/{name}");
        Some(match action {
            Action::Get(limit) => self.with(Method::GET, one, None, limit),
            Action::Create(lease, limit) => self.with(Method::POST, all, Some(&lease), limit),
            Action::Update(lease, limit) => self.with(Method::PUT, one, Some(&lease), limit),
            Action::Wait(_) | Action::Stop => return None,
        })
    }

    fn with(&self, method: Method, uri: String, lease: Option<&Lease>, deadline: Duration) -> Request {
        Request {
            method,
            uri,
            resource: "leases.coordination.k8s.io".to_owned(),
            name: self.settings.name.clone(),
            body: lease.map(|lease| ("application/json", lease.body())),
            deadline,
        }
    }
}
