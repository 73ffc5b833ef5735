use crate::test_support::{ServerAction, build, read, server, texts, trigger};

#[tokio::test]
async fn reads_value() {
    let url = server(|head| {
        assert!(head.starts_with("POST /a,b/_search/template "), "{head}");
        assert!(head.contains("authorization: Basic dTpw\r\n"), "{head}");
        assert!(head.ends_with(r#"{"id":"t","params":{"x":"1"}}"#), "{head}");
        ServerAction::Answer(200, r#"{"hits":{"total":{"value":3}}}"#.to_owned())
    })
    .await;
    let pairs = [
        ("addresses", &*url),
        ("index", "a;b"),
        ("searchTemplateName", "t"),
        ("parameters", "x:1"),
        ("valueLocation", "hits.total.value"),
        ("targetValue", "1"),
        ("username", "u"),
        ("password", "p"),
    ];
    assert_eq!(
        read(&trigger("opensearch", &pairs)).await.unwrap().values.first().unwrap().value.canonical(),
        "3"
    );
}

#[tokio::test]
async fn unreachable_server_is_an_error() {
    let pairs = [
        ("addresses", "http://127.0.0.1:1"),
        ("index", "a"),
        ("query", "{}"),
        ("valueLocation", "v"),
        ("targetValue", "1"),
        ("username", "u"),
        ("password", "p"),
    ];
    assert!(read(&trigger("opensearch", &pairs)).await.unwrap_err().message.contains("refused"));
}

#[test]
fn certificates_are_read_from_both_sources() {
    let pairs = [
        ("addresses", "https://127.0.0.1:1"),
        ("index", "a"),
        ("query", "{}"),
        ("valueLocation", "v"),
        ("targetValue", "1"),
    ];
    let mut given = trigger("opensearch", &pairs);
    given.auth = texts(&[("enableTLS", "true"), ("clientCert", "c")]);
    let error = build(&given).err().unwrap().message;
    assert!(error.contains("both clientCert and clientKey must be provided"), "{error}");
    given.metadata.insert("clientKey".to_owned(), "k".to_owned());
    assert!(build(&given).is_ok());
}
