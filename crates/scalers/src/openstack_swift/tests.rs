use super::query::{counted, url};
use crate::Trigger;
use crate::test_support::{ServerAction, read, server, texts, trigger};

/// An answer of Keystone whose catalog has the server itself.
fn granted(head: &str) -> ServerAction {
    let host = head.lines().find_map(|line| line.strip_prefix("host: ")).unwrap();
    let body = format!(
        r#"{{"token":{{"catalog":[{{"type":"object-store","endpoints":[
            {{"interface":"public","region_id":"r","url":"http://{host}/v1/AUTH_p"}}]}}]}}}}"#
    );
    let head = "HTTP/1.1 201 Created\r\nx-subject-token: tok\r\nconnection: close\r\n";
    ServerAction::Raw(format!("{head}content-length: {}\r\n\r\n{body}", body.len()).into_bytes())
}

fn with_user(url: &str, metadata: &[(&str, &str)], region: &str) -> Trigger {
    let mut trigger = trigger("openstack-swift", metadata);
    trigger.auth = texts(&[
        ("authURL", url),
        ("userID", "u"),
        ("password", "p"),
        ("projectID", "x"),
        ("regionName", region),
    ]);
    trigger
}

#[test]
fn url_has_the_escaped_container() {
    assert_eq!(url("http://s/v1/AUTH_p/", "a b/c"), "http://s/v1/AUTH_p/a%20b%2Fc");
}

#[test]
fn counts_are_read_from_headers_or_refused() {
    assert_eq!(counted(204, Some("12")), Ok(12.0));
    assert_eq!(counted(200, Some(" 0 ")), Ok(0.0));
    for (status, header, why) in [
        (204, None, "without X-Container-Object-Count"),
        (200, Some(""), "no number"),
        (200, Some("-1"), "no number"),
        (200, Some("NaN"), "no number"),
        (403, Some("5"), "no right"),
        (404, Some("5"), "does not exist"),
        (503, Some("5"), "503"),
    ] {
        let error = counted(status, header).unwrap_err().message;
        assert!(error.contains(why), "{header:?}: {error}");
    }
}

#[tokio::test]
async fn reads_the_container_of_the_catalog() {
    let url = server(|head| {
        if head.starts_with("POST /v3/auth/tokens ") {
            assert!(head.contains(r#""scope":{"project":{"id":"x"}}"#), "{head}");
            return granted(head);
        }
        assert!(head.starts_with("HEAD /v1/AUTH_p/c "), "{head}");
        assert!(head.contains("x-auth-token: tok\r\n"), "{head}");
        let answer = "HTTP/1.1 204 No Content\r\nx-container-object-count: 3\r\nconnection: close\r\n\r\n";
        ServerAction::Raw(answer.as_bytes().to_vec())
    })
    .await;
    let pairs = [("containerName", "c"), ("activationObjectCount", "3")];
    let reading = read(&with_user(&url, &pairs, "r")).await.unwrap();
    assert_eq!(reading.values.first().unwrap().value.canonical(), "3");
    assert!(!reading.active);
    let error = read(&with_user(&url, &pairs, "other")).await.unwrap_err().message;
    assert!(error.contains("give swiftURL"), "{error}");
    let account = format!("{url}/v1/AUTH_p/");
    let pairs = [("containerName", "c"), ("swiftURL", &*account)];
    assert!(read(&with_user(&url, &pairs, "other")).await.unwrap().active);
}

#[tokio::test]
async fn a_refused_login_is_an_error() {
    let url = server(|head| {
        assert!(
            head.starts_with("POST /v3/auth/tokens ") && head.contains("application_credential"),
            "{head}"
        );
        ServerAction::Answer(401, r#"{"error":{"message":"denied"}}"#.to_owned())
    })
    .await;
    let mut trigger = trigger("openstack-swift", &[("containerName", "c")]);
    trigger.auth = texts(&[("authURL", &url), ("appCredentialID", "i"), ("appCredentialSecret", "s")]);
    assert_eq!(read(&trigger).await.unwrap_err().message, "Keystone returned 401: denied");
}
