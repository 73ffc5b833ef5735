use std::sync::atomic::{AtomicUsize, Ordering};

use api::provider::Compat;
use serde_json::json;

use super::query;
use super::*;
use crate::test_support::{self, ServerAction};
use crate::web::HttpSettings;

fn scaler(metadata: &[(&str, &str)], auth: &[(&str, &str)]) -> Result<Arc<dyn Scaler>, ScalerError> {
    let mut trigger = Trigger { http_timeout: Duration::from_secs(2), ..Trigger::default() };
    trigger.metadata.extend(metadata.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())));
    trigger.auth.extend(auth.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())));
    (TYPE.build)(&trigger, &Backends::without_cluster(HttpSettings::allowing_loopback(), Compat::Better))
}

async fn value(metadata: &[(&str, &str)], auth: &[(&str, &str)]) -> Result<(String, bool), String> {
    let scaler = scaler(metadata, auth).map_err(|error| error.message)?;
    let reading = scaler.read("s0-q").await.map_err(|error| error.message)?;
    Ok((reading.values.first().unwrap().value.to_string(), reading.active))
}

fn about(messages: u32, ready: u32, publish: f64, deliver: f64) -> String {
    json!({
        "name": "q", "messages": messages, "messages_ready": ready,
        "message_stats": {"publish_details": {"rate": publish}, "deliver_get_details": {"rate": deliver}},
    })
    .to_string()
}

#[test]
fn modes_match_keda() {
    let queue = |messages, published, delivered| Queue { messages, published, delivered };
    assert_eq!(Mode::QueueLength.measure(&queue(5.0, 0.0, 0.0), 5.0), (5.0, false));
    assert_eq!(Mode::QueueLength.measure(&queue(6.0, 0.0, 0.0), 5.0), (6.0, true));
    assert_eq!(Mode::MessageRate.measure(&queue(6.0, 1.0, 0.0), 5.0), (1.0, true));
    assert_eq!(Mode::MessageRate.measure(&queue(5.0, 1.0, 0.0), 5.0), (1.0, false));
    assert_eq!(Mode::DeliverGetRate.measure(&queue(9.0, 9.0, 2.0), 1.5), (2.0, true));
    let ratio = Mode::PublishedToDeliveredRatio;
    assert_eq!(ratio.measure(&queue(0.0, 3.0, 2.0), 1.5), (1.5, false));
    assert_eq!(ratio.measure(&queue(0.0, 3.0, 0.0), 1.5), (1.5, true));
    assert_eq!(ratio.measure(&queue(9.0, 0.0, 0.0), 1.5), (0.0, false));
    let time = Mode::ExpectedQueueConsumptionTime;
    assert_eq!(time.measure(&queue(10.0, 4.0, 2.0), 5.0), (6.0, true));
    assert_eq!(time.measure(&queue(0.0, 0.0, 0.0), 5.0), (5.0, true));
}

#[test]
fn queues_are_aggregated() {
    let queues =
        [1.0, 5.0].map(|number| Queue { messages: number, published: 2.0 * number, delivered: number });
    let merged = |name| Operation::parse(name).unwrap().merge(&queues).messages;
    assert_eq!((merged("sum"), merged("avg"), merged("max")), (6.0, 3.0, 5.0));
    assert_eq!(Operation::Average.merge(&[]), Queue::default());
    assert!(Operation::parse("median").is_err());
}

