//! Creates the objects of manifests.

use std::time::Duration;

use api::yaml::{Diagnostic, Document, Node};
use cluster::discovery::Discovery;
use cluster::request::{self, ApiError, Request};
use http::Method;
use kube::Client;
use serde_json::Value;

use crate::failure::{BoxError, Failure};

const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// How often a definition is read until its kind is served, and how long the pause between two reads is.
const MAX_DEFINITION_READS: usize = 500;
const DEFINITION_READ_INTERVAL: Duration = Duration::from_millis(10);

/// The order in which objects are created, whatever their order in files is: objects refer to those of earlier phases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum CreationPhase {
    Namespaces,
    Definitions,
    /// Workloads, Secrets, TriggerAuthentications and all others.
    Others,
    /// Created last, so that they find their targets and credentials at once.
    Autoscalers,
}

/// Why an object was not created.
#[derive(Debug, thiserror::Error)]
enum CreateError {
    #[error("the embedded cluster does not serve {kind} of {api_version}")]
    UnknownKind { kind: String, api_version: String },
    #[error("the definition {0} is not established: another one may have its names")]
    NotEstablished(String),
    #[error(transparent)]
    Request(#[from] ApiError),
}

impl CreationPhase {
    fn of(document: &Document) -> Self {
        match kind_of(document) {
            "Namespace" => Self::Namespaces,
            "CustomResourceDefinition" => Self::Definitions,
            "HorizontalPodAutoscaler" | "Autoscaler" | "ScaledObject" | "ScaledJob" => Self::Autoscalers,
            _ => Self::Others,
        }
    }

    /// Whether an object may exist already: the cluster has some of its own.
    fn may_exist(self) -> bool {
        matches!(self, Self::Namespaces | Self::Definitions)
    }
}

/// Creates each object except Scenarios, after `adapt` has changed it. All problems of a phase are reported; the phases after it
/// would fail because of them.
pub(super) async fn create(
    client: &Client,
    documents: &[Document],
    adapt: impl Fn(&mut Value),
) -> Result<(), Failure> {
    let objects = documents.iter().filter(|document| kind_of(document) != "Scenario");
    let mut ordered: Vec<(CreationPhase, &Document)> =
        objects.map(|document| (CreationPhase::of(document), document)).collect();
    ordered.sort_by_key(|(phase, _)| *phase);
    for group in ordered.chunk_by(|(one, _), (other, _)| one == other) {
        let mut problems = Vec::new();
        for (phase, document) in group {
            let mut object: Value = document.decode_lenient()?;
            adapt(&mut object);
            match try_create(client, &object).await {
                Err(CreateError::Request(error)) if error.is_already_exists() && phase.may_exist() => {}
                created => problems.extend(created.err().map(|error| problem(document, &error))),
            }
        }
        for (_, document) in group.iter().filter(|(phase, _)| *phase == CreationPhase::Definitions) {
            if problems.is_empty()
                && let Err(error) = wait_until_established(client, document).await
            {
                problems.push(problem(document, &error));
            }
        }
        if !problems.is_empty() {
            return Err(problems.into());
        }
    }
    Ok(())
}

/// Creates one object of any kind.
pub(super) async fn create_one(client: &Client, object: &Value) -> Result<(), BoxError> {
    Ok(try_create(client, object).await?)
}

async fn try_create(client: &Client, object: &Value) -> Result<(), CreateError> {
    let (api_version, kind) = (text(object, "apiVersion"), text(object, "kind"));
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let Some(resource) = Discovery::new(client.clone()).mapping(group, version, kind).await? else {
        return Err(CreateError::UnknownKind { kind: kind.to_owned(), api_version: api_version.to_owned() });
    };
    let base = if group.is_empty() { "/api" } else { "/apis" };
    let namespace = object.pointer("/metadata/namespace").and_then(Value::as_str);
    let namespace = namespace.filter(|namespace| !namespace.is_empty()).unwrap_or("default");
    let scope = if resource.namespaced { format!("/namespaces/{namespace}") } else { String::new() };
    let uri = format!("{base}/{api_version}{scope}/{}", resource.plural);
    let body = Some(("application/json", object.to_string().into_bytes()));
    let request = Request::get(uri, &*resource.plural, REQUEST_TIMEOUT);
    request::send(client, Request { method: Method::POST, body, ..request }).await?;
    Ok(())
}

/// Waits until the API server serves the kind of a definition, which it accepts after it has stored the definition.
async fn wait_until_established(client: &Client, document: &Document) -> Result<(), CreateError> {
    let name = document.root.get("metadata.name").and_then(Node::as_str).unwrap_or_default();
    let uri = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}");
    for _ in 0..MAX_DEFINITION_READS {
        let read = Request::get(uri.as_str(), "customresourcedefinitions", REQUEST_TIMEOUT).named(name);
        let stored: Value = serde_json::from_slice(&request::send(client, read).await?).unwrap_or_default();
        let conditions = stored.pointer("/status/conditions").and_then(Value::as_array);
        let is_established = |condition: &Value| {
            text(condition, "type") == "Established" && text(condition, "status") == "True"
        };
        if conditions.is_some_and(|all| all.iter().any(is_established)) {
            return Ok(());
        }
        tokio::time::sleep(DEFINITION_READ_INTERVAL).await;
    }
    Err(CreateError::NotEstablished(name.to_owned()))
}

