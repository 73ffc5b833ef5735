use api::provider::Compat;

use super::query::{SolaceQueue, check_vpn, queue, url, vpn_url};
use crate::backends::Backends;
use crate::table;
use crate::test_support::{ServerAction, build, server, texts, trigger};
use crate::web::HttpSettings;

const VALID_QUEUE: &str =
    r#"{"collections":{"msgs":{"count":5}},"data":{"msgSpoolUsage":2097152,"averageRxMsgRate":3},"meta":{}}"#;

#[test]
fn url_has_escaped_names() {
    let expected =
        "http://s/SEMP/v2/monitor/msgVpns/v%2F1/queues/a%2Fb%20c?select=msgs,msgSpoolUsage,averageRxMsgRate";
    assert_eq!(url("http://s/", "v/1", "a/b c"), expected);
    assert_eq!(vpn_url("http://s/", "v/1"), "http://s/SEMP/v2/monitor/msgVpns/v%2F1?select=state");
}

#[test]
fn responses_are_decoded_or_refused() {
    assert_eq!(
        queue(200, VALID_QUEUE.as_bytes()),
        Ok(SolaceQueue { messages: 5.0, spool: 2_097_152.0, rate: 3.0 })
    );
    for (status, bad, why) in [
        (
            200,
            r#"{"collections":{},"data":{"msgSpoolUsage":1,"averageRxMsgRate":3}}"#,
            "collections.msgs.count",
        ),
        (
            200,
            r#"{"collections":{"msgs":{"count":5}},"data":{"msgSpoolUsage":"1","averageRxMsgRate":3}}"#,
            "a string at",
        ),
        (200, r#"{"collections":{"msgs":{"count":5}},"data":null}"#, "nothing at data.msgSpoolUsage"),
        (200, "<html>", "not JSON"),
        (
            400,
            r#"{"meta":{"error":{"description":"Could not find match for queue"}}}"#,
            "Could not find match",
        ),
    ] {
        let error = queue(status, bad.as_bytes()).unwrap_err().message;
        assert!(error.contains(why), "{bad}: {error}");
    }
}

#[test]
fn states_of_a_message_vpn() {
    assert_eq!(check_vpn(200, br#"{"data":{"state":"up"}}"#), Ok(()));
    for (bad, why) in [
        (r#"{"data":{"state":"standby"}}"#, "is not up (standby)"),
        (r#"{"data":{}}"#, "nothing at data.state"),
        ("<html>", "not JSON"),
    ] {
        let error = check_vpn(200, bad.as_bytes()).unwrap_err().message;
        assert!(error.contains(why), "{bad}: {error}");
    }
    assert!(check_vpn(401, b"").unwrap_err().message.contains("returned 401"));
}

#[tokio::test]
async fn request_goes_to_the_broker_whose_message_vpn_is_up() {
    let broker = |state: &'static str| {
        server(move |head| {
            let is_state_request = head.contains("/msgVpns/v?select=state ");
            let state = format!(r#"{{"data":{{"state":"{state}"}}}}"#);
            ServerAction::Answer(200, if is_state_request { state } else { VALID_QUEUE.to_owned() })
        })
    };
    let (standby, up) = (broker("standby").await, broker("up").await);
    let (both, none) = (format!("{standby}, {up}"), format!("{standby},{standby}"));
    let read = async |urls: &str| {
        let metadata = [
            ("solaceSempBaseURL", urls),
            ("messageVpn", "v"),
            ("queueName", "q"),
            ("messageCountTarget", "10"),
        ];
        let mut trigger = trigger("solace-event-queue", &metadata);
        trigger.auth = texts(&[("username", "u"), ("password", "p")]);
        let scaler = build(&trigger).unwrap();
        // The second time it begins with the broker that answered.
        let _ = scaler.read("s0-solace-q-msgcount").await;
        scaler.read("s0-solace-q-msgcount").await
    };
    assert_eq!(read(&both).await.unwrap().values.first().unwrap().value.canonical(), "5");
    let error = format!("{standby}: the message VPN is not up (standby)");
    let one = read(&standby).await.unwrap_err().message;
    assert!(one.ends_with(&error), "{one}");
    let two = read(&none).await.unwrap_err().message;
    assert!(two.ends_with(&format!("{error}, and at the next broker: {error}")), "{two}");
}

#[tokio::test]
async fn three_metrics_share_one_response() {
    let url = server(|head| {
        assert!(head.contains("authorization: Basic dTpw\r\n"), "{head}");
        if head.starts_with("GET /SEMP/v2/monitor/msgVpns/v?select=state ") {
            return ServerAction::Answer(200, r#"{"data":{"state":"up"}}"#.to_owned());
        }
        assert!(head.starts_with("GET /SEMP/v2/monitor/msgVpns/v/queues/q?select="), "{head}");
        ServerAction::Answer(200, VALID_QUEUE.to_owned())
    })
    .await;
    let mut trigger = trigger(
        "solace-event-queue",
        &[
            ("solaceSempBaseURL", &url),
            ("messageVpn", "v"),
            ("queueName", "q"),
            ("messageCountTarget", "10"),
            ("messageSpoolUsageTarget", "2"),
            ("messageReceiveRateTarget", "1"),
        ],
    );
    trigger.auth = texts(&[("username", "u"), ("password", "p")]);
    let scaler = build(&trigger).unwrap();
    for (name, value) in [
        ("s0-solace-q-msgcount", "5"),
        ("S0-SOLACE-q-msgspoolusage", "2097152"),
        ("s0-solace-q-msgrcvrate", "3"),
    ] {
        let reading = scaler.read(name).await.unwrap();
        assert_eq!(reading.values.first().unwrap().value.canonical(), value);
        assert!(reading.active);
    }
    assert!(scaler.read("s0-solace-q-other").await.is_err());
    // No value is above its activation.
    for (key, value) in [
        ("activationMessageCountTarget", "5"),
        ("activationMessageSpoolUsageTarget", "2"),
        ("activationMessageReceiveRateTarget", "3"),
    ] {
        trigger.metadata.insert(key.into(), value.into());
    }
    assert!(!build(&trigger).unwrap().read("s0-solace-q-msgcount").await.unwrap().active);
}

/// 9007199254740993 is 2^53 + 1: a megabyte remains of as many megabytes in 64 bits.
#[tokio::test]
async fn spool_target_overflows_only_with_compat_strict() {
    let metadata = [
        ("solaceSempBaseURL", "http://s"),
        ("messageVpn", "v"),
        ("queueName", "q"),
        ("messageSpoolUsageTarget", "9007199254740993"),
    ];
    let mut trigger = trigger("solace-event-queue", &metadata);
    trigger.auth = texts(&[("username", "u"), ("password", "p")]);
    for (compat, expected) in [(Compat::Strict, "1048576"), (Compat::Better, "9223372036854775807")] {
        let backends = Backends::without_cluster(HttpSettings::allowing_loopback(), compat);
        let specs = table::build(&trigger, &backends).unwrap().specs().await.unwrap();
        let target = specs.first().and_then(|spec| spec.external.as_ref()?.target.average_value.clone());
        assert_eq!(target.map(|target| target.canonical()).as_deref(), Some(expected), "{compat:?}");
    }
}
