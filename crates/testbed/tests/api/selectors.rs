//! Lists with label selectors and field selectors.

use http::Method;
use serde_json::json;
use testbed::cases;
use testbed::harness::{Case, Patch, Session};

use crate::objects::*;

pub(crate) const CASES: &[Case] = cases![
    labels_equal,
    labels_in_sets,
    labels_that_exist,
    labels_together,
    labels_compared_as_numbers,
    labels_of_nonsense,
    fields_every_kind_has,
    fields_of_pods,
    fields_of_other_kinds,
    fields_that_cannot_be_selected,
    fields_of_nonsense,
    both_at_once,
];

/// The names of the selected objects, one line per selector.
async fn find(s: &Session, collection: &str, parameter: &str, selectors: &[&str]) {
    for selector in selectors {
        s.get(&format!("{collection}?{parameter}={selector}")).await;
    }
}

async fn some(s: &Session) {
    for (name, labels) in [
        ("a", json!({"mine": "1", "tier": "web", "n": "5"})),
        ("b", json!({"mine": "1", "tier": "db", "n": "17"})),
        ("c", json!({"mine": "1", "canary": ""})),
        ("d", json!({"mine": "1", "tier": "web", "example.com/x": "y"})),
    ] {
        let mut object = lease(name);
        object["metadata"]["labels"] = labels;
        s.request(Method::POST, LEASES).json(object).send_unrecorded().await;
    }
}

async fn labels_equal(s: Session) {
    some(&s).await;
    find(
        &s,
        LEASES,
        "labelSelector",
        &["tier%3Dweb", "tier%3D%3Dweb", "tier!%3Dweb", "canary%3D", "example.com/x%3Dy", ""],
    )
    .await;
}

async fn labels_in_sets(s: Session) {
    some(&s).await;
    let selectors =
        ["tier+in+(web,db)", "tier+in+(web)", "tier+notin+(web)", "canary+in+()", "tier+in+(absent)"];
    find(&s, LEASES, "labelSelector", &selectors).await;
}

async fn labels_that_exist(s: Session) {
    some(&s).await;
    find(&s, LEASES, "labelSelector", &["canary", "!canary", "absent", "example.com/x"]).await;
}

async fn labels_together(s: Session) {
    some(&s).await;
    find(
        &s,
        LEASES,
        "labelSelector",
        &["mine%3D1,tier%3Dweb", "tier+in+(web,db),!example.com/x", "tier%3Dweb,tier%3Ddb"],
    )
    .await;
}

async fn labels_compared_as_numbers(s: Session) {
    some(&s).await;
    find(&s, LEASES, "labelSelector", &["n%3E5", "n%3C17", "n%3Ex"]).await;
}

async fn labels_of_nonsense(s: Session) {
    let selectors =
        ["a%3Db%3Dc", "a+in+b", "a+b", "(", "a%3D%3D%3Db", ",", "a%20in%20(b", "-a%3Db", "a%3D-b", "a/b/c"];
    find(&s, LEASES, "labelSelector", &selectors).await;
}

async fn fields_every_kind_has(s: Session) {
    some(&s).await;
    find(
        &s,
        LEASES,
        "fieldSelector",
        &["metadata.name%3Da", "metadata.name!%3Da", "metadata.name%3D%3Db", "metadata.name%3Dabsent"],
    )
    .await;
    find(
        &s,
        LEASES,
        "fieldSelector",
        &[
            "metadata.namespace%3D{ns}",
            "metadata.namespace%3Delsewhere",
            "metadata.name%3Da,metadata.name%3Db",
        ],
    )
    .await;
}

async fn fields_of_pods(s: Session) {
    s.request(Method::POST, PODS).json(pod("a")).send_unrecorded().await;
    let mut object = pod("b");
    object["spec"]["nodeName"] = json!("nowhere");
    object["spec"]["restartPolicy"] = json!("Never");
    s.request(Method::POST, PODS).json(object).send_unrecorded().await;
    s.request(Method::PATCH, &at(PODS, "b/status"))
        .header("content-type", "application/merge-patch+json")
        .body(json!({"status": {"phase": "Running", "podIP": "10.1.2.3", "podIPs": [{"ip": "10.1.2.3"}]}}))
        .send_unrecorded()
        .await;
    let selectors = [
        "spec.nodeName%3D",
        "spec.nodeName%3Dnowhere",
        "spec.nodeName!%3D",
        "status.phase%3DPending",
        "status.phase!%3DPending",
        "spec.restartPolicy%3DNever",
        "status.podIP%3D10.1.2.3",
        "spec.schedulerName%3Ddefault-scheduler",
        "spec.serviceAccountName%3Ddefault",
        "spec.nodeName%3Dnowhere,status.phase%3DRunning",
    ];
    find(&s, PODS, "fieldSelector", &selectors).await;
    s.delete_with(&at(PODS, "b"), json!({"gracePeriodSeconds": 0})).await;
}

async fn fields_of_other_kinds(s: Session) {
    s.post(EVENTS, event("a")).await;
    let selectors = [
        "involvedObject.name%3Dweb-1",
        "involvedObject.name%3Dabsent",
        "reason%3DStarted",
        "type%3DWarning",
        "involvedObject.kind%3DPod,involvedObject.namespace%3D{ns}",
        "source%3Dkubelet",
    ];
    find(&s, EVENTS, "fieldSelector", &selectors).await;
    s.post(SECRETS, secret("a")).await;
    find(&s, SECRETS, "fieldSelector", &["type%3DOpaque", "type%3Dother"]).await;
    s.get("/api/v1/namespaces?fieldSelector=status.phase%3DActive,metadata.name%3D{ns}").await;
    s.post(REPLICA_SETS, replica_set("a")).await;
    find(&s, REPLICA_SETS, "fieldSelector", &["status.replicas%3D0", "status.replicas%3D1"]).await;
    s.post(JOBS, job("a")).await;
    find(&s, JOBS, "fieldSelector", &["status.successful%3D0", "status.successful%3D1"]).await;
}

async fn fields_that_cannot_be_selected(s: Session) {
    find(&s, LEASES, "fieldSelector", &["spec.holderIdentity%3Dme"]).await;
    find(&s, CONFIG_MAPS, "fieldSelector", &["data.a%3D1"]).await;
    find(&s, PODS, "fieldSelector", &["spec.hostname%3Da"]).await;
    find(&s, DEPLOYMENTS, "fieldSelector", &["status.replicas%3D0"]).await;
    find(&s, HPAS, "fieldSelector", &["spec.maxReplicas%3D0"]).await;
}

async fn fields_of_nonsense(s: Session) {
    find(&s, LEASES, "fieldSelector", &["metadata.name", "%3Da", "metadata.name%3Ea", ","]).await;
}

async fn both_at_once(s: Session) {
    some(&s).await;
    s.get(&format!("{LEASES}?labelSelector=tier%3Dweb&fieldSelector=metadata.name%3Da")).await;
    s.get(&format!("{LEASES}?labelSelector=tier%3Ddb&fieldSelector=metadata.name%3Da")).await;
    s.patch(&at(LEASES, "a"), Patch::Merge, json!({"metadata": {"labels": null}})).await;
    s.get(&format!("{LEASES}?labelSelector=tier%3Dweb")).await;
}
