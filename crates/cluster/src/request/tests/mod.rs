//! The words of client-go, read off the events of Kubernetes 1.36's own controller talking to a server that misbehaves.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

pub(crate) mod fake;
mod persistence;
mod sockets;

use std::time::Duration;

use http::Method;

use super::*;
use fake::{Fake, JSON, Reply, TEXT};

const LONG: Duration = Duration::from_mins(5);

fn pods() -> Request {
    Request::get("/apis/metrics.k8s.io/v1beta1/namespaces/x/pods", "pods.metrics.k8s.io", LONG)
}

async fn refused(reply: Reply) -> ApiError {
    send(&Fake::always(reply).client(), pods()).await.unwrap_err()
}

#[tokio::test]
async fn codes_have_the_texts_of_client_go() {
    for (code, detail, words) in [
        (207, "x", "the server responded with the status code 207 but did not return more information"),
        (302, "x", "the server responded with the status code 302 but did not return more information"),
        (400, "bad", "the server rejected our request for an unknown reason"),
        (401, "Unauthorized", "the server has asked for the client to provide credentials"),
        (403, "Forbidden: \"you\"\nno", "Forbidden: \"you\"\nno"),
        (404, "404 page not found\n", "the server could not find the requested resource"),
        (405, "no", "the server does not allow this method on the requested resource"),
        (406, "cannot do that", "cannot do that"),
        (406, "", "the server was unable to respond with a content type that the client supports"),
        (408, "slow", "the server responded with the status code 408 but did not return more information"),
        (409, "clash", "the server reported a conflict"),
        (410, "gone", "the server responded with the status code 410 but did not return more information"),
        (415, "what", "what"),
        (422, "no way", "the server rejected our request due to an error in our request"),
        (429, "slow down", "the server has received too many requests and has asked us to try again later"),
        (500, "", "an error on the server (\"\") has prevented the request from succeeding"),
        (
            500,
            "boom \"quoted\"\nsecond\ttab\u{1} \u{e9}\u{2028}\n",
            "an error on the server (\"boom \\\"quoted\\\"\\nsecond\\ttab\\x01 \u{e9}\") has prevented the request \
             from succeeding",
        ),
        (
            502,
            "bad gateway",
            "an error on the server (\"bad gateway\") has prevented the request from succeeding",
        ),
        (503, "service unavailable\n", "the server is currently unable to handle the request"),
        (
            504,
            "gateway timeout",
            "the server was unable to return a response in the time allotted, but may still be processing the \
             request",
        ),
        (507, "full", "an error on the server (\"full\") has prevented the request from succeeding"),
    ] {
        let error = refused(Reply::new(code, TEXT, detail)).await;
        assert_eq!(error.message, format!("{words} (get pods.metrics.k8s.io)"), "{code} {detail}");
        assert_eq!(error.code, Some(code));
    }
}

#[tokio::test]
async fn the_text_of_a_status_is_used() {
    let status = |message: &str, reason: &str, code: u16| {
        let body = serde_json::json!({
            "kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "reason": reason,
            "code": code,
        });
        Reply::new(code, JSON, &body.to_string())
    };
    for (message, reason, code) in [
        ("pods.metrics.k8s.io \"web\" not found", "NotFound", 404),
        ("Internal error occurred: kaput", "InternalError", 500),
        ("too many requests, please try again later", "TooManyRequests", 429),
        ("the thing is away", "ServiceUnavailable", 503),
    ] {
        let error = refused(status(message, reason, code)).await;
        assert_eq!(
            (error.message.as_str(), error.reason.as_str(), error.code),
            (message, reason, Some(code))
        );
    }
    let modified = "Operation cannot be fulfilled on deployments.apps \"web\": the object has been modified; please \
                    apply your changes to the latest version and try again";
    assert!(refused(status(modified, "Conflict", 409)).await.is_conflict());
}

#[tokio::test]
async fn a_body_that_is_no_status_is_not_decoded_as_one() {
    let unknown = "an error on the server (\"unknown\") has prevented the request from succeeding (get \
                   pods.metrics.k8s.io)";
    for body in [
        r#"{"a":1}"#,
        r#"{"status":"Failure","message":"no kind","code":500}"#,
        r#"{"kind":"Status","apiVersion":"v1","status":"Success","code":500}"#,
        "{",
    ] {
        assert_eq!(refused(Reply::new(500, JSON, body)).await.message, unknown, "{body}");
    }
    let empty = r#"{"kind":"Status","apiVersion":"v1","status":"Failure","code":500}"#;
    assert_eq!(refused(Reply::new(500, JSON, empty)).await.message, "");
    let quoted = "an error on the server (\"{\\\"kind\\\": \\\"Status\\\"}\") has prevented the request from \
                  succeeding (get pods.metrics.k8s.io)";
    assert_eq!(refused(Reply::new(500, TEXT, r#"{"kind": "Status"}"#)).await.message, quoted);
    assert_eq!(refused(Reply::new(403, JSON, "{}")).await.message, "unknown (get pods.metrics.k8s.io)");
    let plain = "an error on the server (\"plain words\") has prevented the request from succeeding (get \
                 pods.metrics.k8s.io)";
    assert_eq!(refused(Reply::new(500, "", "plain words")).await.message, plain);
    let html = refused(Reply::new(500, "text/html", "<html>x</html>")).await.message;
    assert!(html.contains("(\"<html>x</html>\")"), "{html}");
}

#[tokio::test]
async fn long_bodies_are_cut_in_messages() {
    let message = refused(Reply::new(500, TEXT, &"x".repeat(3000))).await.message;
    assert_eq!(message.matches('x').count(), 2048);
}

#[tokio::test]
async fn messages_have_name_and_method() {
    let client = Fake::always(Reply::new(409, TEXT, "x")).client();
    let request = Request { method: Method::PUT, ..Request::get("/x", "deployments", LONG).named("web") };
    let error = send(&client, request).await.unwrap_err();
    assert_eq!(error.message, "the server reported a conflict (put deployments web)");
    assert!(error.is_conflict());
    let request = Request { method: Method::POST, ..Request::get("/x", "", LONG) };
    let error = send(&client, request).await.unwrap_err();
    assert_eq!(
        (error.message.as_str(), error.reason.as_str()),
        ("the server reported a conflict", "AlreadyExists")
    );
    assert!(!error.is_conflict());
}

#[tokio::test]
async fn codes_from_200_to_206_are_success() {
    for code in [200, 201, 204, 206] {
        let client = Fake::always(Reply::new(code, JSON, "{}")).client();
        assert_eq!(&send(&client, pods()).await.unwrap()[..], b"{}");
    }
}
