mod codec;
mod fake;
mod lags;
mod namespaces;

use std::collections::HashSet;
use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use fake::{FakeKafka, Login};
use sources::http::Secret;
use tokio::time::Instant;

use super::messages::{KafkaRequest, key};
use super::wire::ResponseReader;
use super::*;
use crate::ScalerError;
use crate::wake::{WakeSignal, WakeSource as _};

const MAX_SAMPLE_AGE: Duration = Duration::from_mins(1);

fn server(fake: &FakeKafka) -> KafkaServer {
    let dialer = Dialer::allowing_loopback();
    let namespace = "shop".to_owned();
    KafkaServer { namespace, bootstrap: vec![fake.address(0)], tls: None, login: None, dialer }
}

fn policy() -> LagPolicy {
    LagPolicy { threshold: 10, ..LagPolicy::default() }
}

async fn value(interest: &Arc<GroupInterest>, policy: &LagPolicy) -> Result<i64, ScalerError> {
    let (sample, taken) = interest.read(Duration::ZERO).await?;
    Ok(policy.lag(&sample, taken, &mut PreviousOffsets::default())?.value)
}

#[tokio::test]
async fn lag_over_two_brokers_in_few_requests() {
    for batch in [true, false] {
        let fake = FakeKafka::start(2, batch, None).await;
        fake.topic("t", &[(0, 5, 20), (1, 0, 7), (1, 3, 3)]);
        fake.commit("g", 1, &[("t", 0, 12), ("t", 1, 7), ("t", 2, -1)]);
        let clusters = KafkaClusters::default();
        let interest = clusters.interest(&server(&fake), "g", &["t".to_owned()], false);
        assert_eq!(value(&interest, &policy()).await, Ok(9), "batch {batch}");
        let first = fake.requests();
        assert_eq!(first.iter().filter(|(_, key)| *key == key::METADATA).count(), 1);
        assert_eq!(first.iter().filter(|(_, key)| *key == key::LIST_OFFSETS).count(), 2);
        // Then one connection per broker is kept, and neither versions nor coordinators are requested again.
        assert_eq!(value(&interest, &policy()).await, Ok(9));
        let mut again: Vec<_> = fake.requests().split_off(first.len());
        again.sort_unstable();
        // Any broker knows the metadata.
        again.retain(|(_, key)| *key != key::METADATA);
        assert_eq!(again, [(0, key::LIST_OFFSETS), (1, key::LIST_OFFSETS), (1, key::OFFSET_FETCH)]);
        assert_eq!(fake.requests().len(), first.len() + 4);
        assert_eq!(fake.connections(), 2);
    }
}

#[tokio::test]
async fn a_thousand_groups_share_rounds() {
    let fake = FakeKafka::start(1, true, None).await;
    fake.topic("t", &[(0, 0, 100)]);
    let clusters = KafkaClusters::default();
    let mut interests = Vec::new();
    let server = server(&fake);
    for number in 0..1000 {
        let group = format!("g{number}");
        fake.commit(&group, 0, &[("t", 0, i64::from(number % 100))]);
        interests.push(clusters.interest(&server, &group, &["t".to_owned()], false));
    }
    let policy = LagPolicy { allow_idle_consumers: true, ..policy() };
    let read = |number: usize| {
        let (interest, policy) = (Arc::clone(&interests[number]), policy.clone());
        async move {
            let (sample, taken) = interest.read(MAX_SAMPLE_AGE).await.unwrap();
            policy.lag(&sample, taken, &mut PreviousOffsets::default()).unwrap().value
        }
    };
    let values = futures::future::join_all((0..1000).map(read)).await;
    assert!(values.iter().enumerate().all(|(number, value)| *value == 100 - (number as i64 % 100)));
    // One reader starts the first round for all readers until then; 200 groups are in one request.
    let requests = fake.requests().len();
    assert!(requests <= 40, "{requests} requests");
    // Within the time that samples are shared nothing is sent.
    assert_eq!(read(7).await, 93);
    assert_eq!(fake.requests().len(), requests);
    assert_eq!(fake.connections(), 1);
}

