#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::sync::Mutex;

use futures::{FutureExt as _, stream};
use http_body_util::StreamBody;
use hyper::body::Frame;

use super::*;
use crate::body::BodyError;
use crate::{App, InProcessServer, ServiceBackend, ServiceRef};

/// Refuses objects named `no`, warns about all others, and records the requests.
#[derive(Default)]
struct Guard(Mutex<Vec<AdmissionRequest>>);

impl AdmissionHandler for Guard {
    fn admit(&self, review: AdmissionRequest) -> BoxFuture<'_, AdmissionResponse> {
        let ruling = match review.name.as_str() {
            "no" => AdmissionResponse::refuse(Status::new(403, "Forbidden", "not this one", None)),
            "broken" => std::panic::panic_any("a fault"),
            _ => AdmissionResponse::allow(vec!["odd".to_owned()]),
        };
        self.0.lock().unwrap().push(review);
        async { ruling }.boxed()
    }
}

fn site(guard: &Arc<Guard>) -> InProcessServer {
    let admit: Arc<dyn AdmissionHandler> = guard.clone();
    InProcessServer::new(App { routes: routes(&admit, &Reviewers::default()), ..App::default() })
}

/// A review of an object that has no namespace of its own, or that of the request.
fn review(webhook: &Webhook, name: &str) -> Value {
    let namespace = if webhook.is_cluster_scoped() { "" } else { "ns" };
    json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "u-1", "kind": {"group": webhook.group, "version": "v1alpha1", "kind": webhook.kind},
            "resource": {"group": webhook.group, "version": "v1alpha1", "resource": webhook.resource},
            "name": name, "namespace": namespace, "operation": "CREATE", "userInfo": {"username": "u"},
            "object": {"kind": webhook.kind, "metadata": {"name": name}}, "oldObject": null, "dryRun": true,
            "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
        },
    })
}

fn post(path: &str, body: impl Into<bytes::Bytes>) -> Request<Body> {
    let request =
        Request::post(format!("{path}?timeout=10s")).header("content-type", "application/json; charset=x");
    request.body(response::full(body)).unwrap()
}

async fn send_review(site: &InProcessServer, request: Request<Body>) -> (u16, Value) {
    let response = site.respond(request).await;
    let code = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (code, serde_json::from_slice(&body).unwrap())
}

#[tokio::test]
async fn every_kind_is_reviewed_at_its_path() {
    let guard = Arc::new(Guard::default());
    let site = site(&guard);
    for webhook in &WEBHOOKS {
        let (code, answer) = send_review(&site, post(webhook.path, review(webhook, "yes").to_string())).await;
        assert_eq!(code, 200);
        assert_eq!(
            answer,
            json!({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1",
                "response": {"uid": "u-1", "allowed": true, "warnings": ["odd"]}})
        );
        let requested = guard.0.lock().unwrap().pop().unwrap();
        assert_eq!(
            (requested.kind.as_str(), requested.namespace.as_str(), requested.dry_run),
            (webhook.kind, if webhook.is_cluster_scoped() { "" } else { "ns" }, true)
        );
        assert_eq!((&requested.object["metadata"]["name"], requested.old), (&json!("yes"), None));
    }
    let (_, answer) =
        send_review(&site, post(WEBHOOKS[0].path, review(&WEBHOOKS[0], "no").to_string())).await;
    assert_eq!(answer["response"]["allowed"], false);
    assert_eq!(
        answer["response"]["status"],
        json!({"metadata": {}, "status": "Failure", "message": "not this one", "code": 403, "reason": "Forbidden"})
    );
}

#[tokio::test]
async fn subresources_are_allowed_without_a_handler() {
    let guard = Arc::new(Guard::default());
    let mut review = review(&WEBHOOKS[0], "no");
    review["request"]["subResource"] = json!("status");
    let (code, answer) = send_review(&site(&guard), post(WEBHOOKS[0].path, review.to_string())).await;
    assert_eq!((code, &answer["response"]["allowed"]), (200, &json!(true)));
    assert!(guard.0.lock().unwrap().is_empty());
}

