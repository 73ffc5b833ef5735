use super::query::{connection, entities, entity};
use super::{operated, query};
use crate::test_support::{ServerAction, build, read, server, texts, trigger};

fn entry(name: &str, active: &str) -> String {
    format!(
        r#"<entry xml:base="https://x"><id>i</id><title type="text">{name}</title><content type="application/xml">
        <QueueDescription xmlns="y"><MessageCount>9</MessageCount><CountDetails xmlns:d2p1="z">
        <d2p1:ActiveMessageCount>{active}</d2p1:ActiveMessageCount><d2p1:DeadLetterMessageCount>1</d2p1:DeadLetterMessageCount>
        </CountDetails></QueueDescription></content></entry>"#
    )
}

fn feed(entries: &[String]) -> String {
    format!(
        r#"<?xml version="1.0"?><feed xmlns="http://www.w3.org/2005/Atom"><title type="text">Queues</title>{}</feed>"#,
        entries.concat()
    )
}

#[test]
fn connections() {
    let found = connection(
        "Endpoint=sb://ns.servicebus.windows.net/;SharedAccessKeyName=n;SharedAccessKey=k=;EntityPath=q",
    );
    let found = found.unwrap();
    assert_eq!(found.server, "https://ns.servicebus.windows.net");
    assert!(!format!("{found:?}").contains("k="));
    assert_eq!(found.queue("a/b c"), "https://ns.servicebus.windows.net/a/b%20c?api-version=2021-05");
    let signature = found.authorization(1_700_000_000);
    let resource = "https%3a%2f%2fns.servicebus.windows.net%2f";
    assert!(signature.starts_with(&format!("SharedAccessSignature sr={resource}&sig=")), "{signature}");
    assert!(signature.ends_with("&se=1700000000&skn=n"), "{signature}");
    let given =
        connection("Endpoint=sb://x/;SharedAccessSignature=SharedAccessSignature sr=a&sig=b").unwrap();
    assert_eq!(given.authorization(1), "SharedAccessSignature sr=a&sig=b");
    for bad in [
        "",
        "c",
        "Endpoint=sb://x/",
        "SharedAccessKeyName=n;SharedAccessKey=secret",
        "Endpoint=;SharedAccessKeyName=n;SharedAccessKey=secret",
    ] {
        let error = connection(bad).unwrap_err().message;
        assert!(!error.contains("secret"), "{error}");
    }
}

/// Computed with OpenSSL: `printf 'https%3a%2f%2fx%2f\n1700000000' | openssl dgst -sha256 -hmac key -binary | base64`.
#[test]
fn signatures() {
    let found = connection("Endpoint=sb://x/;SharedAccessKeyName=n;SharedAccessKey=key").unwrap();
    let signature = found.authorization(1_700_000_000);
    assert!(signature.contains("&sig=3ikC59zxO03LPc8dZiQd%2FIShAJOVX0BYIVvTN64SXnE%3D&"), "{signature}");
}

#[test]
fn feeds() {
    let names = |xml: &str| {
        entities(200, xml.as_bytes())
            .map(|all| all.into_iter().map(|one| (one.name, one.active)).collect::<Vec<_>>())
    };
    assert_eq!(names(&feed(&[])), Ok(vec![]));
    let two = feed(&[entry("a&amp;b", "3"), entry("c", "0")]);
    assert_eq!(names(&two), Ok(vec![("a&b".to_owned(), 3), ("c".to_owned(), 0)]));
    assert_eq!(entity(200, entry("q", "7").as_bytes()).unwrap().active, 7);
    assert!(entity(200, feed(&[]).as_bytes()).unwrap_err().message.contains("no such"));
    assert!(entity(200, two.as_bytes()).unwrap_err().message.contains("several"));
    for (status, bad, why) in [
        (200, entry("q", ""), "no ActiveMessageCount"),
        (200, entry("q", "-1"), "no ActiveMessageCount"),
        (200, entry("q", "x"), "no ActiveMessageCount"),
        (200, "<entry><x/></entry>".to_owned(), "no title"),
        (200, "<html></html>".to_owned(), "not a feed"),
        (200, "{}".to_owned(), "not a feed"),
        (200, String::new(), "not a feed"),
        (200, "<".repeat(100_000), "not a feed"),
        (
            401,
            "<Error><Code>401</Code><Detail>MalformedToken</Detail></Error>".to_owned(),
            "401: MalformedToken",
        ),
    ] {
        let error = entity(status, bad.as_bytes()).unwrap_err().message;
        assert!(error.contains(why), "{why}: {error}");
    }
    assert!(entities(200, &[b'<', 0xff]).is_err());
    let error = entity(200, entry(&"secret".repeat(250), "x").as_bytes()).unwrap_err().message;
    assert!(!error.contains("secret") && error.ends_with("bytes, not shown)"), "{error}");
}

