//! Applies actions for all operators at the same time, and reads the state afterwards.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use futures::future::{join_all, try_join_all};
use http::Method;
use kube::Client;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::action::{Ending, KedaAction};
use super::env::{ComparedOperator, KedaEnv};
use super::scenario::{
    AUTHENTICATIONS, CLUSTER_AUTHENTICATIONS, HPAS, KedaScenario, OBJECTS, PODS, SCALED_JOBS,
};
use super::source::Script;
use super::view::{Lists, text};
use crate::differential::action::ApiRequest;
use crate::differential::env::send;
use crate::differential::scenario::target::Kind;

/// The state of all operators' objects at one time.
#[derive(Clone, Debug)]
pub(crate) struct Snapshot {
    /// The time at which reading began.
    pub(crate) at: Instant,
    /// In the order of [`ComparedOperator::ALL`].
    pub(crate) lists: Vec<Lists>,
}

/// The time between two reads of all objects.
const LIST_INTERVAL: Duration = Duration::from_millis(300);
const JOBS: &str = "/apis/batch/v1/namespaces/{ns}/jobs";
const EVENTS: &str = "/api/v1/namespaces/{ns}/events";

/// Applies the actions of one step for all operators, each request between two polls of the scenario. Returns the requests that were not
/// rejected for all operators alike.
pub(crate) async fn apply(
    env: &KedaEnv,
    polled: Option<&KedaScenario>,
    actions: &[KedaAction],
) -> Vec<String> {
    let (client, script) = (&env.client, &env.sources.script);
    let (mut refused, mut saying) = (Vec::new(), false);
    for action in actions {
        if let (KedaAction::Say { .. }, Some(scenario), false) = (action, polled, saying) {
            // Sources return the same values to all operators.
            script
                .between_rounds(ComparedOperator::Keda.namespace(), &scenario.name, scenario.interval())
                .await;
        }
        saying = matches!(action, KedaAction::Say { .. } | KedaAction::Push { .. });
        let all = join_all(ComparedOperator::ALL.map(async |operator| {
            let namespace = operator.namespace();
            if let (Some(scenario), false) = (polled, saying) {
                script.between_rounds(namespace, &scenario.name, scenario.interval()).await;
            }
            done(client, script, namespace, action).await
        }))
        .await;
        let codes: Vec<Option<String>> =
            all.iter().map(|done| done.as_ref().err().map(|error| format!("{error:#}"))).collect();
        let alike = codes
            .windows(2)
            .all(|pair| pair.first().map(Option::is_some) == pair.get(1).map(Option::is_some));
        // Actions may fail because an object was deleted already. A failure for only one operator is a difference.
        let expected = codes.iter().flatten().all(|error| error.contains("not found"));
        if !alike || !expected {
            let reported = ComparedOperator::ALL
                .iter()
                .zip(codes)
                .filter_map(|(operator, error)| Some((operator, error?)));
            refused.extend(reported.map(|(operator, error)| format!("{operator:?}: {action}: {error}")));
        }
    }
    refused
}

async fn done(client: &Client, script: &Script, namespace: &str, action: &KedaAction) -> anyhow::Result<()> {
    match action {
        KedaAction::ApiRequest(ApiRequest { method, path, body }) => {
            let path = path.replace("{ns}", namespace);
            let body = serde_json::from_str(&body.to_string().replace("{ns}", namespace)).unwrap_or_default();
            send(client, method.clone(), &path, &body).await.map(drop).map_err(Into::into)
        }
        // All operators share the source, so the order does not matter.
        KedaAction::Say { key, state } => {
            script.set_response(key, state.clone());
            Ok(())
        }
        KedaAction::Push { key } => {
            if namespace == ComparedOperator::Keda.namespace() {
                script.push(key);
            }
            Ok(())
        }
        KedaAction::EndJobs { scenario, how, max_jobs } => {
            end_jobs(client, namespace, scenario, *how, *max_jobs).await
        }
        KedaAction::TellHpa { name, status } => {
            let path = format!("{}/{name}/status", HPAS.replace("{ns}", namespace));
            send(client, Method::PATCH, &path, status).await.map(drop).map_err(Into::into)
        }
    }
}

async fn end_jobs(
    client: &Client,
    namespace: &str,
    scenario: &str,
    how: Ending,
    max_jobs: usize,
) -> anyhow::Result<()> {
    let path = format!("{JOBS}?labelSelector=scaledjob.keda.sh%2Fname%3D{scenario}");
    let mut jobs = list(client, namespace, &path).await?;
    jobs.retain(|job| {
        job.pointer("/status/conditions").is_none() && job.pointer("/metadata/deletionTimestamp").is_none()
    });
    // Jobs are sorted by version, so that the same ones end in every namespace.
    let version = |job: &Value| {
        job.pointer("/metadata/annotations/scaledjob.keda.sh~1generation").map(Value::to_string)
    };
    jobs.sort_by_key(|job| (version(job), text(job, "/metadata/name")));
    let names: Vec<String> = jobs.iter().take(max_jobs).map(|job| text(job, "/metadata/name")).collect();
    if how == Ending::Running {
        try_join_all(names.iter().map(|name| make_pod(client, namespace, scenario, name))).await?;
    }
    // All statuses are written at the same time, because a poll that sees only some of the changes decides differently, and created Jobs remain.
    let all = names.iter().map(async |name| match how {
        Ending::Running => run_pod(client, namespace, name).await,
        Ending::Complete | Ending::Failed => {
            let path = format!("{}/{name}/status", JOBS.replace("{ns}", namespace));
            send(client, Method::PATCH, &path, &json!({"status": ended(how)})).await.map(drop)
        }
    });
    try_join_all(all).await.map(drop).map_err(Into::into)
}