#[tokio::test]
async fn body_that_is_no_review_gets_an_error() {
    let guard = Arc::new(Guard::default());
    let site = site(&guard);
    let webhook = &WEBHOOKS[0];
    let changed = |path: &str, value: Value| {
        let mut review = review(webhook, "yes");
        *review.pointer_mut(path).unwrap() = value;
        review.to_string()
    };
    let deep = format!("{}{}", "[".repeat(50_000), "]".repeat(50_000));
    let deep = changed("/request/object", json!("DEEP")).replace("\"DEEP\"", &deep);
    let cases = [
        (String::new(), "EOF while parsing"),
        ("{".to_owned(), "EOF while parsing"),
        ("[]".to_owned(), "expected an AdmissionReview"),
        (deep, "recursion limit"),
        ("{}".to_owned(), "kind \"\" in version \"\""),
        (changed("/apiVersion", json!("admission.k8s.io/v1beta1")), "v1beta1"),
        (changed("/kind", json!("Pod")), "kind \"Pod\""),
        (changed("/request", Value::Null), "it has no request"),
        (changed("/request/uid", json!("")), "request.uid is empty"),
        (changed("/request/kind/kind", json!("ScaledJob")), "is for ScaledObject in keda.sh/v1alpha1"),
        (changed("/request/kind/version", json!("v2")), "\"keda.sh/v2\""),
        (changed("/request/operation", json!("CONNECT")), "request.operation is \"CONNECT\""),
        (changed("/request/object", Value::Null), "request.object is no object"),
        (changed("/request/object", json!("text")), "request.object is no object"),
        (changed("/request/dryRun", json!("yes")), "invalid type"),
        (changed("/request/namespace", json!("")), "request.namespace is empty"),
        (changed("/request/namespace", json!("a/b")), "request.namespace is no DNS label"),
        (changed("/request/namespace", json!("n".repeat(64))), "request.namespace is no DNS label"),
        (changed("/request/name", json!("n".repeat(254))), "a name has more than 253 bytes"),
        (changed("/request/oldObject", json!({"metadata": {"name": "n".repeat(254)}})), "a name has more"),
        (
            changed("/request/object/metadata", json!({"name": "yes", "namespace": "default/configmaps?x="})),
            "request.object.metadata.namespace is \"default/configmaps?x=\", but request.namespace is \"ns\"",
        ),
        (
            changed("/request/object/metadata", json!({"name": "other", "namespace": "ns"})),
            "request.object.metadata.name is \"other\", but request.name is \"yes\"",
        ),
        (
            changed("/request/oldObject", json!({"metadata": {"name": "yes", "namespace": "b"}})),
            "request.oldObject.metadata.namespace is \"b\"",
        ),
    ];
    for (body, words) in cases {
        let (code, answer) = send_review(&site, post(webhook.path, body)).await;
        let message = answer["message"].as_str().unwrap();
        assert_eq!(code, 400, "{message}");
        assert!(message.contains(words), "{words}: {message}");
    }
    let get = Request::get(webhook.path).body(response::full("")).unwrap();
    assert_eq!(send_review(&site, get).await.0, 405);
    let text = Request::post(webhook.path).body(response::full(review(webhook, "yes").to_string())).unwrap();
    let (code, answer) = send_review(&site, text).await;
    assert_eq!((code, answer["reason"].as_str()), (415, Some("UnsupportedMediaType")));
    assert_eq!(send_review(&site, post("/validate-something-else", "{}")).await.0, 404);
    assert!(guard.0.lock().unwrap().is_empty());
}

