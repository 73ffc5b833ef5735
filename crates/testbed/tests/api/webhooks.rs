//! Validating webhooks that cannot be reached.

use serde_json::{Value, json};
use testbed::cases;
use testbed::harness::{Case, Session};

use crate::objects::*;

pub(crate) const CASES: &[Case] =
    cases![a_failure_is_ignored, a_failure_refuses, only_what_its_rules_say, on_a_dry_run_too];

/// A webhook for ConfigMaps of this namespace with the label `checked`, whose server does not run.
fn guard(failure: &str) -> Value {
    let mut object = webhook("{ns}");
    let hook = &mut object["webhooks"][0];
    hook["failurePolicy"] = json!(failure);
    hook["timeoutSeconds"] = json!(2);
    hook["namespaceSelector"] = json!({"matchLabels": {"kubernetes.io/metadata.name": "{ns}"}});
    hook["objectSelector"] = json!({"matchLabels": {"checked": "yes"}});
    hook["rules"] = json!([{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}]);
    object
}

/// Waits until the API server uses the configuration, which takes some time.
async fn guarded(s: &Session, failure: &str) {
    s.delete_at_end(&at(WEBHOOKS, "{ns}"));
    let mut both = guard(failure);
    let mut probe = both["webhooks"][0].clone();
    probe["name"] = json!("probe.example.com");
    probe["failurePolicy"] = json!("Fail");
    probe["objectSelector"] = json!({"matchLabels": {"checked": "probe"}});
    both["webhooks"].as_array_mut().unwrap().push(probe);
    s.request(http::Method::POST, WEBHOOKS).json(both).send_unrecorded().await;
    for at in 0..500 {
        let object = labelled(&format!("probe-{at}"), &json!({"checked": "probe"}));
        if s.request(http::Method::POST, CONFIG_MAPS).json(object).send_unrecorded().await.code == 500 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

async fn a_failure_is_ignored(s: Session) {
    guarded(&s, "Ignore").await;
    s.post(CONFIG_MAPS, labelled("a", &json!({"checked": "yes"}))).await;
}

async fn a_failure_refuses(s: Session) {
    guarded(&s, "Fail").await;
    s.post(CONFIG_MAPS, labelled("a", &json!({"checked": "yes"}))).await;
    s.get(&at(CONFIG_MAPS, "a")).await;
}

async fn only_what_its_rules_say(s: Session) {
    guarded(&s, "Fail").await;
    s.post(CONFIG_MAPS, labelled("a", &json!({"checked": "no"}))).await;
    s.post(SECRETS, secret("a")).await;
    s.delete(&at(CONFIG_MAPS, "a")).await;
}

async fn on_a_dry_run_too(s: Session) {
    guarded(&s, "Fail").await;
    s.post(&format!("{CONFIG_MAPS}?dryRun=All"), labelled("a", &json!({"checked": "yes"}))).await;
}