/// Their responses are so small that they are decoded by the task.
#[tokio::test]
async fn lists_of_many_partitions_are_made_on_a_worker() {
    let threads_of = async |partitions: usize| {
        let fake = FakeKafka::start(1, true, None).await;
        fake.topic("t", &vec![(0, 0, 1); partitions]);
        fake.commit("g", 0, &[("t", 0, 0)]);
        let interest = KafkaClusters::default().interest(&server(&fake), "g", &["t".to_owned()], false);
        let read = crate::off_thread::run(async move {
            let mut threads = HashSet::new();
            let mut reading = Box::pin(interest.read(Duration::ZERO));
            let sampled = poll_fn(|context| {
                threads.insert(std::thread::current().id());
                reading.as_mut().poll(context)
            });
            (sampled.await.is_ok(), threads.len())
        });
        read.await
    };
    assert_eq!(threads_of(3).await, (true, 1));
    let (is_read, threads) = threads_of(1_500).await;
    assert!(is_read && threads > 1, "{threads}");
}

#[tokio::test]
async fn all_topics_of_a_group() {
    let fake = FakeKafka::start(2, true, None).await;
    fake.topic("a", &[(0, 0, 10), (1, 0, 10)]);
    fake.topic("b", &[(0, 0, 5)]);
    fake.topic("other", &[(0, 0, 1000)]);
    fake.commit("g", 0, &[("a", 0, 4), ("b", 0, 5)]);
    let interest = KafkaClusters::default().interest(&server(&fake), "g", &[], false);
    // Partition 1 of a has no commit and counts 1.
    assert_eq!(value(&interest, &policy()).await, Ok(7));
    assert_eq!(value(&interest, &policy()).await, Ok(7));
    let metadata = fake.requests().iter().filter(|(_, key)| *key == key::METADATA).count();
    assert_eq!(metadata, 3, "known topics are described with the first request of the second round");
}

#[tokio::test]
async fn group_without_commits_needs_a_topic() {
    let fake = FakeKafka::start(1, true, None).await;
    fake.topic("t", &[(0, 0, 10)]);
    fake.commit("g", 0, &[]);
    let interest = KafkaClusters::default().interest(&server(&fake), "g", &[], false);
    let text = value(&interest, &policy()).await.unwrap_err().message;
    assert!(text.contains("names no topic"), "{text}");
}

#[tokio::test]
async fn retained_records_without_commit() {
    let fake = FakeKafka::start(1, true, None).await;
    fake.topic("t", &[(0, 90, 100)]);
    fake.commit("g", 0, &[]);
    let interest = KafkaClusters::default().interest(&server(&fake), "g", &["t".to_owned()], true);
    let policy = LagPolicy { from_earliest: true, allow_idle_consumers: true, ..policy() };
    assert_eq!(value(&interest, &policy).await, Ok(100));
    assert_eq!(value(&interest, &LagPolicy { only_retained: true, ..policy }).await, Ok(10));
}

#[tokio::test]
async fn errors_concern_their_group_or_topic_only() {
    let fake = FakeKafka::start(1, true, None).await;
    fake.topic("t", &[(0, 0, 3)]);
    fake.topic("headless", &[(-1, 0, 3)]);
    fake.commit("g", 0, &[("t", 0, 1), ("headless", 0, 1)]);
    fake.refuse("secret", 30);
    let clusters = KafkaClusters::default();
    let of = |group: &str, topic: &str| clusters.interest(&server(&fake), group, &[topic.to_owned()], false);
    let (good, no_topic, no_leader, refused) =
        (of("g", "t"), of("g", "nope"), of("g", "headless"), of("secret", "t"));
    let policy = LagPolicy { threshold: 1, ..LagPolicy::default() };
    let (good, no_topic, no_leader, refused) = tokio::join!(
        value(&good, &policy),
        value(&no_topic, &policy),
        value(&no_leader, &policy),
        value(&refused, &policy)
    );
    assert_eq!(good, Ok(1), "one partition bounds the lag");
    let no_topic = no_topic.unwrap_err();
    assert_eq!(no_topic.cause(), Some(&crate::SourceRefusal::UnknownName));
    let text = no_topic.message;
    assert!(text.starts_with("error describing topics: nope: UNKNOWN_TOPIC_OR_PARTITION"), "{text}");
    let text = no_leader.unwrap_err().message;
    assert!(text.contains("topic headless and partition 0: LEADER_NOT_AVAILABLE"), "{text}");
    let refused = refused.unwrap_err();
    assert_eq!(refused.cause(), Some(&crate::SourceRefusal::Credentials));
    let text = refused.message;
    assert!(text.starts_with("error listing consumer group offsets: GROUP_AUTHORIZATION_FAILED"), "{text}");
}

