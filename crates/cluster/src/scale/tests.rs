#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use localkube::{Cluster, Options};
use serde_json::{Value, json};

use super::*;
use crate::request::tests::fake::{Fake, JSON, ReceivedRequest, Reply, TEXT};

/// A server with deployments and widgets, the latter in two versions, one kind that has no scale, and one answer for
/// scales.
fn server(reply: impl Fn(&ReceivedRequest) -> Reply + Send + Sync + 'static) -> Fake {
    Fake::new(move |request| {
        let entry = |plural: &str, kind: &str, scale: bool| {
            let parts = if scale {
                json!([{"subresource": "scale",
                    "responseKind": {"group": "autoscaling", "version": "v1", "kind": "Scale"}}])
            } else {
                json!([])
            };
            json!({"resource": plural, "scope": "Namespaced", "responseKind": {"kind": kind}, "subresources": parts})
        };
        let version = |name: &str, entry: Value| json!({"version": name, "resources": [entry]});
        let body = match request.line.as_str() {
            "GET /api" => json!({"kind": "APIGroupDiscoveryList", "items": [{"metadata": {}, "versions": [
                version("v1", entry("replicationcontrollers", "ReplicationController", true))]}]}),
            "GET /apis" => json!({"kind": "APIGroupDiscoveryList", "items": [
                {"metadata": {"name": "apps"}, "versions": [version("v1", entry("deployments", "Deployment", true))]},
                {"metadata": {"name": "example.com"}, "versions": [
                    version("v1", entry("widgets", "Widget", true)),
                    version("v1beta1", entry("widgets", "Widget", false)),
                    version("v2alpha1", entry("widgets", "Widget", false)),
                ]},
                {"metadata": {"name": "autoscaling"}, "versions": [
                    version("v2", entry("horizontalpodautoscalers", "HorizontalPodAutoscaler", false))]},
            ]}),
            _ => return reply(request),
        };
        Reply::json(&body)
    })
}

fn scales(fake: &Fake) -> ScaleClient {
    ScaleClient::new(fake.client(), Discovery::new(fake.client()))
}

fn scale(selector: &Value) -> Value {
    json!({"kind": "Scale", "apiVersion": "autoscaling/v1",
        "metadata": {"name": "web", "namespace": "ns", "uid": "u", "resourceVersion": "5"},
        "spec": {"replicas": 1}, "status": {"replicas": 2, "selector": selector}})
}

fn request_lines(fake: &Fake) -> Vec<String> {
    fake.lines().into_iter().filter(|line| line.contains("/scale")).collect()
}

async fn get(reply: Reply) -> Result<ScaleObject, ScaleReadError> {
    scales(&server(move |_| reply.clone())).get("ns", "apps/v1", "Deployment", "web").await
}

async fn refused(reply: Reply) -> String {
    let Err(ScaleReadError::Query(error)) = get(reply).await else { unreachable!() };
    error.text().to_owned()
}

#[tokio::test]
async fn targets_are_found_by_group_and_kind() {
    let fake = server(|_| Reply::json(&scale(&json!("app=web"))));
    let scales = scales(&fake);
    for (version, kind, name, line) in [
        ("apps/v1", "Deployment", "web", "GET /apis/apps/v1/namespaces/ns/deployments/web/scale"),
        ("apps/v9", "deployment", "web", "GET /apis/apps/v1/namespaces/ns/deployments/web/scale"),
        ("apps/", "Deployment", "web", "GET /apis/apps/v1/namespaces/ns/deployments/web/scale"),
        ("v1", "ReplicationController", "web", "GET /api/v1/namespaces/ns/replicationcontrollers/web/scale"),
        ("/v1", "ReplicationController", "web", "GET /api/v1/namespaces/ns/replicationcontrollers/web/scale"),
        (
            "example.com/v1beta1",
            "Widget",
            "a/b c",
            "GET /apis/example.com/v1/namespaces/ns/widgets/a%2Fb%20c/scale",
        ),
    ] {
        let found = scales.get("ns", version, kind, name).await.unwrap();
        assert_eq!(request_lines(&fake), [line]);
        assert_eq!(found.resource_version, "5");
        let Scale { spec_replicas, status_replicas, selector } = found.scale;
        assert_eq!((spec_replicas.get(), status_replicas.get(), selector.as_str()), (1, 2, "app=web"));
    }
    let unknown = |kind: &str, group: &str| {
        ScaleReadError::UnknownKind(format!("no matches for kind \"{kind}\" in group \"{group}\""))
    };
    for (version, kind, failure) in [
        (
            "a/b/c",
            "Deployment",
            ScaleReadError::InvalidApiVersion("unexpected GroupVersion string: a/b/c".to_owned()),
        ),
        ("v1", "Deployment", unknown("Deployment", "")),
        ("apps/v1", "Nope", unknown("Nope", "apps")),
    ] {
        assert_eq!(scales.get("ns", version, kind, "web").await.unwrap_err(), failure);
    }
}

