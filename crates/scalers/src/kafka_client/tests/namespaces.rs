//! Triggers of several namespaces at one cluster.

use super::*;

#[tokio::test]
async fn round_of_one_namespace_fails_for_no_other() {
    let fake = FakeKafka::start(1, true, None).await;
    fake.topic("huge", &vec![(0, 0, 1); 100_001]);
    fake.topic("t", &[(0, 0, 10)]);
    fake.commit("g", 0, &[("t", 0, 1)]);
    let clusters = KafkaClusters::default();
    let tenant = KafkaServer { namespace: "tenant".to_owned(), ..server(&fake) };
    let huge = clusters.interest(&tenant, "g", &["huge".to_owned()], false);
    let good = clusters.interest(&server(&fake), "g", &["t".to_owned()], false);
    for _ in 0..2 {
        let error = value(&huge, &policy()).await.unwrap_err().message;
        assert!(error.contains("100001 partitions"), "{error}");
        assert_eq!(value(&good, &policy()).await, Ok(9));
    }
}
