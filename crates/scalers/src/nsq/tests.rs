use super::query::{depth, producers};
use crate::test_support::{ServerAction, read, server, trigger};

#[test]
fn producers_of_topic() {
    let found = |status, body: &str| producers(status, body.as_bytes());
    let two = r#"{"channels":["c"],"producers":[
        {"broadcast_address":"nsqd-0","http_port":4151},{"broadcast_address":"::1","http_port":4151}]}"#;
    assert_eq!(found(200, two).unwrap().into_iter().collect::<Vec<_>>(), ["[::1]:4151", "nsqd-0:4151"]);
    assert_eq!(found(200, r#"{"status_code":200,"data":{"producers":[]}}"#).unwrap().len(), 0);
    assert_eq!(found(404, r#"{"message":"TOPIC_NOT_FOUND"}"#).unwrap().len(), 0);
    for (status, bad, why) in [
        (404, "<html>", "returned 404"),
        (500, r#"{"message":"TOPIC_NOT_FOUND"}"#, "returned 500"),
        (200, r#"{"producers":null}"#, "null at producers"),
        (200, r#"{"producers":[{"http_port":1}]}"#, "without broadcast_address"),
        (
            200,
            r#"{"producers":[{"broadcast_address":"h","http_port":70000}]}"#,
            "without broadcast_address or http_port",
        ),
    ] {
        let error = found(status, bad).unwrap_err().message;
        assert!(error.contains(why), "{bad}: {error}");
    }
}

#[test]
fn depth_of_channel() {
    let of = |topic: &str| depth(200, format!(r#"{{"topics":[{topic}]}}"#).as_bytes(), "t", "c");
    let channel =
        |rest: &str| format!(r#"{{"topic_name":"t","depth":3,"channels":[{{"channel_name":"c",{rest}}}]}}"#);
    assert_eq!(of(&channel(r#""depth":7,"paused":false"#)), Ok(7));
    assert_eq!(of(&channel(r#""depth":7,"paused":true"#)), Ok(0));
    assert_eq!(of(r#"{"topic_name":"t","depth":3,"channels":[]}"#), Ok(3));
    assert_eq!(of(r#"{"topic_name":"other","depth":3,"channels":[]}"#), Ok(0));
    assert!(of(&channel(r#""depth":"7""#)).is_err());
    assert!(of(&channel(r#""depth":-1"#)).is_err());
    assert!(of(r#"{"topic_name":"t","depth":3}"#).is_err());
    assert!(depth(200, b"<html>", "t", "c").is_err());
    assert!(depth(503, br#"{"topics":[]}"#, "t", "c").is_err());
}

#[tokio::test]
async fn sums_depth_of_distinct_nsqd() {
    let nsqd = server(|head| {
        assert!(
            head.starts_with("GET /stats?format=json&include_clients=false&include_mem=false&topic=t "),
            "{head}"
        );
        ServerAction::Answer(
            200,
            r#"{"topics":[{"topic_name":"t","depth":1,"channels":[{"channel_name":"c","depth":4}]}]}"#.into(),
        )
    })
    .await;
    let port = nsqd.rsplit_once(':').unwrap().1.to_owned();
    let lookupd = server(move |head| {
        assert!(head.starts_with("GET /lookup?topic=t "), "{head}");
        ServerAction::Answer(
            200,
            format!(r#"{{"producers":[{{"broadcast_address":"127.0.0.1","http_port":{port}}}]}}"#),
        )
    })
    .await;
    let host = lookupd.strip_prefix("http://").unwrap();
    let both = format!("{host}, {host}");
    let mut trigger = trigger("nsq", &[("nsqLookupdHTTPAddresses", &both), ("topic", "t"), ("channel", "c")]);
    assert_eq!(read(&trigger).await.unwrap().values.first().unwrap().value.canonical(), "4");
    // The sum is unknown if one nsqlookupd does not respond.
    trigger.metadata.insert("nsqLookupdHTTPAddresses".into(), format!("{host},127.0.0.1:1"));
    assert!(read(&trigger).await.unwrap_err().message.contains("refused"));
}

#[tokio::test]
async fn number_of_servers_that_a_source_names_is_limited() {
    let lookupd = server(|head| {
        assert!(head.starts_with("GET /lookup?topic=t "), "{head}");
        let producer = |port: u32| format!(r#"{{"broadcast_address":"127.0.0.1","http_port":{port}}}"#);
        let producers: Vec<String> = (1..=1001).map(producer).collect();
        ServerAction::Answer(200, format!(r#"{{"producers":[{}]}}"#, producers.join(",")))
    })
    .await;
    let host = lookupd.strip_prefix("http://").unwrap();
    let trigger = trigger("nsq", &[("nsqLookupdHTTPAddresses", host), ("topic", "t"), ("channel", "c")]);
    let error = read(&trigger).await.unwrap_err().message;
    assert!(error.contains("1001 servers"), "{error}");
}
