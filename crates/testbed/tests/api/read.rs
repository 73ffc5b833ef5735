//! Reads of single objects and lists.

use serde_json::json;
use testbed::cases;
use testbed::harness::{Case, Session};

use crate::objects::*;

pub(crate) const CASES: &[Case] = cases![
    what_is_not_there,
    a_list_of_each_kind,
    lists_are_in_order_of_names,
    a_list_over_all_namespaces,
    only_metadata,
    only_metadata_of_a_list,
    a_version_of_the_past_or_the_future,
    versions_in_lists,
    no_change_no_new_version,
];

async fn what_is_not_there(s: Session) {
    s.get(&at(CONFIG_MAPS, "absent")).await;
    s.get(&at(DEPLOYMENTS, "absent")).await;
    s.get(&at(HPAS_V1, "absent")).await;
    s.get(&at(LEASES, "absent")).await;
    s.get(&at(NODES, "{ns}-absent")).await;
    s.get("/api/v1/namespaces/{ns}-absent/pods/absent").await;
}

async fn a_list_of_each_kind(s: Session) {
    let each = one_of_each("a");
    for (collection, object) in &each {
        let mut object = object.clone();
        object["metadata"]["labels"] = json!({"mine": "yes"});
        s.request(http::Method::POST, collection).json(object).send_unrecorded().await;
        s.get(&format!("{collection}?labelSelector=mine")).await;
        s.get(&format!("{collection}?labelSelector=nobodys")).await;
    }
}

async fn lists_are_in_order_of_names(s: Session) {
    for name in ["b", "a-1", "a", "a.b", "c0", "c"] {
        s.post(LEASES, lease(name)).await;
    }
    s.get(LEASES).await;
}

async fn a_list_over_all_namespaces(s: Session) {
    s.post(CONFIG_MAPS, labelled("a", &json!({"of": "{ns}"}))).await;
    s.get("/api/v1/configmaps?labelSelector=of={ns}").await;
    s.get("/apis/apps/v1/deployments?labelSelector=of={ns}").await;
    s.post("/api/v1/configmaps", config_map("b")).await;
    s.get("/api/v1/configmaps/a").await;
}

const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

async fn only_metadata(s: Session) {
    s.post(HPAS, hpa("a")).await;
    s.get_as(&at(HPAS, "a"), METADATA).await;
    s.get_as(&at(HPAS_V1, "a"), METADATA).await;
    s.get_as(&at(HPAS, "a"), METADATA_LIST).await;
    s.get_as(&at(HPAS, "absent"), METADATA).await;
}

async fn only_metadata_of_a_list(s: Session) {
    s.post(LEASES, lease("a")).await;
    s.get_as(LEASES, METADATA_LIST).await;
    s.get_as(LEASES, METADATA).await;
    s.get_as(LEASES, &format!("{METADATA_LIST},application/json")).await;
}

async fn a_version_of_the_past_or_the_future(s: Session) {
    s.post(CONFIG_MAPS, config_map("a")).await;
    // Any version is accepted, also an older one.
    s.until(&format!("{}?resourceVersion=0", at(CONFIG_MAPS, "a")), |response| response.code == 200).await;
    s.get(&format!("{}?resourceVersion=1", at(CONFIG_MAPS, "a"))).await;
    s.get(&format!("{}?resourceVersion=abc", at(CONFIG_MAPS, "a"))).await;
    s.get(&format!("{CONFIG_MAPS}?resourceVersion=abc")).await;
}

async fn versions_in_lists(s: Session) {
    let first = s.post(LEASES, lease("a")).await.version();
    s.post(LEASES, lease("b")).await;
    let exact = format!("{LEASES}?resourceVersionMatch=Exact");
    s.request(http::Method::GET, &exact).parameter("resourceVersion", &first).send().await;
    s.until(&format!("{LEASES}?resourceVersion=0"), |response| response.body["items"][1].is_object()).await;
    s.get(&format!("{LEASES}?resourceVersion=1&resourceVersionMatch=NotOlderThan")).await;
    s.get(&format!("{LEASES}?resourceVersion=0&resourceVersionMatch=Exact")).await;
    s.get(&format!("{LEASES}?resourceVersionMatch=Exact")).await;
    s.get(&format!("{LEASES}?resourceVersion=1&resourceVersionMatch=Sometimes")).await;
}

async fn no_change_no_new_version(s: Session) {
    let made = s.post(LEASES, lease("a")).await;
    s.put(&at(LEASES, "a"), &made.body).await;
    s.get(&at(LEASES, "a")).await;
}