#[test]
fn operations() {
    for (operation, value) in [("sum", 6), ("max", 4), ("avg", 2)] {
        assert_eq!(operated(operation, &[1, 1, 4]), value);
        assert_eq!(operated(operation, &[]), 0);
    }
    assert_eq!(operated("sum", &[u64::MAX, 1]), u64::MAX);
}

fn local(url: &str) -> String {
    let host = url.strip_prefix("http://").unwrap();
    format!("Endpoint=sb://{host};SharedAccessKeyName=n;SharedAccessKey=k;UseDevelopmentEmulator=true")
}

#[tokio::test]
async fn reads_queue_and_subscription() {
    let url = server(|head| {
        assert!(head.contains("authorization: SharedAccessSignature sr=http%3a%2f%2f127.0.0.1%3a"), "{head}");
        if head.starts_with("GET /q?api-version=2021-05 ") {
            return ServerAction::Answer(200, entry("q", "3"));
        }
        assert!(head.starts_with("GET /t/subscriptions/s?api-version=2021-05 "), "{head}");
        ServerAction::Answer(200, entry("s", "4"))
    })
    .await;
    let mut queue = trigger("azure-servicebus", &[("queueName", "q")]);
    queue.auth = texts(&[("connection", &local(&url))]);
    assert_eq!(read(&queue).await.unwrap().values.first().unwrap().value.canonical(), "3");
    let mut topic = trigger("azure-servicebus", &[("topicName", "t"), ("subscriptionName", "s")]);
    topic.auth = queue.auth;
    assert_eq!(read(&topic).await.unwrap().values.first().unwrap().value.canonical(), "4");
}

#[tokio::test]
async fn all_pages_are_read() {
    let url = server(|head| {
        let page = |from: usize, to: usize| {
            feed(&(from..to).map(|number| entry(&format!("q{number}"), "1")).collect::<Vec<_>>())
        };
        ServerAction::Answer(
            200,
            match head {
                _ if head.starts_with("GET /$Resources/queues?$skip=0&$top=100&") => page(0, 100),
                _ => page(100, 130),
            },
        )
    })
    .await;
    let mut trigger = trigger("azure-servicebus", &[("queueName", "q1.*"), ("useRegex", "true")]);
    trigger.auth = texts(&[("connection", &local(&url))]);
    // q1, q10 to q19, q100 to q129.
    assert_eq!(read(&trigger).await.unwrap().values.first().unwrap().value.canonical(), "41");
    // The whole name must match.
    trigger.metadata.insert("queueName".into(), "1|q2".into());
    assert_eq!(read(&trigger).await.unwrap().values.first().unwrap().value.canonical(), "1");
}

#[test]
fn long_patterns_are_refused() {
    let name = r"\w".repeat(513);
    for (parameter, metadata) in [("queueName", vec![]), ("subscriptionName", vec![("topicName", "t")])] {
        let mut trigger = trigger("azure-servicebus", &[(parameter, &name), ("useRegex", "true")]);
        trigger.metadata.extend(texts(&metadata));
        trigger.auth = texts(&[("connection", "Endpoint=sb://x/;SharedAccessSignature=s")]);
        let error = build(&trigger).err().unwrap().message;
        let why = format!("{parameter} has more than 1024 bytes, the maximum of a pattern");
        assert!(error.ends_with(&why), "{error}");
    }
}

#[tokio::test]
async fn pod_identity_names_what_is_missing() {
    let mut trigger = trigger("azure-servicebus", &[("queueName", "q"), ("namespace", "n")]);
    trigger.identity.provider = "azure-workload".into();
    let error = read(&trigger).await.unwrap_err().message;
    assert!(
        error.contains("azure-workload cannot be used: the operator's pod has no federated token"),
        "{error}"
    );
    // A token of the operator is sent to Azure's hosts only.
    trigger.metadata.insert("cloud".into(), "Private".into());
    trigger.metadata.insert("endpointSuffix".into(), "evil.example".into());
    let error = read(&trigger).await.unwrap_err().message;
    assert!(error.contains("in Azure's own clouds only"), "{error}");
}

#[test]
fn hosts_of_namespaces() {
    let host = |namespace, cloud| query::workload_host(namespace, cloud).map_err(|error| error.message);
    assert_eq!(host("shop", ""), Ok("shop.servicebus.windows.net".to_owned()));
    assert_eq!(host("shop.servicebus.windows.net", ""), Ok("shop.servicebus.windows.net".to_owned()));
    assert_eq!(host("shop", "AzureChinaCloud"), Ok("shop.servicebus.chinacloudapi.cn".to_owned()));
    assert_eq!(host("shop", "AzureUSGovernment"), Ok("shop.servicebus.usgovcloudapi.net".to_owned()));
    assert!(host("evil.example/#", "").is_err());
    let connection = query::bearer("h", &crate::parameters::Secret::new("t"));
    assert_eq!(
        (&*connection.queue("q"), &*connection.authorization(0)),
        ("https://h/q?api-version=2021-05", "Bearer t")
    );
}