#[tokio::test]
async fn too_much_is_not_read_whether_it_is_announced_or_not() {
    let guard = Arc::new(Guard::default());
    let site = site(&guard);
    let large = vec![b' '; 4 * 1024 * 1024];
    let mut announced = post(WEBHOOKS[0].path, large.clone());
    announced.headers_mut().insert("content-length", large.len().into());
    assert_eq!(send_review(&site, announced).await.0, 413);
    assert_eq!(send_review(&site, post(WEBHOOKS[0].path, large)).await.0, 413);
    // A body of a permitted size whose tree would need many times its memory.
    let mut many = review(&WEBHOOKS[0], "yes");
    many["request"]["object"]["spec"] = Value::from(vec![1; 100_000]);
    let (code, answer) = send_review(&site, post(WEBHOOKS[0].path, many.to_string())).await;
    assert_eq!((code, answer["message"].as_str().unwrap().contains("more than 100000 values")), (413, true));
    assert!(guard.0.lock().unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn slow_body_loses_its_share_after_the_grace() {
    let site = site(&Arc::new(Guard::default()));
    // Chunks of half a MiB, and then nothing.
    let timed_out_after = async |chunks: usize, every: Duration| {
        let sent = stream::unfold(0, move |number| async move {
            tokio::time::sleep(every).await;
            if number == chunks {
                std::future::pending::<()>().await;
            }
            Some((Ok::<_, BodyError>(Frame::data(Bytes::from(vec![b' '; 512 << 10]))), number + 1))
        });
        let request = post(WEBHOOKS[0].path, "").map(|_| StreamBody::new(sent).boxed_unsync());
        let begun = Instant::now();
        let (code, answer) = send_review(&site, request).await;
        assert_eq!((code, answer["reason"].as_str()), (504, Some("Timeout")), "{answer}");
        begun.elapsed().as_millis()
    };
    assert_eq!(timed_out_after(0, Duration::ZERO).await, 2000);
    // Each MiB that has arrived earns a second.
    assert_eq!(timed_out_after(4, Duration::from_millis(100)).await, 4000);
    assert_eq!(timed_out_after(usize::MAX, Duration::from_millis(1500)).await, 2500);
}

#[tokio::test]
async fn failed_admission_handler_is_an_error_without_a_response() {
    let guard = Arc::new(Guard::default());
    let site = site(&guard);
    let (code, answer) =
        send_review(&site, post(WEBHOOKS[0].path, review(&WEBHOOKS[0], "broken").to_string())).await;
    assert_eq!((code, answer.get("response")), (500, None));
    let (code, _) = send_review(&site, post(WEBHOOKS[0].path, review(&WEBHOOKS[0], "yes").to_string())).await;
    assert_eq!(code, 200);
}

#[test]
fn configuration_names_every_path_and_its_ca() {
    let place = ServiceRef {
        namespace: "keda".into(),
        service: SERVICE.into(),
        behind: ServiceBackend::Pods([].into(), 9443),
    };
    let mut configuration = webhook_configuration(&place, None);
    let webhooks = configuration["webhooks"].as_array().unwrap();
    assert_eq!(webhooks.len(), 6);
    let first = &webhooks[0];
    assert_eq!(
        first["clientConfig"],
        json!({"service": {"namespace": "keda", "name": "keda-admission-webhooks", "port": 443,
            "path": "/validate-keda-sh-v1alpha1-scaledobject"}})
    );
    assert_eq!(first["rules"][0]["resources"], json!(["scaledobjects"]));
    assert_eq!((&first["failurePolicy"], &first["timeoutSeconds"]), (&json!("Ignore"), &json!(10)));

    let foreign = json!({"name": "x", "clientConfig": {"url": "https://x"}});
    configuration["webhooks"].as_array_mut().unwrap().push(foreign.clone());
    assert!(set_ca_bundle(&mut configuration, "one"));
    assert!(!set_ca_bundle(&mut configuration, "one"));
    assert!(set_ca_bundle(&mut configuration, "two"));
    let webhooks = configuration["webhooks"].as_array().unwrap();
    assert!(webhooks[..6].iter().all(|webhook| webhook["clientConfig"]["caBundle"] == "dHdv"));
    assert_eq!(webhooks[6], foreign);
    // Somebody may have written anything there.
    assert!(!set_ca_bundle(&mut json!({"webhooks": [null, {"clientConfig": 3}]}), "one"));
    assert!(!set_ca_bundle(&mut Value::Null, "one"));
}

#[test]
fn the_paths_of_webhooks_are_open() {
    assert!(open_paths().eq(WEBHOOKS.iter().map(|webhook| webhook.path)));
}
