//! The release of KEDA whose resource definitions a cluster has (`--keda-profile auto`).

use std::time::Duration;

use api::keda::KedaProfile;
use cluster::request::{ApiError, Request, send};
use kube::Client;

/// The published schemas of KEDA's resources. Every authenticated client may read them, unlike the definitions themselves.
const SCHEMAS: &str = "/openapi/v3/apis/keda.sh/v1alpha1";
/// The document has about a megabyte.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(15);

/// The newest profile whose resource definitions the cluster has.
pub async fn installed_profile(client: &Client) -> Result<KedaProfile, ApiError> {
    let schemas = send(client, Request::get(SCHEMAS, "openapi", REQUEST_TIMEOUT)).await?;
    Ok(profile_of(&schemas))
}

/// The newest profile with a field that is in these schemas. The document is searched, not decoded, because it is large and one
/// name is all that is needed.
fn profile_of(schemas: &[u8]) -> KedaProfile {
    let is_there = |field: &str| {
        let quoted = format!("\"{field}\"");
        schemas.windows(quoted.len()).any(|window| window == quoted.as_bytes())
    };
    let newer = KedaProfile::ALL.into_iter().rev();
    newer
        .filter(|profile| profile.behavior().definition_field.is_some_and(is_there))
        .max()
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use http::Method;
    use localkube::{Cluster, Options};
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn fields_tell_releases_apart() {
        assert_eq!(profile_of(b"{}"), KedaProfile::V2_20);
        assert_eq!(profile_of(br#"{"oauth2": {}}"#), KedaProfile::V2_20);
        assert_eq!(profile_of(br#"{"azureServicePrincipal": {}}"#), KedaProfile::V2_21);
    }

    async fn define(client: &Client, fields: Value) {
        let spec = json!({"type": "object", "properties": fields});
        let schema = json!({"type": "object", "properties": {"spec": spec}});
        let names = json!({"kind": "TriggerAuthentication", "plural": "triggerauthentications", "singular": "triggerauthentication",
            "listKind": "TriggerAuthenticationList"});
        let version = json!({"name": "v1alpha1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}});
        let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "triggerauthentications.keda.sh"},
            "spec": {"group": "keda.sh", "scope": "Namespaced", "names": names, "versions": [version]}});
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let body = Some(("application/json", definition.to_string().into_bytes()));
        let request = Request { method: Method::POST, body, ..Request::get(path, "", REQUEST_TIMEOUT) };
        send(client, request).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn profile_follows_the_definitions_of_the_cluster() {
        for (fields, expected) in [
            (json!({"filePath": {"type": "string"}}), KedaProfile::V2_20),
            (json!({"azureServicePrincipal": {"type": "object"}}), KedaProfile::V2_21),
        ] {
            let running = Cluster::start(Options { workloads: false, ..Options::default() }).await.unwrap();
            let client = running.client();
            assert!(installed_profile(&client).await.is_err(), "KEDA is not installed");
            define(&client, fields).await;
            assert_eq!(installed_profile(&client).await.unwrap(), expected);
        }
    }
}
