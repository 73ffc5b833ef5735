//! `KEDA_RESTRICT_SECRET_ACCESS`: Secrets of one namespace only.

use keda::environment::{SourceKind, SourceRef};
use scalers::backends::{Cluster as _, ConfigSource};
use serde_json::json;

use super::env::TestEnv;
use crate::operator::OperatorSettings;
use crate::operator::auth::AuthObjects as _;
use crate::operator::cluster_reader::ClusterReader;
use crate::operator::credential_reader::CredentialReader;
use crate::operator::leader_client::LeaderClient;
use crate::operator::secret_access::SecretAccess;

#[tokio::test(start_paused = true)]
async fn restricted_secrets_are_not_requested() {
    let env = TestEnv::start().await;
    let keda = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "keda"}});
    env.create("/api/v1/namespaces", keda).await;
    let object = |kind: &str, data: &str| json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": "x"}, "data": {"key": data}});
    for namespace in ["shop", "keda"] {
        env.create(&format!("/api/v1/namespaces/{namespace}/secrets"), object("Secret", "Nw==")).await;
    }
    env.create("/api/v1/namespaces/shop/configmaps", object("ConfigMap", "5")).await;

    let discovery = cluster::discovery::Discovery::new(env.client.clone());
    let leadership = cluster::lease::Leadership::without_election();
    let client = LeaderClient::new(env.client.clone(), discovery, leadership);
    let (secrets, maps) = (ConfigSource::Secret, ConfigSource::ConfigMap);
    for restrict_secret_access in [true, false] {
        let settings = OperatorSettings { restrict_secret_access, ..OperatorSettings::default() };
        let access = SecretAccess::from(&settings);
        let reader =
            ClusterReader::new(client.clone(), std::sync::Arc::default(), settings.compat, access.clone());
        let credentials = CredentialReader::new(client.clone(), std::sync::Arc::default(), access);
        assert_eq!(reader.entry(maps, "shop", "x", "key").await.unwrap().unwrap(), b"5");
        assert_eq!(reader.entry(secrets, "keda", "x", "key").await.unwrap().unwrap(), b"7");
        assert_eq!(credentials.secret("keda", "x").await.unwrap()["key"], b"7");
        let of_shop =
            SourceRef { kind: SourceKind::Secret, namespace: "shop".to_owned(), name: "x".to_owned() };
        if restrict_secret_access {
            let text =
                "Secret shop/x is not read: KEDA_RESTRICT_SECRET_ACCESS restricts secrets to namespace keda";
            assert_eq!(reader.entry(secrets, "shop", "x", "key").await.unwrap_err().to_string(), text);
            assert_eq!(credentials.secret("shop", "x").await.unwrap_err().to_string(), text);
            assert_eq!(credentials.current_version(&of_shop).await, None);
        } else {
            assert_eq!(reader.entry(secrets, "shop", "x", "key").await.unwrap().unwrap(), b"7");
            assert_eq!(credentials.secret("shop", "x").await.unwrap()["key"], b"7");
            assert!(credentials.current_version(&of_shop).await.is_some());
        }
    }
}
