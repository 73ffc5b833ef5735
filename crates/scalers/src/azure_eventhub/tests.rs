mod fake;

use api::keda::KedaProfile;
use fake::fake_event_hub;
use http::{HeaderMap, HeaderName, HeaderValue};

use super::amqp_value::AmqpValue;
use super::*;
use crate::test_support::{ServerAction, build, read, read_answered, server, texts, trigger};

#[test]
fn the_hub_is_a_word_in_2_20_and_a_key_in_2_21() {
    let names =
        |connection| KedaProfile::ALL.map(|profile| names_hub(connection, &profile.behavior().triggers));
    assert_eq!(names("Endpoint=sb://h/;EntityPath=hub"), [true, true]);
    assert_eq!(names("Endpoint=sb://h/; entitypath =hub"), [false, true]);
    assert_eq!(names("Endpoint=sb://EntityPath/"), [true, false]);
    assert_eq!(names("Endpoint=sb://h/"), [false, false]);
}

fn hub_trigger(port: u16, key: &str, storage: &str) -> Trigger {
    let connection = format!(
        "Endpoint=sb://127.0.0.1:{port}/;SharedAccessKeyName=k;SharedAccessKey={key};EntityPath=hub;UseDevelopmentEmulator=true"
    );
    let storage = format!("AccountName=a;AccountKey=aHVudGVyMg==;BlobEndpoint={storage}/a");
    let mut given = trigger("azure-eventhub", &[("activationUnprocessedEventThreshold", "7")]);
    given.auth = texts(&[("connection", &connection), ("storageConnection", &storage)]);
    given
}

