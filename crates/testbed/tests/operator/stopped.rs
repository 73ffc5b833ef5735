//! A leader is stopped (SIGSTOP) in the middle of its work, and continues when another replica leads.

use serde_json::json;
use testbed::harness::Failure;

use crate::env::{Operator, SYSTEM_NAMESPACE, SourceResponse, TestNamespace, deployment, free_port, on_both};

const JOBS: &str = "/apis/batch/v1/namespaces/{ns}/jobs";
/// The maximum number of jobs at a time.
const MAX_JOBS: usize = 6;
/// The number of polls after which no more jobs are expected.
pub(crate) const QUIET_POLLS: u64 = 5;

/// An operator that takes part in the election of its namespace.
pub(crate) async fn replica(ns: &TestNamespace, kubeconfig: &str) -> Operator {
    let flags = [
        "--leader-elect".to_owned(),
        "--enable-webhook-patching=false".to_owned(),
        "--enable-apiservice-patching=false".to_owned(),
        format!("--leader-election-id=stopped-{}", ns.namespace),
        format!("--metrics-service-bind-address=127.0.0.1:{}", free_port()),
        format!("--health-probe-bind-address=127.0.0.1:{}", free_port()),
    ];
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    Operator::start_as(ns, kubeconfig, free_port(), &flags).await
}

/// Waits until an operator has become the leader that often.
pub(crate) async fn until_leading(ns: &TestNamespace, operator: &Operator, times: usize) {
    ns.until("another one leads", async || {
        let found = operator.log().matches("became leader").count();
        if found >= times { Ok(()) } else { Err((found, operator.log_end())) }
    })
    .await;
}

/// Names of all jobs.
pub(crate) async fn jobs(ns: &TestNamespace) -> Vec<String> {
    let all = ns.get(JOBS).await.1["items"].as_array().unwrap().clone();
    all.iter().map(|job| job["metadata"]["name"].as_str().unwrap().to_owned()).collect()
}

pub(crate) async fn until_jobs(ns: &TestNamespace, wanted: usize) {
    ns.until(&format!("{wanted} jobs"), async || {
        let found = jobs(ns).await;
        if found.len() == wanted { Ok(()) } else { Err(found) }
    })
    .await;
}

#[test]
fn a_leader_that_was_stopped_does_nothing_when_it_continues() -> Result<(), Failure> {
    on_both(async |ns| {
        let kubectl = ns.kubectl();
        for source in ["batch", "web"] {
            ns.set_response(source, SourceResponse::Value(0));
        }
        kubectl.apply(&deployment("web", 0));
        kubectl.apply(&ns.scaled_job("batch", u32::try_from(MAX_JOBS).unwrap()));
        kubectl.apply(&ns.scaled_object("web", &json!({})));
        let first = replica(&ns, &ns.env.cluster.kubeconfig).await;
        until_leading(&ns, &first, 1).await;
        let second = replica(&ns, &ns.env.cluster.kubeconfig).await;
        ns.set_response("batch", SourceResponse::Value(15));
        until_jobs(&ns, 2).await;

        // The stopped process cannot release its lease, and does not notice the pause.
        first.signal("-STOP");
        ns.set_response("batch", SourceResponse::Value(45));
        ns.set_response("web", SourceResponse::Value(5));
        until_leading(&ns, &second, 1).await;
        until_jobs(&ns, 5).await;
        ns.until_replicas("web", 1).await;
        let (before, generation) = (jobs(&ns).await, ns.generation("web").await);
        first.signal("-CONT");
        ns.rounds("batch", QUIET_POLLS).await;
        assert_eq!(jobs(&ns).await, before, "{}", first.log_end());
        assert_eq!(ns.generation("web").await, generation, "{}", first.log_end());
        let leases = format!("/apis/coordination.k8s.io/v1/namespaces/{SYSTEM_NAMESPACE}/leases");
        let lease = ns.get(&format!("{leases}/stopped-{}", ns.namespace)).await.1;
        assert_eq!(lease["spec"]["leaseTransitions"], 1, "{lease}");
        second.check();
    })
}