/// The error at the field that it is about, with the remedy.
fn problem(document: &Document, error: &CreateError) -> Diagnostic {
    match error {
        CreateError::UnknownKind { kind, api_version } => {
            document.problem("kind", error.to_string()).with_hint(remedy(kind, api_version))
        }
        CreateError::Request(refusal)
            if refusal.is_not_found() && refusal.message.starts_with("namespaces ") =>
        {
            document
                .problem("metadata.namespace", error.to_string())
                .with_hint("add the Namespace to the files")
        }
        CreateError::Request(refusal) if refusal.is_already_exists() => {
            document.problem("metadata.name", error.to_string())
        }
        _ => document.problem("kind", error.to_string()),
    }
}

/// What to do about a kind that is not served.
fn remedy(kind: &str, api_version: &str) -> &'static str {
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    if kind == "HorizontalPodAutoscaler" {
        "`plimsoll convert FILE --to autoscaling/v2` converts it"
    } else if group.contains('.') && !group.ends_with(".k8s.io") {
        "add its CustomResourceDefinition to the files if it is scaled, otherwise leave it out"
    } else {
        "leave it out: scaling does not need it"
    }
}

fn kind_of(document: &Document) -> &str {
    document.root.get("kind").and_then(Node::as_str).unwrap_or_default()
}

fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object.get(field).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use api::yaml::{self, SourceFile};
    use localkube::{Cluster, Options, Running};

    use super::*;

    /// Every object before those that it refers to.
    const REVERSED: &str = "\
apiVersion: example.com/v1
kind: Widget
metadata: {name: w, namespace: shop}
spec: {size: 1}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web, namespace: shop}
spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, maxReplicas: 3}
---
apiVersion: v1
kind: Secret
metadata: {name: login, namespace: shop}
stringData: {user: me}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
apiVersion: v1
kind: Namespace
metadata: {name: default}
---
apiVersion: v1
kind: Namespace
metadata: {name: shop}
";

    async fn created(running: &Running, text: &str) -> Result<(), Vec<String>> {
        let documents = yaml::parse(&SourceFile::new("f", text)).unwrap();
        let shown = |problem: &Diagnostic| match &problem.hint {
            Some(hint) => format!("{problem}; {hint}"),
            None => problem.to_string(),
        };
        match create(&running.client(), &documents, |_| ()).await {
            Ok(()) => Ok(()),
            Err(Failure::Problems(problems)) => Err(problems.iter().map(shown).collect()),
            Err(other) => panic!("{other}"),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn order_of_objects_does_not_matter() {
        let running = Cluster::start(Options::default()).await.unwrap();
        created(&running, REVERSED).await.unwrap();
        for path in [
            "/apis/example.com/v1/namespaces/shop/widgets/w",
            "/apis/autoscaling/v2/namespaces/shop/horizontalpodautoscalers/web",
            "/api/v1/namespaces/shop/secrets/login",
        ] {
            let read = Request::get(path, "objects", REQUEST_TIMEOUT);
            assert!(request::send(&running.client(), read).await.is_ok(), "{path}");
        }
        // Namespaces and definitions may exist, other objects are created once.
        assert_eq!(
            created(&running, REVERSED).await.unwrap_err(),
            ["f:3:18: widgets.example.com \"w\" already exists", "f:13:18: secrets \"login\" already exists",]
        );
    }

    #[tokio::test(start_paused = true)]
    async fn all_kinds_that_are_not_served_are_named_with_a_remedy() {
        let running = Cluster::start(Options::default()).await.unwrap();
        let text = "\
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web}
---
apiVersion: monitoring.coreos.com/v1
kind: ServiceMonitor
metadata: {name: web}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: web, namespace: nowhere}
---
apiVersion: autoscaling/v2beta2
kind: HorizontalPodAutoscaler
metadata: {name: web}
";
        assert_eq!(
            created(&running, text).await.unwrap_err(),
            [
                "f:2:7: the embedded cluster does not serve Ingress of networking.k8s.io/v1; leave it out: scaling does not need it",
                "f:6:7: the embedded cluster does not serve ServiceMonitor of monitoring.coreos.com/v1; add its \
                 CustomResourceDefinition to the files if it is scaled, otherwise leave it out",
                "f:11:34: namespaces \"nowhere\" not found; add the Namespace to the files",
            ]
        );
        let (_, old) = text.rsplit_once("---\n").unwrap();
        let problems = created(&running, old).await.unwrap_err();
        assert!(
            problems[0].ends_with("; `plimsoll convert FILE --to autoscaling/v2` converts it"),
            "{problems:?}"
        );
    }
}
