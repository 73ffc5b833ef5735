//! Builds the scaler of a trigger: credentials, environment variables, the table of scalers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use api::keda::{KedaProfile, Trigger};
use keda::environment::{PodTemplate, SourceRef};
use scalers::backends::Backends;
use scalers::{Scaler, ScalerError, off_thread};
use serde_json::Value;
use sources::tenant::in_namespace;
use tokio::time::timeout;

use super::error::ScalerBuildError;
use crate::operator::auth::{AuthQuery, AuthResolver, ResolvedAuth, names_variables};
use crate::operator::counters::HttpRequestDurations;
use crate::operator::credential_reader::CredentialReader;
use crate::operator::leader_client::{LeaderClient, ResourcePath};
use crate::operator::scaled_resource::ScaledResource;

/// Time limit of building one scaler, including all reads: meanwhile its object holds one of the places of slow objects.
const BUILD_TIMEOUT: Duration = Duration::from_secs(30);
/// The parameter with the password of a private key. Opening the key takes long, so that scalers with it are built on a worker.
const KEY_PASSWORD: &str = "keyPassword";

/// Maximum size of the parameters and variables of all triggers of an object together, in bytes: triggers may share a
/// TriggerAuthentication and variables, and each scaler keeps its own copy.
const MAX_CREDENTIAL_BYTES: usize = 16 << 20;

/// Builds the scaler of a trigger; tests have their own.
pub type BuildScaler =
    Arc<dyn Fn(&scalers::Trigger, &Backends) -> Result<Arc<dyn Scaler>, ScalerError> + Send + Sync>;

/// Builds scalers.
pub(crate) struct ScalerBuilder {
    pub(crate) build: BuildScaler,
    pub(crate) backends: Backends,
    pub(crate) auth: AuthResolver,
    pub(crate) credentials: CredentialReader,
    pub(crate) client: LeaderClient,
    pub(crate) http_timeout: Duration,
    pub(crate) profile: KedaProfile,
    pub(crate) durations: HttpRequestDurations,
}

/// A scaler, or why it could not be built; and the objects that credentials were read from.
pub(super) struct BuiltScaler {
    pub(super) scaler: Result<Arc<dyn Scaler>, ScalerBuildError>,
    pub(super) used: Vec<(SourceRef, String)>,
}

/// The name of a trigger in exported metrics if it has none of its own.
pub(crate) fn display_name(type_: &str) -> &str {
    scalers::table::find(type_).map_or(type_, |known| known.display)
}

/// The variables that the metadata of a trigger names; one as often as it is named.
fn named_variables(trigger: &Trigger) -> impl Iterator<Item = &String> {
    trigger.metadata.iter().filter(|(key, _)| key.ends_with("FromEnv")).map(|(_, name)| name)
}

/// Checks the size of the parameters of a trigger, and of its variables as often as they are named: an external scaler is sent each
/// of them.
fn check_credentials(
    trigger: &Trigger,
    triggers: usize,
    environment: &BTreeMap<String, String>,
    parameters: &BTreeMap<String, String>,
) -> Result<(), ScalerBuildError> {
    let limit = MAX_CREDENTIAL_BYTES / triggers.max(1);
    let variables = named_variables(trigger).filter_map(|name| environment.get(name)).map(String::len);
    let parameters = parameters.iter().map(|(name, value)| name.len() + value.len());
    let size: usize = variables.chain(parameters).sum();
    if size > limit { Err(ScalerBuildError::LargeCredentials(limit)) } else { Ok(()) }
}

impl ScalerBuilder {
    pub(super) async fn build_scaler(
        &self,
        owner: &ScaledResource,
        index: usize,
        trigger: &Trigger,
    ) -> BuiltScaler {
        let mut seen = Vec::new();
        let building =
            in_namespace(&*owner.metadata().namespace, self.scaler(owner, index, trigger, &mut seen));
        let built = timeout(BUILD_TIMEOUT, building).await;
        let scaler = built.unwrap_or(Err(ScalerBuildError::TimedOut(BUILD_TIMEOUT)));
        let used = seen.into_iter().map(|object| (self.credentials.version(&object), object));
        BuiltScaler { scaler, used: used.map(|(version, object)| (object, version)).collect() }
    }

