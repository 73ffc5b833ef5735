use std::collections::HashMap;

use api::keda::KedaProfile;
use prost::Message;
use tonic::Status;
use tonic::metadata::MetadataMap;

use super::protocol::{
    CountWorkflowsRequest, DeploymentInfo, DeploymentQueue, DescribeDeploymentRequest,
    DescribeTaskQueueRequest, TaskQueueStats, TypeInfo, VersionInfo,
};
use super::*;
use crate::parameters::notices;
use crate::test_support::grpc_server::grpc_server;
use crate::test_support::{build, read, texts, trigger};

fn temporal(changed: &[(&str, &str)], profile: KedaProfile) -> Trigger {
    let mut given = trigger("temporal", &[("endpoint", "t:7233"), ("taskQueue", "q")]);
    given.metadata.extend(texts(changed));
    Trigger { profile, ..given }
}

fn error(trigger: &Trigger) -> String {
    build(trigger).err().map(|error| error.message).unwrap_or_default()
}

#[test]
fn rules_based_versioning_is_deprecated_in_2_20_and_removed_in_2_21() {
    let old = temporal(&[("buildId", "b")], KedaProfile::V2_20);
    assert_eq!(error(&old), "");
    assert_eq!(notices(TYPE.parameters, &old).len(), 1);
    let new = Trigger { profile: KedaProfile::V2_21, ..old };
    assert!(error(&new).contains("The 'buildId' setting is DEPRECATED and is removed in v2.21"));
    assert_eq!(notices(TYPE.parameters, &new), []);
}

#[test]
fn names_in_visibility_queries_have_no_quotes() {
    let running = ("includeRunningWorkflowCount", "true");
    assert_eq!(error(&temporal(&[running], KedaProfile::V2_21)), "");
    let quoted = temporal(&[running, ("workflowTaskQueueForCount", "w'x")], KedaProfile::V2_21);
    assert!(error(&quoted).contains("value \"w'x\" contains characters not allowed"));
    let alone = [("workflowTaskQueueForCount", "w")];
    assert!(error(&temporal(&alone, KedaProfile::V2_21)).contains("has no effect unless"));
    assert_eq!(error(&temporal(&alone, KedaProfile::V2_20)), "");
}

/// A server that answers with this message, after a check of the request.
async fn serving<A: Message + Clone + 'static>(
    expected: &'static str,
    answer: A,
    check: impl Fn(&MetadataMap, &[u8]) + Send + Sync + 'static,
) -> String {
    grpc_server(move |path, headers, message| {
        assert_eq!(path.rsplit('/').next(), Some(expected));
        assert_eq!(headers.get("temporal-namespace").unwrap(), "default");
        check(headers, message);
        Ok(answer.encode_to_vec())
    })
    .await
}

async fn read_at(
    address: &str,
    changed: &[(&str, &str)],
    profile: KedaProfile,
) -> Result<(String, bool), String> {
    let mut given = temporal(changed, profile);
    given.metadata.insert("endpoint".to_owned(), address.to_owned());
    let reading = read(&given).await.map_err(|error| error.message)?;
    Ok((reading.values[0].value.canonical(), reading.active))
}

fn stats(backlog: i64) -> TaskQueueStats {
    TaskQueueStats { backlog }
}

#[tokio::test]
async fn backlog_of_all_types_without_versions() {
    let answer = DescribeTaskQueueResponse { stats: Some(stats(4)), ..DescribeTaskQueueResponse::default() };
    let address = serving("DescribeTaskQueue", answer, |headers, message| {
        let requested = DescribeTaskQueueRequest::decode(message).unwrap();
        let queue = requested.task_queue.unwrap();
        assert_eq!((&*requested.namespace, &*queue.name, queue.kind), ("default", "q", 1));
        assert!(requested.report_stats && requested.versions.is_none() && requested.api_mode == 0);
        assert!((1..=3).contains(&requested.task_queue_type));
        assert!(headers.get("authorization").is_none());
    })
    .await;
    assert_eq!(read_at(&address, &[], KedaProfile::V2_20).await, Ok(("12".to_owned(), true)));
    let one = [("queueTypes", "activity"), ("activationTargetQueueSize", "4")];
    assert_eq!(read_at(&address, &one, KedaProfile::V2_20).await, Ok(("4".to_owned(), false)));
}

#[tokio::test]
async fn servers_without_statistics_are_an_error() {
    let address = serving("DescribeTaskQueue", DescribeTaskQueueResponse::default(), |_, _| {}).await;
    let error = read_at(&address, &[], KedaProfile::V2_20).await.unwrap_err();
    assert!(
        error.starts_with("failed to get Temporal backlog count: the answer has no statistics"),
        "{error}"
    );
}