#[tokio::test]
async fn events_without_and_behind_checkpoints_count() {
    let port = fake_event_hub(&[(0, 9), (0, -1), (5, 7)]).await;
    let storage = server(move |request| {
        assert!(request.contains("authorization: SharedKey a:"), "{request}");
        let begin = format!("GET /a/azure-webjobs-eventhub/127.0.0.1:{port}/hub/$Default/");
        let partition = request.strip_prefix(&begin).unwrap_or_else(|| panic!("{request}")).split(' ').next();
        match partition {
            Some("0") => ServerAction::Answer(200, r#"{"SequenceNumber": 4, "Offset": "x"}"#.to_owned()),
            Some("2") => ServerAction::Answer(404, "<Error><Code>BlobNotFound</Code></Error>".to_owned()),
            other => panic!("{other:?}"),
        }
    })
    .await;
    let scaler = build(&hub_trigger(port, "hunter2", &storage)).unwrap();
    for _ in 0..3 {
        let reading = scaler.read("m").await.unwrap();
        assert_eq!((&*reading.values[0].value.canonical(), reading.active), ("8", true));
    }
    let mut few = hub_trigger(port, "hunter2", &storage);
    few.metadata.insert("unprocessedEventThreshold".to_owned(), "2".to_owned());
    few.metadata.insert("activationUnprocessedEventThreshold".to_owned(), "8".to_owned());
    let reading = read(&few).await.unwrap();
    // Two for each of the three partitions.
    assert_eq!((&*reading.values[0].value.canonical(), reading.active), ("6", false));
}

#[tokio::test]
async fn checkpoints_that_cannot_be_read_are_an_error() {
    let port = fake_event_hub(&[(0, 9)]).await;
    for (status, body, reported) in [
        (403, "<Error><Code>AuthenticationFailed</Code></Error>", "returned 403: AuthenticationFailed"),
        (404, "<Error><Code>ResourceNotFound</Code></Error>", "returned 404: ResourceNotFound"),
        (404, "", "returned 404"),
        (200, "{}", "the checkpoint has nothing instead of a sequence number"),
        (200, "<html>", "not JSON"),
    ] {
        let storage = server(move |_| ServerAction::Answer(status, body.to_owned())).await;
        let error = read(&hub_trigger(port, "hunter2", &storage)).await.unwrap_err().message;
        assert!(error.contains(reported), "{error}");
    }
}

#[tokio::test]
async fn wrong_keys_are_named_and_not_shown() {
    let port = fake_event_hub(&[(0, 9)]).await;
    let refused = read(&hub_trigger(port, "hunter3", "http://127.0.0.1:1")).await.unwrap_err();
    assert_eq!(refused.cause(), Some(&crate::SourceRefusal::Credentials));
    let error = refused.message;
    assert!(error.ends_with("Event Hubs refused the token: InvalidSignature (status 401)"), "{error}");
    assert!(!error.contains("hunter"), "{error}");
}

/// A token of the operator is sent to hosts of Azure only.
#[tokio::test]
async fn tokens_of_the_operator_stay_in_azure() {
    let mut given = trigger(
        "azure-eventhub",
        &[("eventHubName", "hub"), ("eventHubNamespace", "evil.example/#"), ("storageAccountName", "a")],
    );
    given.identity.provider = "azure-workload".to_owned();
    let error_of = async |given: &Trigger| {
        let answer = read_answered(given, |call| panic!("a request to {}", call.url));
        answer.await.unwrap_err().message
    };
    assert!(error_of(&given).await.contains("is not the name of a namespace"));
    given.metadata.extend(texts(&[("cloud", "Private"), ("endpointSuffix", "evil.example")]));
    let missing =
        "unable to get eventhub metadata: storageEndpointSuffix must be provided for Private cloud type";
    assert_eq!(error_of(&given).await, missing);
    given.metadata.insert("storageEndpointSuffix".to_owned(), "evil.example".to_owned());
    given.metadata.insert("eventHubNamespace".to_owned(), "ns".to_owned());
    assert!(error_of(&given).await.contains("in Azure's own clouds only"));
    let hub = query::workload_hub("ns", "hub", "AzureChinaCloud").unwrap();
    assert_eq!((&*hub.host, hub.port, hub.uses_tls), ("ns.servicebus.chinacloudapi.cn", 5671, true));
}

#[test]
fn connection_strings_and_signatures() {
    let text = "Endpoint=sb://ns.servicebus.windows.net/;SharedAccessKeyName=k;SharedAccessKey=hunter2;EntityPath=hub";
    let connection = HubConnection::parse(text, "other").unwrap();
    let HubAddress { host, port, uses_tls, namespace, name } = &connection.hub;
    assert_eq!((&**host, *port, *uses_tls), ("ns.servicebus.windows.net", 5671, true));
    assert_eq!((&**namespace, &**name), ("ns.servicebus.windows.net", "hub"));
    // Computed with Python.
    assert_eq!(
        connection.token(1_700_000_000).reveal(),
        "SharedAccessSignature sr=amqps%3a%2f%2fns.servicebus.windows.net%2fhub&sig=aG5tEci%2BAdRWa4yK8jM2U2XG7u%2FK3gmBG5RUxXdsDkQ%3D&se=1700000000&skn=k"
    );
    let signed = "Endpoint=sb://h/;SharedAccessSignature=SharedAccessSignature sr=x";
    let connection = HubConnection::parse(signed, "hub").unwrap();
    assert_eq!((&*connection.hub.name, connection.token(0).reveal()), ("hub", "SharedAccessSignature sr=x"));
    for wrong in [
        "hunter2",
        "Endpoint=sb://h/;SharedAccessKey=hunter2",
        "Endpoint=sb://h/hunter2;SharedAccessKeyName=k;SharedAccessKey=hunter2;EntityPath=hub",
        "Endpoint=sb://h/;SharedAccessKeyName=k;SharedAccessKey=hunter2",
        "Endpoint=sb://h:x/;SharedAccessKeyName=k;SharedAccessKey=hunter2;EntityPath=hub",
    ] {
        let error = HubConnection::parse(wrong, "").unwrap_err().message;
        assert!(!error.contains("hunter2"), "{wrong}: {error}");
    }
}

#[test]
fn checkpoints_of_all_strategies() {
    let hub = query::workload_hub("ns", "hub", "").unwrap();
    let path =
        |name, container| CheckpointStrategy::of(name, container).path(container, &hub, "$Default", "1");
    assert_eq!(
        path("azureFunction", "c"),
        "/azure-webjobs-eventhub/ns.servicebus.windows.net/hub/$Default/1"
    );
    assert_eq!(path("", ""), path("azureFunction", "c"));
    assert_eq!(path("blobMetadata", "c"), "/c/ns.servicebus.windows.net/hub/$default/checkpoint/1");
    assert_eq!(path("goSdk", "c"), "/c/1");
    assert_eq!(path("dapr", "c"), "/c/dapr-hub-$Default-1");
    assert_eq!(
        (path("", "c"), path("nonsense", "c")),
        ("/c/$Default/1".to_owned(), "/c/$Default/1".to_owned())
    );
    let number = |name, body: &str| {
        CheckpointStrategy::of(name, "c").number(200, &HeaderMap::new(), body.as_bytes()).unwrap()
    };
    assert_eq!(number("azureFunction", r#"{"SequenceNumber": 5}"#), Some(5));
    assert_eq!(number("goSdk", r#"{"checkpoint": {"sequenceNumber": 6}}"#), Some(6));
    assert_eq!(number("dapr", r#"{"checkpoint": {"sequenceNumber": 7}}"#), Some(7));
    assert_eq!(number("", r#"{"SequenceNumber": 8}"#), Some(8));
    assert_eq!(number("", r#"{"sequence_number": 9}"#), Some(9));
    assert_eq!(number("", r#"{"SequenceNumber": 0}"#), Some(0));
    let metadata = |value: &'static str| {
        let headers = HeaderMap::from_iter([(
            HeaderName::from_static("x-ms-meta-sequencenumber"),
            HeaderValue::from_static(value),
        )]);
        CheckpointStrategy::BlobMetadata.number(200, &headers, b"")
    };
    assert_eq!(metadata("10"), Ok(Some(10)));
    assert!(metadata("x").is_err());
    assert!(CheckpointStrategy::BlobMetadata.number(200, &HeaderMap::new(), b"").is_err());
}

#[test]
fn unprocessed_events_are_counted_as_in_keda() {
    let count = |first, last, checkpoint| {
        query::unprocessed(&PartitionInfo { id: String::new(), first, last }, checkpoint, 10_000)
    };
    assert_eq!(count(0, -1, None), 0);
    assert_eq!((count(0, 0, None), count(5, 5, None), count(5, 7, None)), (1, 0, 3));
    assert_eq!((count(0, 9, Some(4)), count(0, 9, Some(9))), (5, 0));
    // The checkpoint is a little ahead of the state that the hub reports.
    assert_eq!(count(0, 9, Some(12)), 0);
    // The numbers have started over.
    assert_eq!(count(0, 9, Some(i64::MAX - 15)), 24);
    assert_eq!((query::served(8, 3, 64), query::served(8, 3, 2), query::served(6, 3, 2)), (8, 6, 6));
}

#[test]
fn values_are_read_as_they_are_written() {
    let value = AmqpValue::Map(vec![
        (
            AmqpValue::text("a"),
            AmqpValue::List(vec![AmqpValue::Null, AmqpValue::Bool(true), AmqpValue::Uint(7)]),
        ),
        (AmqpValue::Symbol("b".to_owned()), AmqpValue::described(0x24, vec![AmqpValue::Number(-3)])),
        (AmqpValue::Ubyte(1), AmqpValue::Binary(vec![1, 2])),
    ]);
    let mut bytes = Vec::new();
    value.encode(&mut bytes);
    assert_eq!(AmqpValue::decode(&mut &*bytes), Ok(value));
    // An array of two symbols, a small list of small numbers, and a timestamp.
    let array = [0xe0, 7, 2, 0xa3, 1, b'x', 2, b'y', b'z'];
    let symbols = ["x", "yz"].map(|name| AmqpValue::Symbol(name.to_owned()));
    assert_eq!(AmqpValue::decode(&mut &array[..]), Ok(AmqpValue::List(symbols.to_vec())));
    let list = [0xc0, 7, 3, 0x43, 0x53, 200, 0x55, 0xff, 0x44];
    let numbers = AmqpValue::List(vec![AmqpValue::Uint(0), AmqpValue::Number(200), AmqpValue::Number(-1)]);
    assert_eq!(AmqpValue::decode(&mut &list[..]), Ok(numbers));
    // Arrays in arrays, and an array of many elements without bytes.
    let deep: Vec<u8> = (0..60_u8).flat_map(|n| [0xe0, 3 * (60 - n) - 2, 1]).collect();
    assert!(AmqpValue::decode(&mut &*deep).is_err());
    assert!(AmqpValue::decode(&mut &[0xf0, 0, 0, 0, 5, 0xff, 0xff, 0xff, 0xff, 0x40][..]).is_err());
}

proptest::proptest! {
    #[test]
    fn any_bytes_are_a_frame_or_refused(bytes: Vec<u8>) {
        let _ = amqp::frame(&bytes);
        let _ = amqp::reply(&bytes);
    }
}