    async fn scaler(
        &self,
        owner: &ScaledResource,
        index: usize,
        trigger: &Trigger,
        seen: &mut Vec<SourceRef>,
    ) -> Result<Arc<dyn Scaler>, ScalerBuildError> {
        let template = self.template(owner, trigger).await?;
        let (namespace, container) = (owner.metadata().namespace.as_str(), owner.container());
        let environment = if names_variables(&trigger.metadata) || !container.is_empty() {
            match self.auth.environment(namespace, template.as_ref(), container).await {
                Ok(mut environment) => {
                    seen.extend(environment.seen);
                    // The others would only take memory.
                    let named: BTreeSet<&String> = named_variables(trigger).collect();
                    environment.variables.retain(|name, _| named.contains(name));
                    environment.variables
                }
                Err(mut error) => {
                    seen.append(&mut error.seen);
                    return Err(error.into());
                }
            }
        } else {
            BTreeMap::new()
        };
        let authentication = trigger.authentication_ref.as_ref();
        let query = AuthQuery { namespace, authentication, template: template.as_ref(), container };
        let ResolvedAuth { parameters, identity, .. } = match self.auth.resolve(query).await {
            Ok(mut resolved) => {
                seen.append(&mut resolved.seen);
                resolved
            }
            Err(mut error) => {
                seen.append(&mut error.seen);
                return Err(error.into());
            }
        };
        check_credentials(trigger, owner.triggers().len(), &environment, &parameters)?;
        let id = owner.id();
        let trigger = scalers::Trigger {
            owner: scalers::Owner {
                kind: id.kind.name().to_owned(),
                namespace: id.namespace.to_string(),
                name: id.name.to_string(),
            },
            index,
            type_: trigger.type_.clone(),
            name: trigger.name.clone(),
            metric_type: trigger.metric_type.clone(),
            metadata: trigger.metadata.clone().into_iter().collect(),
            auth: parameters,
            environment,
            identity,
            feeds_formula: owner.has_formula(),
            http_timeout: self.http_timeout,
            profile: self.profile,
        };
        if trigger.auth.contains_key(KEY_PASSWORD) {
            let (build, backends) = (Arc::clone(&self.build), self.backends.clone());
            return Ok(off_thread::compute(move || build(&trigger, &backends)).await?);
        }
        Ok((self.build)(&trigger, &self.backends)?)
    }

    /// The pod template of the target, if the trigger needs it.
    async fn template(
        &self,
        owner: &ScaledResource,
        trigger: &Trigger,
    ) -> Result<Option<PodTemplate>, ScalerBuildError> {
        let object = match owner {
            ScaledResource::Job(job) => {
                return Ok(job.spec.job_target_ref.as_ref().and_then(PodTemplate::of_job));
            }
            ScaledResource::Object(object) => object,
        };
        let namespace = &object.metadata.namespace;
        let needs_workload = |reference| {
            let found = self.credentials.known_authentication(namespace, reference);
            found.is_some_and(|found| {
                let manager = found.spec.aws_secret_manager.as_ref();
                !found.spec.env.is_empty()
                    || found.spec.pod_identity.is_some()
                    // Its identity may be that of the workload.
                    || manager.is_some_and(|manager| manager.pod_identity.is_some())
            })
        };
        let is_wanted = names_variables(&trigger.metadata)
            || !owner.container().is_empty()
            || trigger.authentication_ref.as_ref().is_some_and(needs_workload);
        if !is_wanted {
            return Ok(None);
        }
        let Some(target) = &object.status.scale_target_gvkr else {
            return Err(ScalerBuildError::TargetNotResolved);
        };
        let path = ResourcePath {
            group: &target.group,
            version: &target.version,
            plural: &target.resource,
            namespace,
            name: &object.spec.scale_target_ref.name,
        };
        let workload: Value = self.client.get(path).await?;
        Ok(PodTemplate::of_workload(&workload))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn triggers_of_an_object_share_a_limit_of_parameters() {
        let named = (0..100)
            .map(|number| (format!("k{number}FromEnv"), json!("V")))
            .collect::<serde_json::Map<_, _>>();
        let trigger = serde_json::from_value(json!({"type": "external", "metadata": named})).unwrap();
        let of = |bytes: usize| {
            BTreeMap::from([("V".to_owned(), "x".repeat(bytes)), ("W".to_owned(), "w".into())])
        };
        let none = BTreeMap::new();
        // A variable counts as often as it is named.
        let most = MAX_CREDENTIAL_BYTES / 100;
        assert!(check_credentials(&trigger, 1, &of(most), &none).is_ok());
        assert!(check_credentials(&trigger, 1, &of(most + 1), &none).is_err());
        // Each of two triggers may have half of it.
        assert!(check_credentials(&trigger, 2, &of(most / 2 - 1), &none).is_ok());
        assert!(check_credentials(&trigger, 2, &of(most), &none).is_err());
        assert!(check_credentials(&trigger, 2, &none, &of(MAX_CREDENTIAL_BYTES)).is_err());
    }
}
