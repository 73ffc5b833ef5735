use super::query::{ClientRates, Requested, add, is_base_url, request_body, url};
use crate::ScalerError;
use crate::test_support::{ServerAction, build, server, texts, trigger};

/// A reply with two clients of VPN `v` and one of another.
fn reply(more: &str) -> String {
    let client = |vpn: &str, n: u32| {
        format!(
            "<client><name>c{n}</name><message-vpn>{vpn}</message-vpn><stats>\
             <current-egress-rate-per-second>{n}</current-egress-rate-per-second>\
             <average-egress-rate-per-minute>{n}0</average-egress-rate-per-minute>\
             <current-egress-byte-rate-per-second>{n}00</current-egress-byte-rate-per-second>\
             <average-egress-byte-rate-per-minute>{n}000</average-egress-byte-rate-per-minute></stats>\
             <client-queue><queue-priority>G-1</queue-priority><length-msgs>7</length-msgs>\
             <length-work>7</length-work></client-queue>\
             <client-queue><queue-priority>D-1</queue-priority><length-msgs>{n}</length-msgs>\
             <length-work>{n}</length-work></client-queue></client>"
        )
    };
    let clients = [client("v", 1), client("other", 5), client("v", 2)].concat();
    format!(
        "<rpc-reply semp-version=\"soltr/10_4\"><rpc><show><client><primary-virtual-router>{clients}\
         </primary-virtual-router></client></show></rpc>{more}<execute-result code=\"ok\"/></rpc-reply>"
    )
}

fn added(status: u16, body: &str, what: Requested) -> Result<(ClientRates, Option<String>), ScalerError> {
    let mut rates = ClientRates::default();
    let next = add(status, body.as_bytes(), (what, "v"), &mut rates)?;
    Ok((rates, next))
}

#[test]
fn requests_have_url_and_body() {
    assert_eq!(url("http://s:8080/"), "http://s:8080/SEMP");
    assert_eq!(
        request_body("a<b&c", Requested::Rates),
        "<rpc><show><client><name>*a&lt;b&amp;c*</name><stats/></client></show></rpc>"
    );
    assert!(request_body("a", Requested::Queues).contains("<stats/><queues/></client>"));
    for good in ["http://ab", "https://s.example:8080/x", "see http://ab"] {
        assert!(is_base_url(good), "{good}");
    }
    for bad in ["", "http://", "http://a", "ftp://ab", "http://[::1]:80"] {
        assert!(!is_base_url(bad), "{bad}");
    }
}

#[test]
fn clients_of_the_vpn_are_summed() {
    let (rates, next) = added(200, &reply(""), Requested::Rates).unwrap();
    let expected =
        ClientRates { messages: 3, average_messages: 30, bytes: 300, average_bytes: 3000, ..rates };
    assert_eq!((rates, next), (expected, None));
    assert_eq!((rates.queued_messages, rates.queued_work), (0, 0));
    let (queues, _) = added(200, &reply(""), Requested::Queues).unwrap();
    assert_eq!(queues, ClientRates { queued_messages: 3, queued_work: 3, ..ClientRates::default() });
    let all = ClientRates { queued_messages: 3, queued_work: 3, ..rates }.with_queued(2);
    let work = 3 * 2 * 2048;
    assert_eq!((all.messages, all.average_messages), (9, 36));
    assert_eq!((all.bytes, all.average_bytes), (300 + work, 3000 + work));
    // No client has such a name.
    let none = r#"<rpc-reply semp-version="x"><rpc><show><client><primary-virtual-router></primary-virtual-router></client></show></rpc><execute-result code="ok"/></rpc-reply>"#;
    assert_eq!(added(200, none, Requested::Rates), Ok((ClientRates::default(), None)));
}

