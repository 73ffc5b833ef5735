//! Dry runs.

use serde_json::json;
use testbed::cases;
use testbed::harness::{Case, Patch, Session};

use crate::objects::*;

pub(crate) const CASES: &[Case] = cases![creates, updates, patches, applies, deletes, refuses, scales];

async fn creates(s: Session) {
    let mut object = s
        .request(http::Method::POST, &format!("{CONFIG_MAPS}?dryRun=All"))
        .json(config_map("a"))
        .send_unrecorded()
        .await
        .body;
    // The object has no resource version.
    assert_eq!(object.pointer("/metadata/resourceVersion"), None);
    object["metadata"]["uid"] = json!("");
    s.note("what would be made", object);
    s.get(&at(CONFIG_MAPS, "a")).await;
}

async fn updates(s: Session) {
    let mut object = s.post(CONFIG_MAPS, config_map("a")).await.body;
    object["data"] = json!({"b": "2"});
    s.put(&format!("{}?dryRun=All", at(CONFIG_MAPS, "a")), &object).await;
    s.put(&format!("{}?dryRun=All", at(CONFIG_MAPS, "a")), &object).await;
    s.get(&at(CONFIG_MAPS, "a")).await;
}

async fn patches(s: Session) {
    s.post(DEPLOYMENTS, deployment("a")).await;
    s.patch(&format!("{}?dryRun=All", at(DEPLOYMENTS, "a")), Patch::Merge, json!({"spec": {"replicas": 7}}))
        .await;
    s.get(&at(DEPLOYMENTS, "a")).await;
}

async fn applies(s: Session) {
    s.patch(&format!("{}?fieldManager=one", at(CONFIG_MAPS, "a")), Patch::Apply, config_map("a")).await;
    let mut object = config_map("a");
    object["data"] = json!({"b": "2"});
    s.patch(&format!("{}?fieldManager=one&dryRun=All", at(CONFIG_MAPS, "a")), Patch::Apply, object).await;
    s.get(&at(CONFIG_MAPS, "a")).await;
}

async fn deletes(s: Session) {
    s.post(CONFIG_MAPS, config_map("a")).await;
    s.delete(&format!("{}?dryRun=All", at(CONFIG_MAPS, "a"))).await;
    s.delete_with(&at(CONFIG_MAPS, "a"), json!({"dryRun": ["All"]})).await;
    s.get(&at(CONFIG_MAPS, "a")).await;
}

async fn refuses(s: Session) {
    s.post(CONFIG_MAPS, config_map("a")).await;
    s.post(&format!("{CONFIG_MAPS}?dryRun=All"), config_map("a")).await;
    s.post(&format!("{CONFIG_MAPS}?dryRun=All"), config_map("Upper")).await;
    s.put(&format!("{}?dryRun=All", at(CONFIG_MAPS, "absent")), config_map("absent")).await;
    s.post(&format!("{CONFIG_MAPS}?dryRun=Some"), config_map("b")).await;
}

async fn scales(s: Session) {
    s.post(DEPLOYMENTS, deployment("a")).await;
    s.patch(
        &format!("{}?dryRun=All", at(DEPLOYMENTS, "a/scale")),
        Patch::Merge,
        json!({"spec": {"replicas": 7}}),
    )
    .await;
    s.get(&at(DEPLOYMENTS, "a/scale")).await;
}
