//! metrics-api against an HTTP API: formats, authentication schemes, certificates; as a scaler, and as `plimsoll scalers check` shows it.

use serde_json::{Value, json};
use testbed::backends::{AuthScheme, HttpApi};
use testbed::pki::{Authority, Identity};

use super::check::check;
use super::{ParameterPairs, assert_error_contains, certificates, read, scaler};

/// Each format, and where the number is in it.
const FORMATS: [(&str, &str); 4] = [
    ("json", "tasks.waiting.1"),
    ("yaml", "tasks.waiting.1"),
    ("xml", "tasks.waiting"),
    ("prometheus", "waiting{queue=\"mail\"}"),
];

/// Each scheme, the `authMode` for it, and its credentials.
const SCHEMES: [(AuthScheme, &str, ParameterPairs<'static>); 4] = [
    (AuthScheme::Basic, "basic", &[("username", "ada"), ("password", "hunter2")]),
    (AuthScheme::Bearer, "bearer", &[("token", "hunter2")]),
    (AuthScheme::Key, "apiKey", &[("apiKey", "hunter2")]),
    (AuthScheme::Query, "apiKey", &[("apiKey", "hunter2"), ("method", "query")]),
];

fn api() -> (HttpApi, Authority, Identity) {
    let (authority, identity) = certificates();
    let client = authority.client("scaler", None).unwrap();
    (HttpApi::start(&identity, &authority).unwrap(), authority, client)
}

#[tokio::test]
async fn all_formats_are_read() {
    let (api, ..) = api();
    for (format, location) in FORMATS {
        let url = api.url(AuthScheme::Open, format);
        let given = [("url", &*url), ("format", format), ("valueLocation", location), ("targetValue", "2.5")];
        let tested_scaler = scaler("metrics-api", &given, &[]);
        for (number, value, active) in [("5", "5", true), ("0", "0", false), ("0.25", "250m", true)] {
            api.set_number(number);
            assert_eq!(read(&tested_scaler).await, Ok((value.into(), active)), "{format} {number}");
        }
        // A value that is no number is an error, not zero.
        for number in ["many", ""] {
            api.set_number(number);
            assert!(read(&tested_scaler).await.is_err(), "{format} {number:?}");
        }
        let wrong = [("url", &*url), ("format", format), ("valueLocation", "nowhere"), ("targetValue", "1")];
        api.set_number("5");
        assert!(read(&scaler("metrics-api", &wrong, &[])).await.is_err(), "{format}");
    }
}

#[tokio::test]
async fn every_authentication_mode_works() {
    let (api, authority, client) = api();
    api.set_number("5");
    let location = ("valueLocation", "tasks.waiting.1");
    for (scheme, mode, credentials) in SCHEMES {
        for url in [api.url(scheme, "json"), api.tls_url(scheme, "json")] {
            let ca = ("ca", authority.certificate());
            let given = [("url", &*url), location, ("targetValue", "1"), ("authMode", mode)];
            let right: Vec<_> = credentials.iter().copied().chain([ca]).collect();
            assert_eq!(
                read(&scaler("metrics-api", &given, &right)).await,
                Ok(("5".into(), true)),
                "{scheme:?}"
            );
            // A wrong password and no password are errors.
            let wrong = |text: &'static str| if text == "hunter2" { "hunter3" } else { text };
            let others: Vec<_> =
                credentials.iter().map(|(key, text)| (*key, wrong(text))).chain([ca]).collect();
            let error = read(&scaler("metrics-api", &given, &others)).await.unwrap_err();
            assert_error_contains(&error, &["401", "/json"]);
            assert!(!error.contains("hunter3"), "{error}");
            let error = read(&scaler("metrics-api", &given[..3], &[ca])).await.unwrap_err();
            assert_error_contains(&error, &["401"]);
        }
    }

    let url = api.tls_url(AuthScheme::Certificate, "json");
    let given = [("url", &*url), location, ("targetValue", "1"), ("authMode", "tls")];
    let own = [("cert", &*client.certificate), ("key", &*client.key), ("ca", authority.certificate())];
    assert_eq!(read(&scaler("metrics-api", &given, &own)).await, Ok(("5".into(), true)));
    let none = scaler("metrics-api", &given[..3], &[("ca", authority.certificate())]);
    assert_error_contains(&read(&none).await.unwrap_err(), &["401"]);
    // An unknown CA is refused, unless `unsafeSsl` is set.
    let open = api.tls_url(AuthScheme::Open, "json");
    let given = [("url", &*open), location, ("targetValue", "1"), ("unsafeSsl", "true")];
    assert_error_contains(
        &read(&scaler("metrics-api", &given[..3], &[])).await.unwrap_err(),
        &["certificate"],
    );
    assert_eq!(read(&scaler("metrics-api", &given, &[])).await, Ok(("5".into(), true)));
}

#[tokio::test]
async fn scalers_check_queries_and_prints_metrics() {
    let (api, ..) = api();
    api.set_number("12");
    let manifests = |password: &str| {
        let metadata = json!({
            "url": api.url(AuthScheme::Basic, "json"), "valueLocation": "tasks.waiting.1", "targetValue": "5",
            "activationTargetValue": "20", "authMode": "basic",
        });
        let trigger =
            json!({"type": "metrics-api", "metadata": metadata, "authenticationRef": {"name": "doorkeeper"}});
        let reference = |key: &str| json!({"parameter": key, "name": "login", "key": key});
        json!([
            {
                "apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": {"name": "shop"},
                "spec": {"scaleTargetRef": {"name": "shop"}, "triggers": [trigger]},
            },
            {
                "apiVersion": "keda.sh/v1alpha1", "kind": "TriggerAuthentication",
                "metadata": {"name": "doorkeeper"},
                "spec": {"secretTargetRef": [reference("username"), reference("password")]},
            },
            {
                "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login"},
                "stringData": {"username": "ada", "password": password},
            },
        ])
    };
    let (code, response) = check(&manifests(api.password()), &[]).await;
    let found: Value = serde_json::from_str(&response).unwrap_or_else(|error| panic!("{error}: {response}"));
    assert_eq!(
        (code, &found[0]["value"], &found[0]["active"]),
        (0, &json!("12"), &json!(false)),
        "{response}"
    );
    assert_eq!(found[0]["metric"], "s0-metric-api-tasks-waiting-1");
    let (code, response) = check(&manifests("wrong"), &[]).await;
    assert_eq!(code, 1, "{response}");
    assert!(response.contains("401") && !response.contains("wrong"), "{response}");
}
