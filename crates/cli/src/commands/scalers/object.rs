//! The ScaledObjects and ScaledJobs of manifests, and their pod templates.

use std::time::Duration;

use api::keda::{ScaledJob, ScaledObject, Trigger};
use cluster::discovery::Discovery;
use cluster::request::{Request, path, send};
use keda::admission::Target;
use keda::environment::PodTemplate;
use kube::Client;
use scalers::Owner;
use serde::Deserialize as _;
use serde_json::Value;

use crate::failure::{BoxError, Failure};

const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// A ScaledObject or ScaledJob.
pub(super) struct ScaledResource {
    pub(super) owner: Owner,
    pub(super) triggers: Vec<Trigger>,
    pub(super) container: String,
    /// The pod template of its target.
    pub(super) template: Option<PodTemplate>,
    /// The scale target, if it is not in the files: `apiVersion`, kind and name.
    pub(super) elsewhere: Option<[String; 3]>,
    pub(super) feeds_formula: bool,
}

/// All of them.
pub(super) fn objects(manifests: &[Value]) -> Result<Vec<ScaledResource>, Failure> {
    let mut found = Vec::new();
    for manifest in manifests {
        let kind = manifest.get("kind").and_then(Value::as_str).unwrap_or_default();
        let wrong = |error: serde_json::Error| Failure::input(format!("{kind}: {error}"));
        match kind {
            "ScaledObject" => {
                let object = ScaledObject::deserialize(manifest).map_err(wrong)?;
                found.push(of_object(object, manifests));
            }
            "ScaledJob" => found.push(of_job(ScaledJob::deserialize(manifest).map_err(wrong)?)),
            _ => {}
        }
    }
    Ok(found)
}

fn of_object(object: ScaledObject, manifests: &[Value]) -> ScaledResource {
    let (kind, reference) = (object.target_kind(), &object.spec.scale_target_ref);
    let target = manifests.iter().find(|other| {
        let text = |at: &str| other.pointer(at).and_then(Value::as_str).unwrap_or_default();
        (text("/kind"), text("/metadata/name"), text("/metadata/namespace"))
            == (kind, &reference.name, &object.metadata.namespace)
    });
    let elsewhere = [reference.api_version.clone(), kind.to_owned(), reference.name.clone()];
    ScaledResource {
        owner: owner("ScaledObject", &object.metadata.namespace, &object.metadata.name),
        feeds_formula: object.modifiers().is_some(),
        container: reference.env_source_container_name.clone(),
        template: target.and_then(PodTemplate::of_workload),
        elsewhere: target.is_none().then_some(elsewhere),
        triggers: object.spec.triggers,
    }
}

fn of_job(job: ScaledJob) -> ScaledResource {
    ScaledResource {
        owner: owner("ScaledJob", &job.metadata.namespace, &job.metadata.name),
        feeds_formula: false,
        container: job.spec.env_source_container_name.clone(),
        template: job.spec.job_target_ref.as_ref().and_then(PodTemplate::of_job),
        elsewhere: None,
        triggers: job.spec.triggers,
    }
}

fn owner(kind: &str, namespace: &str, name: &str) -> Owner {
    Owner { kind: kind.to_owned(), namespace: namespace.to_owned(), name: name.to_owned() }
}

impl ScaledResource {
    /// Reads the scale target from the cluster, if the files do not have it.
    pub(super) async fn read_target(
        &mut self,
        client: &Client,
        discovery: &Discovery,
    ) -> Result<(), BoxError> {
        let Some([version, kind, name]) = &self.elsewhere else { return Ok(()) };
        let Target { group, version, kind, .. } = Target::parse(version, kind, name)?;
        let known = discovery.mapping(&group, &version, &kind).await?;
        let resource = known.ok_or_else(|| format!("the cluster has no kind {kind} in {group}/{version}"))?;
        let group = if group.is_empty() { vec!["api"] } else { vec!["apis", &group] };
        let place = ["namespaces", &self.owner.namespace, &resource.plural, name];
        let uri = path(group.into_iter().chain([&*version]).chain(place));
        let request = Request::get(uri, &resource.plural, REQUEST_TIMEOUT).named(name);
        let body = send(client, request).await?;
        let target: Value = serde_json::from_slice(&body)?;
        (self.template, self.elsewhere) = (PodTemplate::of_workload(&target), None);
        Ok(())
    }

    /// Environment variables that a trigger names and the pod does not have.
    pub(super) fn missing(&self, trigger: &scalers::Trigger) -> Vec<String> {
        let named = trigger.metadata.iter().filter(|(key, _)| key.ends_with("FromEnv"));
        let missing = named.filter(|(_, variable)| !trigger.environment.contains_key(*variable));
        let one = |(key, variable): (&String, &String)| match &self.elsewhere {
            Some([_, kind, name]) => {
                format!(
                    "{key}: {kind}/{name} is not in these files, so its {variable} is not known (--cluster asks for it)"
                )
            }
            None => format!("{key}: the container has no variable {variable}"),
        };
        missing.map(one).collect()
    }
}