#[tokio::test]
async fn name_that_no_topic_can_have_concerns_its_trigger_only() {
    let fake = FakeKafka::start(1, true, None).await;
    fake.topic("t", &[(0, 0, 10)]);
    fake.commit("g", 0, &[("t", 0, 4)]);
    let clusters = KafkaClusters::default();
    let long = clusters.interest(&server(&fake), "h", &["t".repeat(250)], false);
    let good = clusters.interest(&server(&fake), "g", &["t".to_owned()], false);
    let text = value(&long, &policy()).await.unwrap_err().message;
    assert!(text.contains("INVALID_TOPIC_EXCEPTION"), "{text}");
    // The round for this trigger is also one for the other, which was read a moment ago.
    assert_eq!(value(&good, &policy()).await, Ok(6));
}

#[tokio::test]
async fn many_topics_are_described_in_several_requests() {
    let fake = FakeKafka::start(1, true, None).await;
    fake.topic("t", &[(0, 0, 10)]);
    let many: Vec<String> =
        (0..10_000).map(|number| format!("missing-{number}")).chain(["t".into()]).collect();
    let interest = KafkaClusters::default().interest(&server(&fake), "g", &many, false);
    assert!(value(&interest, &policy()).await.is_err(), "a topic is missing");
    assert_eq!(fake.requests().iter().filter(|(_, key)| *key == key::METADATA).count(), 2);
}

#[tokio::test]
async fn a_coordinator_that_moved_is_found_again() {
    let fake = FakeKafka::start(2, true, None).await;
    fake.topic("t", &[(0, 0, 10)]);
    fake.commit("g", 0, &[("t", 0, 1)]);
    let interest = KafkaClusters::default().interest(&server(&fake), "g", &["t".to_owned()], false);
    assert_eq!(value(&interest, &policy()).await, Ok(9));
    fake.commit("g", 1, &[("t", 0, 2)]);
    assert_eq!(value(&interest, &policy()).await, Ok(8));
}

#[tokio::test]
async fn a_restarted_broker_is_connected_again() {
    let fake = FakeKafka::start(1, true, None).await;
    fake.topic("t", &[(0, 0, 10)]);
    fake.commit("g", 0, &[("t", 0, 1)]);
    let interest = KafkaClusters::default().interest(&server(&fake), "g", &["t".to_owned()], false);
    assert_eq!(value(&interest, &policy()).await, Ok(9));
    fake.drop_connections();
    assert_eq!(value(&interest, &policy()).await, Ok(9));
    assert_eq!(fake.connections(), 2);
}

#[tokio::test]
async fn clusters_are_forgotten_with_their_last_trigger() {
    let fake = FakeKafka::start(1, true, None).await;
    fake.topic("t", &[(0, 0, 10)]);
    fake.commit("g", 0, &[("t", 0, 1)]);
    let clusters = KafkaClusters::default();
    for _ in 0..100 {
        let interest = clusters.interest(&server(&fake), "g", &["t".to_owned()], false);
        assert_eq!(value(&interest, &policy()).await, Ok(9));
    }
    fake.all_closed().await;
}

#[tokio::test]
async fn logins() {
    let (user, password) = ("u".to_owned(), Secret::new("hunter2"));
    let scram = |hash| SaslLogin::Scram { hash, user: user.clone(), password: password.clone() };
    let plain = SaslLogin::Plain { user: user.clone(), password: password.clone() };
    let cases = [
        (plain, Login::Plain),
        (scram(ScramHash::Sha256), Login::Scram(ScramHash::Sha256)),
        (scram(ScramHash::Sha512), Login::Scram(ScramHash::Sha512)),
    ];
    for (login, accepted) in cases {
        let fake = FakeKafka::start(2, true, Some(accepted)).await;
        fake.topic("t", &[(1, 0, 10)]);
        fake.commit("g", 0, &[("t", 0, 1)]);
        let right = KafkaServer { login: Some(login), ..server(&fake) };
        let interest = KafkaClusters::default().interest(&right, "g", &["t".to_owned()], false);
        assert_eq!(value(&interest, &policy()).await, Ok(9), "{accepted:?}");
        let wrong = SaslLogin::Plain { user: "u".into(), password: Secret::new("hunter3") };
        let wrong = KafkaServer { login: Some(wrong), ..server(&fake) };
        let interest = KafkaClusters::default().interest(&wrong, "g", &["t".to_owned()], false);
        let text = value(&interest, &policy()).await.unwrap_err().message;
        let expected = match accepted {
            Login::Plain => "SASL PLAIN: Authentication failed",
            Login::Scram(_) => "the broker does not accept SASL mechanism PLAIN, only [SCRAM-SHA-",
        };
        assert!(text.contains(expected) && !text.contains("hunter"), "{text}");
    }
}

