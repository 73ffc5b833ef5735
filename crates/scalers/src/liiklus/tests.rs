use prost::Message as _;
use tonic::Status;

use super::*;
use crate::test_support::grpc_server::grpc_server;
use crate::test_support::{read, trigger};

fn offsets(pairs: &[(u32, u64)]) -> OffsetsReply {
    OffsetsReply { offsets: pairs.iter().copied().collect() }
}

#[tokio::test]
async fn reads_the_lag_of_a_group() {
    let address = grpc_server(|path, _, message| match path {
        "/com.github.bsideup.liiklus.LiiklusService/GetOffsets" => {
            let requested = GroupOffsetsRequest::decode(message).unwrap();
            assert_eq!((&*requested.topic, &*requested.group, requested.group_version), ("t", "g", 2));
            Ok(offsets(&[(0, 4), (1, 9)]).encode_to_vec())
        }
        "/com.github.bsideup.liiklus.LiiklusService/GetEndOffsets" => {
            assert_eq!(EndOffsetsRequest::decode(message).unwrap().topic, "t");
            Ok(offsets(&[(0, 10), (1, 10), (2, 3)]).encode_to_vec())
        }
        other => panic!("{other}"),
    })
    .await;
    let metadata = [("address", &*address), ("topic", "t"), ("group", "g"), ("groupVersion", "2")];
    let reading = read(&trigger("liiklus", &metadata)).await.unwrap();
    assert_eq!((&*reading.values[0].value.canonical(), reading.active), ("10", true));
    let mut idle = trigger("liiklus", &metadata);
    idle.metadata.insert("activationLagThreshold".to_owned(), "10".to_owned());
    assert!(!read(&idle).await.unwrap().active);
}

#[tokio::test]
async fn errors_of_the_server_are_named() {
    let address = grpc_server(|_, _, _| Err(Status::not_found("no such topic"))).await;
    let error = read(&trigger("liiklus", &[("address", &address), ("topic", "t"), ("group", "g")])).await;
    let error = error.unwrap_err();
    assert_eq!(error.message, format!("Liiklus {address} refused GetOffsets: no such topic (NotFound)"));
    assert_eq!(error.cause(), Some(&crate::SourceRefusal::UnknownName));
    for status in [Status::unauthenticated("who?"), Status::permission_denied("no")] {
        let address = grpc_server(move |_, _, _| Err(status.clone())).await;
        let given = trigger("liiklus", &[("address", &address), ("topic", "t"), ("group", "g")]);
        let refused = read(&given).await.unwrap_err();
        assert_eq!(refused.cause(), Some(&crate::SourceRefusal::Credentials));
    }
}

#[test]
fn lag_is_limited_by_the_number_of_partitions() {
    let lag = |read: &[(u32, u64)], end: &[(u32, u64)]| total_lag(&offsets(read), &offsets(end), 10);
    assert_eq!(lag(&[], &[(0, 5)]), Ok(5));
    assert_eq!(lag(&[(0, 5)], &[(0, 25), (1, 5)]), Ok(25));
    assert_eq!(lag(&[], &[(0, 25), (1, 5)]), Ok(20));
    // The group is ahead of what the server reports.
    assert_eq!(lag(&[(0, 9)], &[(0, 5)]), Ok(0));
    assert!(lag(&[], &[]).is_err());
    assert!(total_lag(&offsets(&[]), &offsets(&[(0, 5)]), 0).is_err());
}
