//! Counts of pods and nodes.
use crate::backends::PodView;
use crate::table;
use crate::test_support::{FakeCluster, backends, build, trigger};

fn pod(node: &str, phase: &str) -> PodView {
    PodView { node: node.to_owned(), phase: phase.to_owned() }
}

async fn counted(metadata: &[(&str, &str)], pods: Vec<PodView>) -> (String, bool) {
    let metadata: Vec<_> =
        [("podSelector", "app=shop"), ("value", "2")].iter().chain(metadata).copied().collect();
    let cluster = FakeCluster { pods, ..FakeCluster::default() };
    let scaler = table::build(&trigger("kubernetes-workload", &metadata), &backends(cluster)).unwrap();
    let read = scaler.read("m").await.unwrap();
    (read.values.first().unwrap().value.to_string(), read.active)
}

#[tokio::test]
async fn finished_pods_do_not_count() {
    let pods = ["Pending", "Running", "Succeeded", "Failed", "Unknown"].map(|phase| pod("a", phase));
    assert_eq!(counted(&[], pods.to_vec()).await, ("3".into(), true));
    assert_eq!(counted(&[("activationValue", "3")], pods.to_vec()).await, ("3".into(), false));
    assert_eq!(counted(&[], Vec::new()).await, ("0".into(), false));
}

#[tokio::test]
async fn nodes_count_once() {
    let pods = vec![pod("a", "Running"), pod("b", "Running"), pod("a", "Running"), pod("c", "Failed")];
    assert_eq!(counted(&[("groupByNode", "true")], pods).await, ("2".into(), true));
}

#[tokio::test]
async fn failed_read_is_an_error_and_not_zero() {
    let cluster = FakeCluster { fails: true, ..FakeCluster::default() };
    let trigger = trigger("kubernetes-workload", &[("podSelector", "app=shop"), ("value", "1")]);
    let error = table::build(&trigger, &backends(cluster)).unwrap().read("m").await.unwrap_err();
    assert!(error.message.ends_with("no pods today"), "{error}");
}

#[test]
fn invalid_parameters_are_errors() {
    let error = |metadata: &[(&str, &str)]| {
        let Err(error) = build(&trigger("kubernetes-workload", metadata)) else { return String::new() };
        error.message
    };
    let prefix = "error parsing kubernetes workload metadata: ";
    assert_eq!(
        error(&[("podSelector", "a=b"), ("value", "0")]),
        format!("{prefix}{prefix}value must be a float greater than 0")
    );
    let text = error(&[("podSelector", "=="), ("value", "1")]);
    assert!(text.starts_with(&format!("{prefix}error parsing pod selector: ")), "{text}");
    assert!(
        error(&[]).contains("missing required parameter \"podSelector\" in [triggerMetadata]\nvalue must")
    );
}
