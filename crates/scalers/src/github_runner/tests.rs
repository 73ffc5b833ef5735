use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::app::assertion;
use super::query::{Labels, RunPage, jobs, repositories, runs, token};
use crate::parameters::Secret;
use crate::test_support::{ServerAction, read, server, texts, trigger};

#[test]
fn jobs_match_labels() {
    let count =
        |list: &str, labels: &Labels| jobs(200, format!(r#"{{"jobs":{list}}}"#).as_bytes(), labels).unwrap();
    let plain = Labels::new(&[], true, false);
    let job = |status: &str, labels: &str| format!(r#"[{{"status":"{status}","labels":{labels}}}]"#);
    assert_eq!(count(&job("queued", r#"["self-hosted","Linux"]"#), &plain), 1);
    assert_eq!(count(&job("in_progress", r#"["self-hosted"]"#), &plain), 1);
    assert_eq!(count(&job("completed", r#"["self-hosted"]"#), &plain), 0);
    assert_eq!(count(&job("queued", r#"["self-hosted","gpu"]"#), &plain), 0);
    assert_eq!(
        count(&job("queued", r#"["self-hosted","gpu"]"#), &Labels::new(&["GPU".into()], true, false)),
        1
    );
    assert_eq!(count(&job("queued", r#"["self-hosted"]"#), &Labels::new(&["gpu".into()], false, false)), 0);
    // A job without labels demands nothing.
    assert_eq!(count(&job("queued", "[]"), &plain), 1);
    assert_eq!(count(&job("queued", "null"), &plain), 1);
    assert_eq!(count(&job("queued", "[]"), &Labels::new(&[], false, true)), 1);
    assert_eq!(count(&job("queued", "[]"), &Labels::new(&["gpu".into()], false, true)), 0);
}

#[test]
fn responses_are_decoded_or_refused() {
    assert_eq!(repositories(200, br#"[{"name":"a"},{"name":"b"}]"#).unwrap(), ["a", "b"]);
    let page = br#"{"workflow_runs":[{"id":7,"status":"queued"},{"id":8,"status":"completed"},{"id":9}]}"#;
    assert_eq!(runs(200, page).unwrap(), Some(RunPage { open: vec![7, 9], is_last: true }));
    assert_eq!(token(201, br#"{"token":"t"}"#).unwrap(), "t");
    assert!(repositories(200, br#"[{"id":1}]"#).is_err());
    assert!(repositories(200, b"{}").is_err());
    assert!(runs(200, br#"{"workflow_runs":null}"#).is_err());
    assert!(runs(200, br#"{"workflow_runs":[{"id":"7"}]}"#).is_err());
    assert!(jobs(200, b"{}", &Labels::default()).is_err());
    assert!(jobs(200, b"<html>", &Labels::default()).is_err());
    let error = runs(403, br#"{"message":"API rate limit exceeded"}"#).unwrap_err().message;
    assert_eq!(error, "the GitHub REST API returned 403: API rate limit exceeded");
}

#[tokio::test]
async fn reads_value() {
    let url = server(|head| {
        assert!(head.contains("authorization: Bearer t\r\n"), "{head}");
        let path = head.split(' ').nth(1).unwrap();
        ServerAction::Answer(
            200,
            match path {
                "/orgs/o/repos?per_page=100&page=1" => r#"[{"name":"r"}]"#.to_owned(),
                "/repos/o/r/actions/runs?status=queued&per_page=100&page=1" => {
                    r#"{"workflow_runs":[{"id":1},{"id":2}]}"#.to_owned()
                }
                "/repos/o/r/actions/runs?status=in_progress&per_page=100&page=1" => {
                    r#"{"workflow_runs":[{"id":2}]}"#.to_owned()
                }
                _ if path.ends_with("/jobs?per_page=100") => {
                    r#"{"jobs":[{"status":"queued","labels":["self-hosted"]}]}"#.to_owned()
                }
                _ => panic!("{path}"),
            },
        )
    })
    .await;
    let mut trigger =
        trigger("github-runner", &[("githubApiURL", &url), ("owner", "o"), ("runnerScope", "org")]);
    trigger.auth = texts(&[("personalAccessToken", "t")]);
    // A count equal to the target is active.
    trigger.metadata.insert("targetWorkflowQueueLength".into(), "2".into());
    let reading = read(&trigger).await.unwrap();
    assert_eq!(reading.values.first().unwrap().value.canonical(), "2");
    assert!(reading.active);
    trigger.metadata.insert("targetWorkflowQueueLength".into(), "3".into());
    assert!(!read(&trigger).await.unwrap().active);
}

#[tokio::test]
async fn a_missing_repository_has_no_jobs_and_a_rate_limit_keeps_the_last_count() {
    let limited = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let refused = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let (flag, refuses) = (std::sync::Arc::clone(&limited), std::sync::Arc::clone(&refused));
    let url = server(move |head| {
        if refuses.load(std::sync::atomic::Ordering::SeqCst) {
            return ServerAction::Answer(403, r#"{"message":"forbidden; no rate limit"}"#.to_owned());
        }
        if flag.load(std::sync::atomic::Ordering::SeqCst) {
            let body = r#"{"message":"API rate limit exceeded"}"#;
            let head = "HTTP/1.1 403 Forbidden\r\nx-ratelimit-remaining: 0\r\ncontent-length:";
            return ServerAction::Raw(format!("{head} {}\r\n\r\n{body}", body.len()).into_bytes());
        }
        let path = head.split(' ').nth(1).unwrap();
        match path {
            _ if path.starts_with("/repos/o/gone/") => {
                ServerAction::Answer(404, r#"{"message":"Not Found"}"#.to_owned())
            }
            _ if path.contains("/runs?status=queued") => {
                ServerAction::Answer(200, r#"{"workflow_runs":[{"id":1}]}"#.to_owned())
            }
            _ if path.contains("/runs?status=") => {
                ServerAction::Answer(200, r#"{"workflow_runs":[]}"#.to_owned())
            }
            _ => ServerAction::Answer(200, r#"{"jobs":[{"status":"queued","labels":[]}]}"#.to_owned()),
        }
    })
    .await;
    let metadata = [
        ("githubApiURL", &*url),
        ("owner", "o"),
        ("runnerScope", "repo"),
        ("repos", "a,gone,b,c,d,e,f,g,h,i"),
    ];
    let mut given = trigger("github-runner", &metadata);
    given.auth = texts(&[("personalAccessToken", "t")]);
    let scaler = crate::test_support::build(&given).unwrap();
    let count = async || scaler.read("m").await.map(|reading| reading.values[0].value.canonical());
    assert_eq!(count().await.unwrap(), "9");
    limited.store(true, std::sync::atomic::Ordering::SeqCst);
    assert_eq!(count().await.unwrap(), "9");
    // A request that is refused for another reason is an error, whatever its message.
    refused.store(true, std::sync::atomic::Ordering::SeqCst);
    assert!(count().await.unwrap_err().message.contains("no rate limit"));
    refused.store(false, std::sync::atomic::Ordering::SeqCst);
    // A scaler without a last count has nothing to serve.
    assert!(read(&given).await.unwrap_err().message.contains("rate limit"));
}

#[test]
fn assertions_are_signed_and_invalid_keys_not_shown() {
    for bad in ["", "secret", "-----BEGIN RSA PRIVATE KEY-----\nAAAA\n-----END RSA PRIVATE KEY-----"] {
        let error = assertion(1, &Secret::new(bad), 1_000).unwrap_err().message;
        assert!(!error.contains("secret"), "{error}");
    }
    let pair = aws_lc_rs::rsa::KeyPair::generate(aws_lc_rs::rsa::KeySize::Rsa2048).unwrap();
    let der = aws_lc_rs::encoding::AsDer::<aws_lc_rs::encoding::Pkcs8V1Der<'_>>::as_der(&pair).unwrap();
    let coded = base64::engine::general_purpose::STANDARD.encode(der.as_ref());
    let key = format!("-----BEGIN PRIVATE KEY-----\n{coded}\n-----END PRIVATE KEY-----\n");
    let signed = assertion(7, &Secret::new(key), 1_000).unwrap();
    let (text, signature) = signed.reveal().rsplit_once('.').unwrap();
    let claims = URL_SAFE_NO_PAD.decode(text.split_once('.').unwrap().1).unwrap();
    assert_eq!(String::from_utf8(claims).unwrap(), r#"{"iat":940,"exp":1540,"iss":"7"}"#);
    let public = aws_lc_rs::signature::KeyPair::public_key(&pair);
    let public = aws_lc_rs::signature::UnparsedPublicKey::new(
        &aws_lc_rs::signature::RSA_PKCS1_2048_8192_SHA256,
        public,
    );
    public.verify(text.as_bytes(), &URL_SAFE_NO_PAD.decode(signature).unwrap()).unwrap();
}
