//! Applies effects on one TriggerAuthentication or ClusterTriggerAuthentication.

use std::sync::Arc;

use api::keda::TriggerAuthentication;
use api::meta::ObjectMeta;
use cluster::request::ApiError;
use serde_json::Value;

use crate::operator::context::OperatorContext;
use crate::operator::effect::AuthenticationEffect;
use crate::operator::id::{EventSubject, NamespacedName};
use crate::operator::leader_client::ResourcePath;

/// Applies effects on one TriggerAuthentication, or ClusterTriggerAuthentication (no namespace).
#[derive(Clone, Copy)]
pub(crate) struct AuthenticationApplier<'a> {
    pub(crate) context: &'a OperatorContext,
    pub(crate) name: &'a NamespacedName,
    /// The metadata that events refer to.
    pub(crate) metadata: &'a ObjectMeta,
}

impl AuthenticationApplier<'_> {
    /// Applies one effect; returns the object as the API server returned it, if it was written and still exists.
    pub(crate) async fn apply(
        &self,
        effect: AuthenticationEffect,
    ) -> Result<Option<Arc<TriggerAuthentication>>, ApiError> {
        match effect {
            AuthenticationEffect::Event(event) => {
                let subject = EventSubject::authentication(self.name);
                self.context.events.record_reconcile(subject, self.metadata, &event);
                Ok(None)
            }
            AuthenticationEffect::PatchStatus(patch) => self.patch("status", &patch).await.map(Some),
            AuthenticationEffect::PatchObject(patch) => self.patch("", &patch).await.map(Some),
            AuthenticationEffect::RemoveFinalizer(patch) => {
                match self.context.client.merge::<Value>(self.path(), "", &patch).await {
                    Err(error) if !error.is_not_found() => Err(error),
                    _ => Ok(None),
                }
            }
        }
    }

    /// Patches the object; the store holds the result before the watch delivers it.
    async fn patch(&self, subresource: &str, patch: &Value) -> Result<Arc<TriggerAuthentication>, ApiError> {
        let written = Arc::new(self.context.client.merge(self.path(), subresource, patch).await?);
        self.context.store().wrote_authentication(self.name, Arc::clone(&written));
        Ok(written)
    }

    fn path(&self) -> ResourcePath<'_> {
        let plural = if self.name.namespace.is_empty() {
            "clustertriggerauthentications"
        } else {
            "triggerauthentications"
        };
        ResourcePath::keda(plural, &self.name.namespace, &self.name.name)
    }
}