#[tokio::test]
async fn a_kind_with_three_versions_is_requested_three_times() {
    let fake = server(|_| Reply::new(404, TEXT, "404 page not found"));
    let failure = scales(&fake).get("ns", "example.com/v1", "Widget", "gone").await.unwrap_err();
    let words = "the server could not find the requested resource (get widgets gone)";
    assert_eq!(failure, ScaleReadError::Query(words.into()));
    assert_eq!(request_lines(&fake), ["GET /apis/example.com/v1/namespaces/ns/widgets/gone/scale"; 3]);
}

/// kube-apiserver answers both requests with the same `Status`.
#[tokio::test]
async fn missing_object_differs_from_a_kind_without_a_scale() {
    let gone = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404,
        "message": "\"web\" not found"});
    let fake = server(move |_| Reply::new(404, JSON, &gone.to_string()));
    let scales = scales(&fake);
    for (version, kind, expected) in [
        ("apps/v1", "Deployment", RequestFailure::NotFound),
        ("autoscaling/v2", "HorizontalPodAutoscaler", RequestFailure::NotServed),
    ] {
        let Err(ScaleReadError::Query(error)) = scales.get("ns", version, kind, "web").await else {
            unreachable!()
        };
        assert_eq!(error.failure(), Some(&expected), "{kind}");
    }
}

#[tokio::test]
async fn errors_have_the_texts_of_kubernetes() {
    for (code, detail, words) in [
        (403, "forbidden", "forbidden (get deployments web)"),
        (409, "x", "the server reported a conflict (get deployments web)"),
        (
            500,
            "boom",
            "an error on the server (\"boom\") has prevented the request from succeeding (get deployments web)",
        ),
        (503, "x", "the server is currently unable to handle the request (get deployments web)"),
    ] {
        assert_eq!(refused(Reply::new(code, TEXT, detail)).await, words);
    }
}