fn ended(how: Ending) -> Value {
    let time = "2026-01-01T00:00:00Z";
    let condition = |kind: &str| json!({"type": kind, "status": "True", "reason": "Test", "lastTransitionTime": time, "lastProbeTime": time});
    if how == Ending::Complete {
        let conditions = [condition("SuccessCriteriaMet"), condition("Complete")];
        json!({"startTime": time, "completionTime": time, "succeeded": 1, "conditions": conditions})
    } else {
        json!({"startTime": time, "failed": 1, "conditions": [condition("FailureTarget"), condition("Failed")]})
    }
}

/// Creates the pending pod of a Job.
async fn make_pod(
    client: &Client,
    namespace: &str,
    scenario: &str,
    name: &str,
) -> Result<(), cluster::request::ApiError> {
    let pods = PODS.replace("{ns}", namespace);
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": format!("{name}-pod"), "labels": {"job-name": name, "scaledjob.keda.sh/name": scenario},
        },
        "spec": {"containers": [{"name": "app", "image": "app"}], "restartPolicy": "Never"},
    });
    match send(client, Method::POST, &pods, &pod).await {
        Err(error) if error.to_string().contains("already exists") => Ok(()),
        other => other.map(drop),
    }
}

/// Sets the pod of a Job to running.
async fn run_pod(client: &Client, namespace: &str, name: &str) -> Result<(), cluster::request::ApiError> {
    let condition = |kind: &str| json!({"type": kind, "status": "True"});
    let status = json!({"phase": "Running", "conditions": [condition("PodScheduled"), condition("Ready")]});
    let path = format!("{}/{name}-pod/status", PODS.replace("{ns}", namespace));
    send(client, Method::PATCH, &path, &json!({"status": status})).await.map(drop)
}

async fn list(
    client: &Client,
    namespace: &str,
    path: &str,
) -> Result<Vec<Value>, cluster::request::ApiError> {
    let mut list = send(client, Method::GET, &path.replace("{ns}", namespace), &Value::Null).await?;
    Ok(list
        .get_mut("items")
        .map(Value::take)
        .and_then(|items| serde_json::from_value(items).ok())
        .unwrap_or_default())
}

async fn lists(client: &Client, operator: ComparedOperator) -> anyhow::Result<Lists> {
    let kinds = [Kind::Deployment, Kind::ReplicaSet, Kind::StatefulSet, Kind::Worker];
    let mut paths: Vec<String> =
        [OBJECTS, SCALED_JOBS, AUTHENTICATIONS, CLUSTER_AUTHENTICATIONS, HPAS, JOBS, EVENTS]
            .iter()
            .map(|path| (*path).to_owned())
            .collect();
    paths.extend(kinds.iter().map(|kind| kind.collection()));
    let read = paths.iter().map(|path| list(client, operator.namespace(), path));
    let mut read = try_join_all(read).await.context("failed to look")?.into_iter();
    let mut next = || read.next().unwrap_or_default();
    let (objects, scaled_jobs) = (next(), next());
    let (authentications, cluster_authentications, hpas) = (next(), next(), next());
    let (jobs, events) = (next(), next());
    let targets: BTreeMap<&'static str, Vec<Value>> =
        kinds.iter().map(|kind| (kind.kind(), next())).collect();
    Ok(Lists { objects, scaled_jobs, authentications, cluster_authentications, hpas, targets, jobs, events })
}

/// Reads the objects of all operators periodically, for all scenarios.
pub(crate) async fn watch(
    client: Client,
    reported: watch::Sender<Option<Arc<Snapshot>>>,
) -> anyhow::Result<()> {
    loop {
        let at = Instant::now();
        let lists = try_join_all(ComparedOperator::ALL.map(|operator| lists(&client, operator))).await?;
        if reported.send(Some(Arc::new(Snapshot { at, lists }))).is_err() {
            return Ok(());
        }
        tokio::time::sleep(LIST_INTERVAL.saturating_sub(at.elapsed())).await;
    }
}

/// An error text without the prefixes of the layers between.
fn bare(error: &str, namespace: &str) -> String {
    error.rsplit("error when getting metric values ").next().unwrap_or_default().replace(namespace, "{ns}")
}

impl KedaEnv {
    /// The value of a metric that an operator serves to an HPA.
    pub(crate) async fn metric_value(
        &self,
        operator: ComparedOperator,
        object: &str,
        metric: &str,
    ) -> String {
        let namespace = operator.namespace();
        let metric = &metric.replace("{ns}", namespace);
        let Some(ours) = self.ours.iter().find(|ours| ours.operator == operator) else {
            let path = format!(
                "/apis/external.metrics.k8s.io/v1beta1/namespaces/{namespace}/{metric}?labelSelector=scaledobject.keda.sh%2Fname%3D{object}"
            );
            return match send(&self.client, Method::GET, &path, &Value::Null).await {
                Ok(list) => {
                    let items = list.get("items").and_then(Value::as_array).cloned().unwrap_or_default();
                    let item =
                        |item: &Value| format!("{}={}", text(item, "/metricName"), text(item, "/value"));
                    items.iter().map(item).collect::<Vec<_>>().join(" ").replace(namespace, "{ns}")
                }
                Err(error) => format!("error: {}", bare(&error.to_string(), namespace)),
            };
        };
        match ours.handle.metric(namespace, object, metric).await {
            Ok(values) => values
                .iter()
                .map(|value| format!("{}={}", value.name, value.value))
                .collect::<Vec<_>>()
                .join(" ")
                .replace(namespace, "{ns}"),
            Err(error) => format!("error: {}", bare(&error.to_string(), namespace)),
        }
    }
}