#[test]
fn bearer_messages_have_extensions() {
    let extensions = [("a".to_owned(), "1".to_owned())];
    let message = login::bearer_message(&Secret::new("token"), &extensions).unwrap();
    assert_eq!(message.reveal(), "n,,\u{1}auth=Bearer token\u{1}a=1\u{1}\u{1}");
    assert!(login::bearer_message(&Secret::new("to\u{1}ken"), &[]).is_err());
}

#[tokio::test]
async fn msk_logins_are_signed() {
    use base64::Engine as _;
    let clock = runtime::Clock::new(|| "2026-01-01T00:00:00Z".parse().unwrap());
    let settings = crate::web::HttpSettings { clock, ..crate::web::HttpSettings::default() };
    let web = Arc::new(crate::web::SharedHttpClient::new(settings));
    let keys = crate::identity::AwsKeys {
        access: "AKID".into(),
        secret: Secret::new("hunter2"),
        session: Some(Secret::new("se/ss")),
    };
    let identity = crate::identity::AwsIdentity::Keys(keys);
    let login = |as_token| MskLogin::login(as_token, "eu-west-1", &identity, Arc::default(), &web);
    let message = login(true).source.message("b-1.example").await.unwrap();
    let token = message.reveal().strip_prefix("n,,\u{1}auth=Bearer ").unwrap().trim_end_matches('\u{1}');
    let url = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(token).unwrap();
    let url = String::from_utf8(url).unwrap();
    let (start, signature) = url.split_once("&X-Amz-Signature=").unwrap();
    assert_eq!(
        start,
        "https://kafka.eu-west-1.amazonaws.com/?Action=kafka-cluster%3AConnect&X-Amz-Algorithm=AWS4-HMAC-SHA256\
         &X-Amz-Credential=AKID%2F20260101%2Feu-west-1%2Fkafka-cluster%2Faws4_request&X-Amz-Date=20260101T000000Z\
         &X-Amz-Expires=900&X-Amz-Security-Token=se%2Fss&X-Amz-SignedHeaders=host"
    );
    let (signature, agent) = signature.split_once('&').unwrap();
    assert_eq!((signature.len(), agent), (64, "User-Agent=plimsoll"));
    let message = login(false).source.message("b-1.example").await.unwrap();
    let fields: serde_json::Value = serde_json::from_str(message.reveal()).unwrap();
    assert_eq!(fields["host"], "b-1.example");
    assert_eq!(fields["action"], "kafka-cluster:Connect");
    assert_eq!(fields["x-amz-security-token"], "se/ss");
    assert_ne!(fields["x-amz-signature"], signature);
    assert!(login(true) != login(false) && login(true) == login(true));
}

#[tokio::test]
async fn tokens_of_the_operator_are_sent_to_brokers_of_msk_only() {
    let web = Arc::new(crate::web::SharedHttpClient::new(crate::web::HttpSettings::default()));
    let identity = crate::identity::AwsIdentity::Operator;
    let login = MskLogin::login(true, "eu-west-1", &identity, Arc::default(), &web);
    for host in [
        "b-1.example",
        "ec2-1-2-3-4.eu-west-1.compute.amazonaws.com",
        "kafka.eu-west-1.elb.amazonaws.com",
        "b.kafka.eu-west-1.s3.amazonaws.com",
        "b-1.c.kafka.us-east-1.amazonaws.com",
        "b-1.c.kafka.eu-west-1.amazonaws.com.example",
    ] {
        let error = login.source.message(host).await.unwrap_err().message;
        assert!(error.contains("not to"), "{host}: {error}");
    }
    // The tests' environment has no identity.
    for host in
        ["B-1.c.abc.c2.kafka.eu-west-1.amazonaws.com", "boot-x.c1.kafka-serverless.eu-west-1.amazonaws.com"]
    {
        let error = login.source.message(host).await.unwrap_err().message;
        assert!(error.contains("its pod has none"), "{host}: {error}");
    }
}