#[test]
fn last_path_segment_is_virtual_host() {
    let url = |host: &str, virtual_host: &str| {
        query::url(&query::address(host).unwrap(), virtual_host, "a/b c", None)
    };
    assert_eq!(url("http://u:p@r:15672/vh", ""), "http://r:15672/api/queues/vh/a%2Fb%20c");
    assert_eq!(url("https://r/proxy/vh%2Fx", ""), "https://r/proxy/api/queues/vh%2Fx/a%2Fb%20c");
    for root in ["http://r", "http://r/", "http://r?x=1"] {
        assert_eq!(url(root, ""), "http://r/api/queues/%2F/a%2Fb%20c");
    }
    assert_eq!(url("http://r/vh", "other vh"), "http://r/api/queues/other%20vh/a%2Fb%20c");
    assert_eq!(url("http://r/vh", "/"), "http://r/api/queues/%2F/a%2Fb%20c");
    let pattern = query::url(&query::address("http://r/vh").unwrap(), "", "^q.*$", Some(50));
    assert_eq!(
        pattern,
        "http://r/api/queues/vh?page=1&use_regex=true&pagination=false&name=%5Eq.%2A%24&page_size=50"
    );
}

#[test]
fn addresses_are_parsed() {
    let address = query::address("amqps://us%40er:p%2Fw@[::1]:7/v%2Fh").unwrap();
    assert_eq!(address.user, Some(("us@er".to_owned(), "p/w".to_owned())));
    assert_eq!(address.host_and_port().unwrap(), ("::1".to_owned(), 7));
    assert_eq!(address.virtual_host(), "v/h");
    let plain = query::address("amqp://r").unwrap();
    assert_eq!(
        (plain.host_and_port().unwrap(), plain.virtual_host()),
        (("r".to_owned(), 5672), "/".to_owned())
    );
    assert_eq!(query::address("amqps://r").unwrap().host_and_port().unwrap().1, 5671);
    for bad in ["", "r:5672", "amqp://", "amqp:///vh", "http://%zz", "amqp://r:port"] {
        assert!(query::address(bad).is_err(), "{bad}");
    }
}

#[test]
fn schemes_are_parsed_as_in_go() {
    for (text, scheme) in
        [("AMQP://r", "AMQP"), ("r:5672", "r"), ("", ""), ("with space", ""), ("x,y;z=w", "")]
    {
        assert_eq!(query::scheme(text).unwrap(), scheme, "{text}");
    }
    for bad in ["http://%zz", "a/b.c:d%e(f)g", ":x", "1a:b", "http://a b/", "http://h:p", "a\nb"] {
        assert!(query::scheme(bad).is_err(), "{bad}");
    }
}

#[tokio::test]
async fn management_api_is_read_with_credentials() {
    let host = test_support::server(|requested| {
        // u:p
        assert!(requested.to_ascii_lowercase().contains("authorization: basic dtpw"), "{requested}");
        if requested.starts_with("GET /api/queues/%2F/q ") {
            ServerAction::Answer(200, about(7, 3, 1.5, 0.0))
        } else {
            ServerAction::Answer(404, "{\"error\":\"Object Not Found\"}".into())
        }
    })
    .await;
    let with_user = host.replace("http://", "http://u:p@");
    let requested = async |more: &[(&str, &str)], auth: &[(&str, &str)]| {
        let host = if auth.is_empty() { &with_user } else { &host };
        let given = [&[("host", &**host), ("queueName", "q")], more].concat();
        value(&given, auth).await
    };
    let user = [("username", "u"), ("password", "p")];
    assert_eq!(requested(&[], &[]).await, Ok(("7".into(), true)));
    assert_eq!(requested(&[], &user).await, Ok(("7".into(), true)));
    assert_eq!(requested(&[("excludeUnacknowledged", "true")], &[]).await, Ok(("3".into(), true)));
    assert_eq!(requested(&[("mode", "MessageRate"), ("value", "1")], &[]).await, Ok(("1.500".into(), true)));
    assert_eq!(requested(&[("activationValue", "7")], &[]).await, Ok(("7".into(), false)));
    let error = value(&[("host", &with_user), ("queueName", "gone")], &[]).await.unwrap_err();
    assert!(error.starts_with("error inspecting RabbitMQ: "), "{error}");
    assert!(error.contains("404") && error.contains("Object Not Found") && !error.contains("u:p"), "{error}");
    let error = requested(&[("operation", "median")], &[]).await.unwrap_err();
    assert_eq!(error, "error inspecting RabbitMQ: operation mode median must be one of sum, avg or max");
}