#[tokio::test]
async fn backlog_of_rules_based_versions() {
    let types =
        HashMap::from([(1, TypeInfo { stats: Some(stats(3)) }), (2, TypeInfo { stats: Some(stats(5)) })]);
    let versions = HashMap::from([("b".to_owned(), VersionInfo { types })]);
    let answer = DescribeTaskQueueResponse { versions, stats: None };
    let address = serving("DescribeTaskQueue", answer, |_, message| {
        let requested = DescribeTaskQueueRequest::decode(message).unwrap();
        let versions = requested.versions.unwrap();
        assert_eq!((requested.api_mode, versions.build_ids), (1, vec!["b".to_owned()]));
        assert_eq!((requested.task_queue_types, versions.all_active), (vec![1, 2], true));
    })
    .await;
    let given = [("buildId", "b"), ("selectAllActive", "true"), ("queueTypes", "workflow,activity")];
    assert_eq!(read_at(&address, &given, KedaProfile::V2_20).await, Ok(("8".to_owned(), true)));
}

#[tokio::test]
async fn backlog_of_a_worker_deployment() {
    let queue = |name: &str, kind, backlog| DeploymentQueue {
        name: name.to_owned(),
        kind,
        stats: Some(stats(backlog)),
    };
    let queues = vec![queue("q", 1, 1), queue("q", 2, 2), queue("other", 1, 100)];
    let answer = DescribeDeploymentResponse { info: Some(DeploymentInfo { status: DRAINING }), queues };
    let address = serving("DescribeWorkerDeploymentVersion", answer, |_, message| {
        let requested = DescribeDeploymentRequest::decode(message).unwrap();
        let version = requested.version.unwrap();
        assert_eq!((&*version.deployment_name, &*version.build_id), ("d", "1"));
        assert!(requested.report_stats);
    })
    .await;
    let deployment = [("workerDeploymentName", "d"), ("workerDeploymentBuildId", "1")];
    let read = async |more: &[(&str, &str)]| {
        read_at(&address, &[&deployment, more].concat(), KedaProfile::V2_21).await.unwrap()
    };
    assert_eq!(read(&[]).await, ("3".to_owned(), true));
    assert_eq!(read(&[("queueTypes", "workflow")]).await, ("1".to_owned(), true));
    assert_eq!(read(&[("queueTypes", "nexus")]).await, ("0".to_owned(), false));
    // A version that is drained stays active while its workflows end.
    let running = [("queueTypes", "nexus"), ("includeRunningWorkflowCount", "true")];
    assert_eq!(read(&running).await, ("0".to_owned(), true));
}

#[tokio::test]
async fn running_workflows_keep_a_trigger_active() {
    let address = grpc_server(|path, _, message| match path.rsplit('/').next() {
        Some("DescribeTaskQueue") => {
            let answer = DescribeTaskQueueResponse { stats: Some(stats(0)), ..DescribeTaskQueueResponse::default() };
            Ok(answer.encode_to_vec())
        }
        Some("CountWorkflowExecutions") => {
            let requested = CountWorkflowsRequest::decode(message).unwrap();
            let queue = if requested.query.contains("'w'") { "w" } else { "q" };
            assert_eq!(
                requested.query,
                format!(
                    "ExecutionStatus = 'Running' AND TaskQueue = '{queue}' AND TemporalWorkerDeploymentVersion is null"
                )
            );
            match queue {
                "w" => Err(Status::unavailable("busy")),
                _ => Ok(CountWorkflowsResponse { count: 1 }.encode_to_vec()),
            }
        }
        other => panic!("{other:?}"),
    })
    .await;
    let read = async |more: &[(&str, &str)]| read_at(&address, more, KedaProfile::V2_21).await;
    let running = ("includeRunningWorkflowCount", "true");
    assert_eq!(read(&[]).await, Ok(("0".to_owned(), false)));
    assert_eq!(read(&[running]).await, Ok(("0".to_owned(), true)));
    // A count that fails is not taken for 0.
    let error = read(&[running, ("workflowTaskQueueForCount", "w")]).await.unwrap_err();
    assert!(error.starts_with("failed to count running workflows: Temporal "), "{error}");
    assert!(error.ends_with(" refused CountWorkflowExecutions: busy (Unavailable)"), "{error}");
}

#[tokio::test]
async fn api_keys_are_sent_and_not_shown() {
    let answer = DescribeTaskQueueResponse { stats: Some(stats(4)), ..DescribeTaskQueueResponse::default() };
    let address = serving("DescribeTaskQueue", answer, |headers, _| {
        assert_eq!(headers.get("authorization").unwrap(), "Bearer hunter2");
    })
    .await;
    let mut given = temporal(&[("enableTLS", "false")], KedaProfile::V2_21);
    given.metadata.insert("endpoint".to_owned(), address);
    given.auth = texts(&[("apiKey", "hunter2")]);
    assert_eq!(read(&given).await.unwrap().values[0].value.canonical(), "12");
    // With TLS, which the server does not speak.
    given.metadata.remove("enableTLS");
    let error = read(&given).await.unwrap_err().message;
    assert!(!error.contains("hunter2"), "{error}");
    given.auth = texts(&[("apiKey", "hunter2\n")]);
    given.metadata.insert("enableTLS".to_owned(), "false".to_owned());
    let error = read(&given).await.map_or_else(|error| error.message, |_| String::new());
    assert!(!error.contains("hunter2"), "{error}");
}
