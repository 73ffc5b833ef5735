//! Supervision of the operator's tasks: watches that end or panic are restarted and reported, and a reconcile that panics is retried, while
//! others continue.

use runtime::{CheckFailure, WatchFault};
use serde_json::json;
use testbed::harness::Failure;

use crate::env::{InProcessOperator, SourceResponse, TestNamespace, deployment, on_both};

/// Creates a deployment without replicas and its ScaledObject, whose source reports no load.
async fn scaled_deployment(ns: &TestNamespace, name: &str) {
    let deployments = "/apis/apps/v1/namespaces/{ns}/deployments";
    let (code, created) = ns.send(http::Method::POST, deployments, Some(&deployment(name, 0))).await;
    assert_eq!(code, 201, "{created}");
    let objects = "/apis/keda.sh/v1alpha1/namespaces/{ns}/scaledobjects";
    let object = ns.scaled_object(name, &json!({}));
    let (code, created) = ns.send(http::Method::POST, objects, Some(&object)).await;
    assert_eq!(code, 201, "{created}");
}

/// Waits until the text of the exported metrics contains `line`.
async fn until_exported(ns: &TestNamespace, operator: &InProcessOperator, line: &str) {
    ns.until(line, async || {
        let text = operator.handle.exported_metrics();
        if text.lines().any(|own| own == line) { Ok(()) } else { Err(text) }
    })
    .await;
}

fn watch_task_is_restarted(fault: WatchFault, cause: &str) -> Result<(), Failure> {
    on_both(async |ns| {
        scaled_deployment(&ns, "one").await;
        let operator = InProcessOperator::start(&ns).await;
        ns.until_condition("one", "Active", "False ScalerNotActive").await;
        assert_eq!(operator.handle.watches_current(), Ok(()));
        for resource in ["scaledobjects", "deployments"] {
            until_exported(&ns, &operator, &format!("plimsoll_watch_current{{resource=\"{resource}\"}} 1"))
                .await;
            operator.handle.faults().fail_watch(resource, fault);
            let reported = Err(CheckFailure(format!("watch of {resource} is not current: {cause}")));
            ns.until("a watch that is not current", async || match operator.handle.watches_current() {
                current if current == reported => Ok(()),
                other => Err(other),
            })
            .await;
            let text = operator.handle.exported_metrics();
            let current = format!("plimsoll_watch_current{{resource=\"{resource}\"}} 0");
            assert!(text.lines().any(|line| line == current), "{text}");
            let restarts = format!("plimsoll_watch_restarts_total{{resource=\"{resource}\"}} ");
            let restarts = text.lines().find_map(|line| line.strip_prefix(&restarts));
            assert!(restarts.unwrap().parse::<u64>().unwrap() >= 1, "{text}");
            // An object that is created while the watch does not run is listed after the restart, and scaled.
            let name = format!("after-{resource}");
            ns.set_response(&name, SourceResponse::Value(1));
            scaled_deployment(&ns, &name).await;
            operator.handle.faults().clear();
            ns.until("a watch that is current again", async || operator.handle.watches_current()).await;
            until_exported(&ns, &operator, &format!("plimsoll_watch_current{{resource=\"{resource}\"}} 1"))
                .await;
            ns.until_replicas(&name, 1).await;
        }
        assert!(operator.is_alive());
        operator.stop().await;
    })
}

#[test]
fn watch_task_that_panics_is_restarted_and_reported() -> Result<(), Failure> {
    watch_task_is_restarted(WatchFault::PanicRepeatedly, "the watch task panicked: injected fault")
}

#[test]
fn watch_task_that_ends_is_restarted_and_reported() -> Result<(), Failure> {
    watch_task_is_restarted(WatchFault::EndRepeatedly, "the watch task ended")
}

#[test]
fn reconcile_that_panics_is_reported_and_retried_while_another_scaled_object_scales() -> Result<(), Failure> {
    on_both(async |ns| {
        let operator = InProcessOperator::start(&ns).await;
        let key = format!("ScaledObject {}/one", ns.namespace);
        operator.handle.faults().panic_in_reconcile(&key);
        for name in ["one", "two"] {
            ns.set_response(name, SourceResponse::Value(1));
            scaled_deployment(&ns, name).await;
        }
        ns.until_replicas("two", 1).await;
        let reported = "Warning ReconcilePanicked: reconcile panicked and is retried in 1 s: injected fault";
        ns.until_event("one", reported).await;
        let again = "Warning ReconcilePanicked: reconcile panicked and is retried in 2 s: injected fault";
        ns.until_event("one", again).await;
        assert_eq!(ns.replicas("one").await, 0);
        let text = operator.handle.exported_metrics();
        let panics = text.lines().find_map(|line| line.strip_prefix("plimsoll_reconcile_panics_total "));
        assert!(panics.unwrap().parse::<u64>().unwrap() >= 2, "{text}");
        // The other object is polled and scaled while the first one waits for its retry.
        ns.set_response("two", SourceResponse::Value(0));
        ns.until_replicas("two", 0).await;

        operator.handle.faults().clear();
        ns.until_replicas("one", 1).await;
        assert!(operator.is_alive());
        operator.stop().await;
    })
}