#[test]
fn incomplete_answers_are_errors() {
    let (_, next) =
        added(200, &reply("<more-cookie><rpc>next</rpc></more-cookie>"), Requested::Rates).unwrap();
    assert_eq!(next.as_deref(), Some("<rpc>next</rpc>"));
    for (status, bad, why) in [
        (401, reply(""), "wrong user name or password"),
        (500, reply(""), "500"),
        (200, String::new(), "did not execute"),
        (200, "<html>".to_owned(), "did not execute"),
        (200, reply("").replace("code=\"ok\"", "code=\"fail\""), "did not execute"),
        (200, reply("").replace("current-egress-rate", "other"), "no current-egress-rate-per-second"),
        (200, reply("").replace(">2000<", ">x<"), "no whole number"),
    ] {
        let error = added(status, &bad, Requested::Rates).unwrap_err().message;
        assert!(error.contains(why), "{bad}: {error}");
    }
    let error = added(200, &reply("").replace("length-work", "x"), Requested::Queues).unwrap_err().message;
    assert!(error.contains("no length-work"), "{error}");
    // No truncated answer is a value.
    let whole = reply("");
    let end = whole.find("<execute-result").unwrap();
    for at in 0..end {
        assert!(added(200, whole.get(..at).unwrap(), Requested::Rates).is_err());
    }
}

#[tokio::test]
async fn reads_all_pages_of_the_first_server_that_responds() {
    let good = server(|head| {
        assert!(head.starts_with("POST /SEMP ") && head.contains("authorization: Basic dTpw\r\n"), "{head}");
        let more = if head.contains("<rpc>next</rpc>") || head.contains("<queues/>") {
            ""
        } else {
            "<more-cookie><rpc>next</rpc></more-cookie>"
        };
        ServerAction::Answer(200, reply(more))
    })
    .await;
    let bad = server(|_| ServerAction::Answer(503, "<html>".to_owned())).await;
    let urls = format!("{bad}, {good}");
    let mut pairs = vec![
        ("solaceSempBaseURL", &*urls),
        ("messageVpn", "v"),
        ("clientNamePattern", "c"),
        ("queuedMessagesFactor", "1"),
        ("aggregatedClientTxMsgRateTarget", "10"),
        ("aggregatedClientAverageTxByteRateTarget", "10"),
    ];
    let auth = texts(&[("username", "u"), ("password", "p")]);
    let mut two = trigger("solace-direct-messaging", &pairs);
    two.auth = auth.clone();
    let scaler = build(&two).unwrap();
    // Rates of two pages, and the queues once.
    for (name, value) in [
        ("s0-solace-dm-c-aggregatedClientTxMsgRateTarget", "9"),
        ("s0-solace-dm-c-aggregatedClientAverageTxByteRateTarget", "12144"),
    ] {
        let reading = scaler.read(name).await.unwrap();
        assert_eq!(reading.values.first().unwrap().value.canonical(), value);
        assert!(reading.active);
    }
    assert!(scaler.read("s0-solace-dm-c-aggregatedClientTxByteRateTarget").await.is_err());
    if let Some(first) = pairs.first_mut() {
        first.1 = &bad;
    }
    let mut failing = trigger("solace-direct-messaging", &pairs);
    failing.auth = auth;
    let scaler = build(&failing).unwrap();
    let error = scaler.read("s0-solace-dm-c-aggregatedClientTxMsgRateTarget").await.unwrap_err().message;
    assert_eq!(error, "SEMP returned 503: (6 bytes, not shown)");
}

#[test]
fn invalid_parameters_are_refused() {
    for (key, value, why) in [
        (
            "solaceSempBaseURL",
            "http://ab,,http://cd",
            "empty host url value found in the scaler configuration. Url[1]: ''",
        ),
        (
            "solaceSempBaseURL",
            "solace",
            "invalid host url value found in the scaler configuration. Url[0]: 'solace'",
        ),
        ("clientNamePattern", "a*", "client-name-pattern should not contain '*'. ClientNamePattern: 'a*'"),
        (
            "queuedMessagesFactor",
            "101",
            "queued messages factor should be >0 and <=100. QueuedMessagesFactor: '101'",
        ),
        ("aggregatedClientTxMsgRateTarget", "0", "no target value found in the scaler configuration"),
    ] {
        let mut trigger = trigger(
            "solace-direct-messaging",
            &[
                ("solaceSempBaseURL", "http://solace:8080"),
                ("messageVpn", "v"),
                ("clientNamePattern", "c"),
                ("aggregatedClientTxMsgRateTarget", "10"),
            ],
        );
        trigger.auth = texts(&[("username", "u"), ("password", "p")]);
        trigger.metadata.insert(key.into(), value.into());
        let error = build(&trigger).err().unwrap().message;
        assert_eq!(error, format!("error parsing metadata: {why}"));
    }
}