#[tokio::test]
async fn patterns_match_many_or_no_queues() {
    let host = test_support::server(|requested| {
        let items = if requested.contains("name=none") {
            vec![]
        } else {
            vec![about(1, 1, 0.0, 0.0), about(5, 5, 0.0, 0.0)]
        };
        let pages = if requested.contains("name=many") { 2 } else { 1 };
        ServerAction::Answer(200, format!("{{\"items\":[{}],\"page_count\":{pages}}}", items.join(",")))
    })
    .await;
    let requested = async |queue: &str, operation: &str| {
        value(&[("host", &host), ("queueName", queue), ("useRegex", "true"), ("operation", operation)], &[])
            .await
    };
    assert_eq!(requested("q.*", "sum").await, Ok(("6".into(), true)));
    assert_eq!(requested("q.*", "max").await, Ok(("5".into(), true)));
    assert_eq!(requested("none", "avg").await, Ok(("0".into(), false)));
    let error = requested("many", "sum").await.unwrap_err();
    assert!(error.ends_with("regex matches more queues than can be recovered at once"), "{error}");
}

#[test]
fn other_json_is_not_an_empty_page() {
    for body in ["{}", r#"{"error": "not_authorised"}"#, r#"{"items": null}"#, "[]", "7"] {
        assert!(query::queues(body.as_bytes(), true, false, false).is_err(), "{body}");
    }
    assert_eq!(query::queues(br#"{"items": []}"#, true, false, false), Ok(Vec::new()));
    assert_eq!(query::queues(b"{}", true, false, true), Ok(Vec::new()), "as KEDA has it");
}

#[tokio::test]
async fn hanging_or_broken_servers_are_errors() {
    let hangs = test_support::server(|_| ServerAction::Hang).await;
    let nonsense = test_support::server(|_| ServerAction::Answer(200, "<html>".into())).await;
    let young = test_support::server(|_| ServerAction::Answer(200, "{\"name\":\"q\"}".into())).await;
    for (host, words) in [
        (&*hangs, "timed out"),
        (&*nonsense, "not a response of the management API"),
        (&*young, "does not know yet how long queue q is"),
        ("http://127.0.0.1:1", "connection refused"),
    ] {
        let error = value(&[("host", host), ("queueName", "q")], &[]).await.unwrap_err();
        assert!(error.starts_with("error inspecting RabbitMQ: ") && error.contains(words), "{error}");
    }
    let error =
        value(&[("host", "amqp://r"), ("protocol", "http"), ("queueName", "q")], &[]).await.unwrap_err();
    assert!(error.ends_with("scheme amqp is not supported over HTTP"), "{error}");
}

#[tokio::test]
async fn tokens_are_requested_once_and_sent() {
    let requested = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&requested);
    let host = test_support::server(move |head| {
        if head.starts_with("POST /token") {
            count.fetch_add(1, Ordering::SeqCst);
            assert!(head.contains("grant_type=client_credentials&scope=a+b&audience=x"), "{head}");
            ServerAction::Answer(200, "{\"access_token\":\"t0k\",\"expires_in\":3600}".into())
        } else {
            assert!(head.to_ascii_lowercase().contains("authorization: bearer t0k"), "{head}");
            ServerAction::Answer(200, about(2, 2, 0.0, 0.0))
        }
    })
    .await;
    let token = format!("{host}/token");
    let auth = [
        ("oauthTokenURI", &*token),
        ("clientID", "c"),
        ("clientSecret", "s"),
        ("scopes", "a,b"),
        ("endpointParams", "audience=x"),
    ];
    let scaler = scaler(&[("host", &host), ("queueName", "q")], &auth).unwrap();
    for _ in 0..2 {
        assert!(scaler.read("s0-q").await.unwrap().active);
    }
    assert_eq!(requested.load(Ordering::SeqCst), 1);
}