#[tokio::test]
async fn responses_that_are_no_scale_are_refused() {
    let struct_type = r#"struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;
    let garbage = format!(
        "couldn't get version/kind; json parse error: json: cannot unmarshal string into Go value of type {struct_type}"
    );
    let no_kind = |kind: &str, version: &str| {
        format!(
            "no kind \"{kind}\" is registered for version \"{version}\" in scheme \"pkg/runtime/scheme.go:111\""
        )
    };
    for (body, words) in [
        ("garbage", garbage.as_str()),
        ("{\"kind\":\"Scale\",", "couldn't get version/kind; json parse error: unexpected end of JSON input"),
        ("", "Object 'Kind' is missing in ''"),
        ("null", "Object 'Kind' is missing in 'null'"),
        ("{}", "Object 'Kind' is missing in '{}'"),
        (r#"{"kind":"Deployment","apiVersion":"apps/v1"}"#, &no_kind("Deployment", "apps/v1")),
        (r#"{"kind":"Scale","apiVersion":"example.com/v1"}"#, &no_kind("Scale", "example.com/v1")),
        (r#"{"kind":"Scale","apiVersion":"autoscaling/v2"}"#, &no_kind("Scale", "autoscaling/v2")),
        // Kubernetes panics here.
        (r#"{"kind":"Status","apiVersion":"v1","status":"Failure","message":"hidden"}"#, "hidden"),
    ] {
        assert_eq!(refused(Reply::new(200, JSON, body)).await, words, "{body}");
    }
    let with = |path: &str, value: Value| {
        let mut scale = scale(&json!("app=web"));
        *scale.pointer_mut(path).unwrap() = value;
        Reply::json(&scale)
    };
    for (reply, words) in [
        (
            with("/spec/replicas", json!("3")),
            "string into Go struct field ScaleSpec.spec.replicas of type int32",
        ),
        (
            with("/spec/replicas", json!(1.5)),
            "number 1.5 into Go struct field ScaleSpec.spec.replicas of type int32",
        ),
        (
            with("/spec/replicas", json!(3_000_000_000_i64)),
            "number 3000000000 into Go struct field ScaleSpec.spec.replicas of type int32",
        ),
        (with("/status", json!("x")), "string into Go struct field Scale.status of type v1.ScaleStatus"),
    ] {
        assert_eq!(refused(reply).await, format!("json: cannot unmarshal {words}"));
    }
    for reply in [with("/spec/replicas", Value::Null), with("/spec", json!({})), with("/spec", Value::Null)] {
        assert_eq!(get(reply).await.unwrap().scale.spec_replicas, 0);
    }
}

#[tokio::test]
async fn selectors_are_normalised_as_by_client_go() {
    for (given, read) in [
        ("", ""),
        ("!a,b", "!a,b"),
        ("b==c, a in (y,x)", "a in (x,y),b=c"),
        ("z notin (b,a),y,x=1", "x=1,y,z notin (a,b)"),
        ("a=b,a=c", "a=c"),
        ("a in (b),a=b", "a=b,a in (b)"),
        ("a in (b)", "a in (b)"),
        ("a=", "a="),
        ("a in ()", "a in ()"),
    ] {
        assert_eq!(get(Reply::json(&scale(&json!(given)))).await.unwrap().scale.selector, read, "{given}");
    }
    let refusal = "received an object from a /scale endpoint which was not convertible to autoscaling Scale: failed to \
                   parse target selector: ";
    for (given, words) in [
        (
            "cheddar cheese",
            "couldn't parse the selector string \"cheddar cheese\": unable to parse requirement: found 'cheese', \
             expected: in, notin, =, ==, !=, gt, lt",
        ),
        ("a!=b", "\"!=\" is not a valid label selector operator"),
        ("a>1", "\"gt\" isn't supported in label selectors"),
        ("a=b,", "couldn't parse the selector string \"a=b,\": found '', expected: identifier after ','"),
        (
            "a in (x",
            "couldn't parse the selector string \"a in (x\": unable to parse requirement: found '', expected: ',' or ')'",
        ),
        (
            "a=!!",
            "couldn't parse the selector string \"a=!!\": unable to parse requirement: found '!', expected: identifier",
        ),
        (
            "a<x",
            "couldn't parse the selector string \"a<x\": unable to parse requirement: values[0]: Invalid value: \
             \"x\": for 'Gt', 'Lt' operators, the value must be an integer",
        ),
    ] {
        assert_eq!(refused(Reply::json(&scale(&json!(given)))).await, format!("{refusal}{words}"));
    }
}

#[tokio::test]
async fn scales_of_old_api_versions_are_decoded() {
    let old = |version: &str, status: Value| {
        let mut scale = scale(&Value::Null);
        (scale["apiVersion"], scale["status"]) = (json!(version), status);
        Reply::json(&scale)
    };
    for (version, status, selector) in [
        (
            "extensions/v1beta1",
            json!({"replicas": 1, "selector": {"app": "web", "b": "c"}, "targetSelector": "app=web"}),
            "app=web",
        ),
        ("extensions/v1beta1", json!({"replicas": 1, "selector": {"b": "c", "app": "web"}}), "app=web,b=c"),
        ("apps/v1beta2", json!({"replicas": 1}), ""),
    ] {
        assert_eq!(get(old(version, status)).await.unwrap().scale.selector, selector);
    }
    let text = refused(old("extensions/v1beta1", json!({"selector": "a=b"}))).await;
    assert_eq!(
        text,
        "json: cannot unmarshal string into Go struct field ScaleStatus.status.selector of type map[string]string"
    );
}

#[tokio::test]
async fn a_write_sends_the_read_scale_with_another_count() {
    let mut held = scale(&json!("b==c, a in (y,x)"));
    held["metadata"]["labels"] = json!({"a": "b"});
    let fake = server(move |_| Reply::json(&held));
    let scales = scales(&fake);
    let held = scales.get("ns", "apps/v1", "Deployment", "web").await.unwrap();
    fake.taken();
    scales.put("ns", "web", &held, 7).await.unwrap();
    let sent = fake.taken();
    assert_eq!(sent[0].line, "PUT /apis/apps/v1/namespaces/ns/deployments/web/scale");
    assert_eq!(sent[0].headers["content-type"], "application/json");
    assert_eq!(
        serde_json::from_str::<Value>(&sent[0].body).unwrap(),
        json!({"kind": "Scale", "apiVersion": "autoscaling/v1",
            "metadata": {"name": "web", "namespace": "ns", "uid": "u", "resourceVersion": "5", "labels": {"a": "b"}},
            "spec": {"replicas": 7}, "status": {"replicas": 2, "selector": "a in (x,y),b=c"}})
    );
}

#[tokio::test]
async fn conflicts_are_distinguished_from_other_failures() {
    let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Conflict", "code": 409,
        "message": "Operation cannot be fulfilled on deployments.apps \"web\": the object has been modified; please \
                    apply your changes to the latest version and try again"});
    for (code, kind, detail, words, conflict) in [
        (409, JSON, status.to_string(), status["message"].as_str().unwrap(), true),
        (409, TEXT, "x".to_owned(), "the server reported a conflict (put deployments web)", true),
        (403, TEXT, "denied".to_owned(), "denied (put deployments web)", false),
        (200, JSON, String::new(), "Object 'Kind' is missing in ''", false),
        (
            200,
            JSON,
            scale(&json!("a!=b")).to_string(),
            "received an object from a /scale endpoint which was not convertible to autoscaling Scale: failed to parse \
             target selector: \"!=\" is not a valid label selector operator",
            false,
        ),
    ] {
        let fake = server(move |request| {
            if request.line.starts_with("GET") {
                return Reply::json(&scale(&json!("app=web")));
            }
            Reply::new(code, kind, &detail)
        });
        let scales = scales(&fake);
        let held = scales.get("ns", "apps/v1", "Deployment", "web").await.unwrap();
        let error = scales.put("ns", "web", &held, 7).await.unwrap_err();
        assert_eq!((error.text.as_str(), error.conflict), (words, conflict));
    }
}

#[tokio::test]
async fn a_scale_without_discovery_entry_is_not_written() {
    let fake = server(|_| Reply::json(&scale(&json!("app=web"))));
    let scales = scales(&fake);
    let held = scales.get("ns", "autoscaling/v1", "HorizontalPodAutoscaler", "web").await.unwrap();
    fake.taken();
    let error = scales.put("ns", "web", &held, 7).await.unwrap_err();
    assert_eq!(
        error.text,
        "could not find proper group-version for scale subresource of autoscaling/v2, \
         Resource=horizontalpodautoscalers: could not find scale subresource for autoscaling/v2, \
         Resource=horizontalpodautoscalers in discovery information"
    );
    assert!(fake.lines().is_empty());
}

#[tokio::test]
async fn localkube_is_scaled_and_reports_conflicts() {
    let cluster = Cluster::start(Options { workloads: false, ..Options::default() }).await.unwrap();
    let client = cluster.client();
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": {
            "metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}});
    let create = http::Request::post("/apis/apps/v1/namespaces/default/deployments")
        .header("Content-Type", "application/json")
        .body(deployment.to_string().into_bytes())
        .unwrap();
    client.request::<Value>(create).await.unwrap();
    let scales = ScaleClient::new(client.clone(), Discovery::new(client));
    let gone = scales.get("default", "apps/v1", "Deployment", "gone").await.unwrap_err();
    assert_eq!(gone, ScaleReadError::Query("deployments.apps \"gone\" not found".into()));
    let held = scales.get("default", "apps/v1", "Deployment", "web").await.unwrap();
    assert_eq!((held.scale.spec_replicas.get(), held.scale.selector.as_str()), (3, "app=web"));
    let written = scales.put("default", "web", &held, 5).await.unwrap();
    assert_eq!(written.scale.spec_replicas, 5);
    assert_ne!(written.resource_version, held.resource_version);
    let error = scales.put("default", "web", &held, 6).await.unwrap_err();
    assert!(error.conflict && error.text.starts_with("Operation cannot be fulfilled on"), "{}", error.text);
    let again = scales.refetch("default", "web", &held).await.unwrap();
    assert_eq!(again.resource_version, written.resource_version);
    assert_eq!(scales.put("default", "web", &again, 6).await.unwrap().scale.spec_replicas, 6);
}