#[tokio::test]
async fn topics_with_too_many_partitions_are_an_error() {
    let fake = FakeKafka::start(1, true, None).await;
    fake.topic("t", &vec![(0, 0, 1); 100_001]);
    fake.commit("g", 0, &[]);
    let interest = KafkaClusters::default().interest(&server(&fake), "g", &["t".to_owned()], false);
    let error = value(&interest, &policy()).await.unwrap_err().message;
    assert!(error.contains("100001 partitions"), "{error}");
}

#[test]
fn names_of_topics_are_bounded_and_shared() {
    let response = |name: &str, partitions: u32| {
        let mut bytes = [0; 4].to_vec();
        bytes.extend(1_u32.to_be_bytes());
        bytes.extend((name.len() as i16).to_be_bytes());
        bytes.extend(name.as_bytes());
        bytes.extend(partitions.to_be_bytes());
        bytes.extend(vec![0; 22 * partitions as usize]);
        bytes
    };
    let bytes = response("t", 2);
    let found = messages::list_offsets(ResponseReader::new(&bytes, false)).unwrap();
    assert!(Arc::ptr_eq(&found[0].topic, &found[1].topic));
    let bytes = response(&"t".repeat(250), 2);
    assert!(messages::list_offsets(ResponseReader::new(&bytes, false)).is_err());
}

#[test]
fn request_bytes() {
    let request = KafkaRequest::Metadata { topics: vec!["t".to_owned()] };
    let bytes = b"\0\0\0\x1a\0\x03\0\x04\0\0\0\x07\0\x08plimsoll\0\0\0\x01\0\x01t\0";
    assert_eq!(request.frame(7), bytes);
    let groups = vec![("g".to_owned(), Some(vec![("t".to_owned(), vec![0])])), ("h".to_owned(), None)];
    let request = KafkaRequest::OffsetFetches { groups };
    let body = b"\0\x03\x02g\x02\x02t\x02\0\0\0\0\0\0\x02h\0\0\0\0";
    let frame = request.frame(7);
    assert_eq!(&frame[22..], body);
}

#[test]
fn addresses() {
    let both = |text: &str| host_and_port(text).map(|(host, port)| format!("{host} {port}"));
    assert_eq!(both("kafka:9093").as_deref(), Some("kafka 9093"));
    assert_eq!(both(" kafka ").as_deref(), Some("kafka 9092"));
    assert_eq!(both("[::1]:9094").as_deref(), Some("::1 9094"));
    assert_eq!(both("::1").as_deref(), Some("::1 9092"));
    assert_eq!(both("kafka:99999"), None);
    assert_eq!(both(""), None);
}

proptest::proptest! {
    #[test]
    fn any_bytes_are_a_response_or_refused(bytes: Vec<u8>) {
        for flexible in [false, true] {
            let reader = || ResponseReader::new(&bytes, flexible);
            let _ = messages::api_versions(reader());
            let _ = messages::metadata(reader());
            let _ = messages::coordinators(reader());
            let _ = messages::coordinator(reader(), "g");
            let _ = messages::groups_offsets(reader());
            let _ = messages::group_offsets(reader(), "g");
            let _ = messages::list_offsets(reader());
            let _ = messages::has_records(reader());
            let _ = messages::handshake(reader());
            let _ = messages::authenticated(reader());
        }
    }
}

#[tokio::test]
async fn new_records_wake() {
    let fake = FakeKafka::start(2, true, None).await;
    fake.topic("t", &[(0, 0, 5), (1, 0, 7)]);
    let clusters = KafkaClusters::default();
    assert!(clusters.interest(&server(&fake), "g", &[], false).new_records().is_none(), "no topic is given");
    let interest = clusters.interest(&server(&fake), "g", &["t".to_owned()], false);
    let source = interest.new_records().unwrap();
    let (signal, mut signals) = WakeSignal::channel();
    let waking = tokio::spawn(async move { source.follow(&signal).await });
    let fetches = async |broker: i32, wanted: usize| {
        let is_fetch = |request: &&(i32, i16)| **request == (broker, key::FETCH);
        while fake.requests().iter().filter(is_fetch).count() < wanted {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let woken = async {
        fetches(0, 1).await;
        fetches(1, 1).await;
        assert!(signals.has_changed().unwrap(), "once when it waits");
        signals.mark_unchanged();
        // The broker with the new record gets another request, for records after its new end.
        fake.topic("t", &[(0, 0, 5), (1, 0, 8)]);
        signals.changed().await.unwrap();
        fetches(1, 2).await;
    };
    tokio::time::timeout(Duration::from_mins(1), woken).await.unwrap();
    waking.abort();
}
