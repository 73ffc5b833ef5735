//! Broken set-ups on both clusters: the first line of `plimsoll why` names the cause. The whole table of causes is a unit test of
//! `api::diagnosis`; these tests read the same facts from real API servers with the binary.

mod outages;
mod set_ups;
mod workloads;

use std::time::Duration;

use api::diagnosis::diagnose;
use controllers::hpa::HpaSettings;
use futures::future::join_all;
use http::Method;
use serde_json::json;
use testbed::harness::Failure;
use testbed::proxy::{Fault, Rule};

use crate::autoscalers;
use crate::env::{ControllerEnv, ProxiedClient, RunningController, on_both};
use crate::serving;
use crate::shared::manifests;
use crate::shared::why::WhyCommand;
use set_ups::{SetUp, SetUpKind, all, passing};
use workloads::{create_shared, create_target, renew_start_times};

/// Set-ups of the table; more are in `outages` and in the tests of the operator.
const MIN_SET_UPS: usize = 50;
/// The sync period. It is longer than in other tests, because so many autoscalers would keep a small machine busy.
const SYNC_PERIOD: Duration = Duration::from_secs(2);

#[test]
fn first_line_of_why_names_the_cause() -> Result<(), Failure> {
    assert!(all().len() >= MIN_SET_UPS, "{}", all().len());
    on_both(async |env| {
        autoscalers::define(&env).await;
        create_shared(&env).await;
        let all = all();
        let passing = passing();
        join_all(all.iter().chain(&passing).map(|set_up| {
            let env = &env;
            async move {
                create_target(env, set_up).await;
                create(env, set_up).await;
            }
        }))
        .await;
        let proxied = env.proxied().await;
        refuse(&proxied);
        let settings = HpaSettings { period: SYNC_PERIOD, ..env.settings() };
        let ours = RunningController::start(proxied.client.clone(), settings);
        let served = serving::start(&env.client, &ours.handle, &env.namespace, "decisions").await;
        let registered = served.api_services();
        manifests::apply(&env.client, env.cluster, &registered, |_| true).await;
        env.until_found("/apis/decisions.plimsoll.dev/v1alpha1/namespaces/{ns}/decisions").await;

        explained(&env, &all).await;
        for set_up in &passing {
            env.until(set_up.name, async || passed(&env, &ours, set_up)).await;
        }
        assert!(ours.is_alive());
        ours.stop().await;
        for object in registered.iter().rev() {
            env.send(Method::DELETE, &manifests::path(object), None).await;
        }
    })
}

/// Creates the autoscaler of a set-up; its target is the Deployment of the same name, unless its spec names another.
async fn create(env: &ControllerEnv, set_up: &SetUp) {
    let SetUp { name, kind, mode, spec, .. } = set_up;
    let mut spec = spec.clone();
    if spec.get("scaleTargetRef").is_none() {
        spec["scaleTargetRef"] = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": name});
    }
    let (api_version, kind, plural) = match kind {
        SetUpKind::Hpa => ("autoscaling/v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers"),
        SetUpKind::Autoscaler => ("plimsoll.dev/v1alpha1", "Autoscaler", "autoscalers"),
    };
    let annotations = mode.map_or(json!({}), |mode| json!({"plimsoll.dev/mode": mode}));
    let object = json!({"apiVersion": api_version, "kind": kind,
        "metadata": {"name": name, "annotations": annotations}, "spec": spec});
    env.create(&format!("/apis/{api_version}/namespaces/{{ns}}/{plural}"), object).await;
}

/// The requests of the controller that the API server forbids.
fn refuse(proxied: &ProxiedClient) {
    let fault = |code, reason, message: &str| Fault::Status {
        code,
        reason,
        message: message.into(),
        retry_after: None,
    };
    let no_right = "widgets.toys.example.com \"denied\" is forbidden: User \
                    \"system:serviceaccount:plimsoll-system:plimsoll-controller\" cannot get resource \"widgets/scale\" in API \
                    group \"toys.example.com\" in the namespace \"shop\"";
    let quota = "admission webhook \"quota.example.com\" denied the request: no more pods for this team";
    let rules = [
        Rule::new(fault(403, "Forbidden", no_right)).suffix("/widgets/denied/scale"),
        Rule::new(fault(500, "InternalError", "etcd is not well")).suffix("/widgets/unreadable/scale"),
        Rule::new(fault(403, "Forbidden", quota)).method(Method::PUT).suffix("/deployments/frozen/scale"),
    ];
    for rule in rules {
        proxied.rules.add(rule);
    }
}

/// Waits until `plimsoll why` names the cause of every set-up.
async fn explained(env: &ControllerEnv, set_ups: &[SetUp]) {
    let why = WhyCommand::new(&env.kubeconfig, &env.namespace);
    let mut open: Vec<&SetUp> = set_ups.iter().collect();
    env.until("the causes", async || {
        for set_up in &open {
            renew_start_times(env, set_up).await;
        }
        let names: Vec<String> = open.iter().map(|set_up| set_up.full_name()).collect();
        let response = why.explain(&names).await?;
        let mut wrong = Vec::new();
        open.retain(|set_up| {
            let words = set_up.words.replace("{ns}", &env.namespace);
            let missed = response.misses(&set_up.full_name(), set_up.id, &words);
            wrong.extend(missed.clone());
            missed.is_some()
        });
        if wrong.is_empty() { Ok(()) } else { Err(wrong) }
    })
    .await;
}

/// Whether one of the first decisions of a set-up has its cause.
fn passed(env: &ControllerEnv, ours: &RunningController, set_up: &SetUp) -> Result<(), Vec<String>> {
    let records = ours.handle.records().of(&env.namespace, &format!("hpa.{}", set_up.name));
    let first = records.iter().filter_map(|record| diagnose(&record.facts(None)).into_iter().next());
    let first: Vec<_> = first.map(|cause| (cause.id, cause.sentence)).collect();
    if first.iter().any(|(id, sentence)| *id == set_up.id && sentence == set_up.words) {
        Ok(())
    } else {
        Err(first.into_iter().map(|(id, sentence)| format!("{id}: {sentence}")).collect())
    }
}
