//! Applies effects. Only this module and [`destination_status`](super::destination_status) write to the cluster, through the
//! [`LeaderClient`](super::leader_client::LeaderClient), which writes only while this replica leads.

mod authentication;
mod jobs;

pub(crate) use authentication::AuthenticationApplier;
pub(crate) use jobs::settle_creations;

use api::autoscaling::v2::HorizontalPodAutoscaler;
use api::keda::{ScaledJob, ScaledObject};
use api::meta::ObjectMeta;
use cluster::request::ApiError;
use keda::executor::ScaleResult;
use keda::status::{self, StatusChanges};
use serde_json::Value;

use super::context::OperatorContext;
use super::decide::last_active;
use super::effect::{Effect, ScaleEffect};
use super::id::{EventSubject, ResourceId, ResourceKind};
use super::leader_client::ResourcePath;
use super::store::Slim as _;

/// The error of a write that found another count in every attempt.
const CONTESTED_COUNT_ERROR: &str = "others change the count all the time; the next round decides again";

/// The result of an applied effect.
#[derive(Debug)]
pub(crate) enum Applied {
    /// Nothing that a caller needs.
    Done,
    /// The replica count.
    Scaled(ScaleOutcome),
    /// The HPA as the API server returned it.
    Hpa(Box<HorizontalPodAutoscaler>),
    /// The result of each creation.
    Jobs(Vec<Result<(), ApiError>>),
}

/// The result of a write of the replica count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ScaleOutcome {
    /// The write was tried.
    Tried(ScaleResult),
    /// Nothing was written, because the count is not the expected one.
    Moved { to: i32 },
}

impl ScaleOutcome {
    /// The result of the last attempt. A count that has changed again is a write that failed.
    pub(crate) fn into_scaled(self) -> ScaleResult {
        match self {
            Self::Tried(scaled) => scaled,
            Self::Moved { to } => {
                ScaleResult::NotWritten { from: to, error: CONTESTED_COUNT_ERROR.to_owned() }
            }
        }
    }
}

/// Applies effects on one ScaledObject or ScaledJob.
#[derive(Clone, Copy)]
pub(crate) struct Applier<'a> {
    pub(crate) context: &'a OperatorContext,
    pub(crate) id: &'a ResourceId,
    /// The metadata that events refer to.
    pub(crate) metadata: &'a ObjectMeta,
}

impl Applier<'_> {
    /// Applies effects in order, up to the first that fails.
    pub(crate) async fn apply_all(&self, effects: Vec<Effect>) -> Result<(), ApiError> {
        for effect in effects {
            self.apply(effect).await?;
        }
        Ok(())
    }

    /// Applies one effect.
    pub(crate) async fn apply(&self, effect: Effect) -> Result<Applied, ApiError> {
        let (client, namespace) = (&self.context.client, &*self.id.namespace);
        match effect {
            Effect::Event(event) => {
                self.context.events.record_poll(self.subject(), self.metadata, &event);
            }
            Effect::ReconcileEvent(event) => {
                self.context.events.record_reconcile(self.subject(), self.metadata, &event);
            }
            Effect::EngineEvent(event, causes) => {
                self.context.events.record_engine(self.metadata, &event, &causes);
            }
            Effect::Scale(scale) => return Ok(Applied::Scaled(self.scale(scale).await)),
            Effect::CreateHpa(hpa) => {
                let path = ResourcePath::hpa(namespace, &hpa.metadata.name);
                return Ok(Applied::Hpa(Box::new(client.create(path, &*hpa).await?)));
            }
            Effect::UpdateHpa(hpa) => {
                let path = ResourcePath::hpa(namespace, &hpa.metadata.name);
                return Ok(Applied::Hpa(Box::new(client.put(path, &*hpa).await?)));
            }
            Effect::DeleteHpa(name) => {
                client.delete(ResourcePath::hpa(namespace, &name), "Background").await?;
            }
            Effect::CreateJobs { manifest, names } => {
                return Ok(Applied::Jobs(jobs::create(self, &manifest, &names).await));
            }
            Effect::DeleteJob { name, propagation } => {
                client.delete(ResourcePath::job(namespace, &name), propagation.as_str()).await?;
            }
            Effect::MergeStatus(changes) => self.merge_status(changes).await,
            Effect::PatchStatus(patch) => self.patch("status", &patch).await?,
            Effect::PatchObject(patch) => self.patch("", &patch).await?,
            Effect::RemoveFinalizer(patch) => {
                let path = ResourcePath::keda(self.id.kind.plural(), namespace, &self.id.name);
                match client.merge::<Value>(path, "", &patch).await {
                    Err(error) if !error.is_not_found() => return Err(error),
                    _ => {}
                }
            }
        }
        Ok(Applied::Done)
    }

    fn subject(&self) -> EventSubject {
        self.id.kind.into()
    }

    /// Patches the object; the store holds the result before the watch delivers it.
    async fn patch(&self, subresource: &str, patch: &Value) -> Result<(), ApiError> {
        let (id, client) = (self.id, &self.context.client);
        let path = ResourcePath::keda(id.kind.plural(), &id.namespace, &id.name);
        match id.kind {
            ResourceKind::Object => {
                let written: ScaledObject = client.merge(path, subresource, patch).await?;
                self.context.store().wrote_object(&id.full_name(), written.slim());
            }
            ResourceKind::Job => {
                let written: ScaledJob = client.merge(path, subresource, patch).await?;
                self.context.store().wrote_scaled_job(&id.full_name(), written.slim());
            }
        }
        Ok(())
    }

    async fn merge_status(&self, changes: StatusChanges) {
        let (Some(object), Some(entry)) =
            (self.context.store().object(self.id), self.context.known_entry(self.id))
        else {
            return;
        };
        let changes = if self.context.settings.compat.is_strict() {
            changes
        } else {
            last_active::coalesce(&mut entry.state().last_active, &object, changes)
        };
        if !changes.would_change(&object.status) {
            return;
        }
        let mut status = object.status.clone();
        changes.apply(&mut status);
        if let Some(patch) = status::difference(&object.status, &status) {
            self.log_failed_status(self.patch("status", &patch).await);
        }
    }

    /// Logs a status that could not be written, unless the object was deleted.
    pub(crate) fn log_failed_status<T>(&self, written: Result<T, ApiError>) {
        if let Err(error) = written
            && !error.is_not_found()
        {
            tracing::warn!(
                namespace = &*self.id.namespace, name = self.id.record_name(), %error,
                "failed to write the status"
            );
        }
    }

    async fn scale(&self, effect: ScaleEffect) -> ScaleOutcome {
        let ScaleEffect { target, name, expected, to, why } = effect;
        let scaled = self.context.client.scale_from(&self.id.namespace, &name, &target, expected, to).await;
        match &scaled {
            ScaleResult::NotWritten { from, .. } if expected.is_some_and(|expected| expected != *from) => {
                return ScaleOutcome::Moved { to: *from };
            }
            ScaleResult::NotRead(error) | ScaleResult::NotWritten { error, .. } => {
                tracing::warn!(
                    namespace = &*self.id.namespace,
                    name = self.id.record_name(),
                    desired = to,
                    error,
                    "failed to scale the target"
                );
            }
            ScaleResult::Written { .. } => {
                tracing::info!(
                    namespace = &*self.id.namespace, name = self.id.record_name(), desired = to, reason = ?why,
                    "scaled the target"
                );
            }
        }
        ScaleOutcome::Tried(scaled)
    }
}
