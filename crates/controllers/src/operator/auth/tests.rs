#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod limits;
mod outbound;
mod secret_managers;
mod server;

use serde_json::{Value, json};

use super::*;
use crate::operator::operator_identity::IdentityUsers;

fn rules(compat: Compat) -> AuthRules {
    let vault = VaultRules { dialer: Dialer::allowing_loopback(), ..VaultRules::default() };
    AuthRules { compat, vault, ..AuthRules::from(&OperatorSettings::default()) }
}

pub(super) fn auth(objects: &[Value], compat: Compat) -> AuthResolver {
    AuthResolver::new(Arc::new(ManifestObjects::new(objects.to_vec())), rules(compat))
}

fn authentication(spec: &Value) -> Value {
    json!({"kind": "TriggerAuthentication", "metadata": {"name": "ta", "namespace": "ns"}, "spec": spec})
}

fn cluster_authentication(spec: &Value) -> Value {
    json!({"kind": "ClusterTriggerAuthentication", "metadata": {"name": "ta"}, "spec": spec})
}

fn secret(namespace: &str, url: &str) -> Value {
    json!({"kind": "Secret", "metadata": {"name": "s", "namespace": namespace}, "stringData": {"url": url}})
}

pub(super) fn reference(kind: &str) -> AuthenticationRef {
    AuthenticationRef { name: "ta".to_owned(), kind: kind.to_owned() }
}

async fn resolve_as(auth: &AuthResolver, kind: &str) -> Result<ResolvedAuth, AuthError> {
    resolve_with(auth, kind, Some(&template())).await
}

async fn resolve_with(
    auth: &AuthResolver,
    kind: &str,
    template: Option<&PodTemplate>,
) -> Result<ResolvedAuth, AuthError> {
    let reference = reference(kind);
    auth.resolve(AuthQuery { namespace: "ns", authentication: Some(&reference), template, container: "" })
        .await
}

fn template() -> PodTemplate {
    let env = json!([{"name": "HOSTVAR", "value": "http://fromenv/v"}]);
    let workload = json!({"spec": {"template": {"spec": {"containers": [{"name": "app", "env": env}]}}}});
    PodTemplate::of_workload(&workload).unwrap()
}

fn seen(resolved: &[SourceRef]) -> Vec<String> {
    resolved.iter().map(ToString::to_string).collect()
}

#[tokio::test]
async fn variables_without_a_container_are_those_of_the_first_in_strict_mode() {
    let env = |value: &str| json!([{"name": "V", "value": value}]);
    let containers = json!([{"name": "app", "env": env("first")}, {"name": "side", "env": env("named")}]);
    let workload = json!({"spec": {"template": {"spec": {"containers": containers}}}});
    let template = PodTemplate::of_workload(&workload).unwrap();
    let spec = json!({"env": [{"parameter": "p", "name": "V"}]});
    for (compat, expected) in [(Compat::Better, "named"), (Compat::Strict, "first")] {
        let (auth, reference) = (auth(&[authentication(&spec)], compat), reference(""));
        let authentication = Some(&reference);
        let query =
            AuthQuery { namespace: "ns", authentication, template: Some(&template), container: "side" };
        assert_eq!(auth.resolve(query).await.unwrap().parameters["p"], expected);
    }
}

#[tokio::test]
async fn later_sources_overwrite_earlier_ones() {
    let spec = json!({
        "env": [{"parameter": "host", "name": "HOSTVAR"}, {"parameter": "other", "name": "HOSTVAR"}],
        "configMapTargetRef": [{"parameter": "host", "name": "c", "key": "url"}],
        "secretTargetRef": [{"parameter": "host", "name": "s", "key": "url"}],
    });
    let map = json!({"kind": "ConfigMap", "metadata": {"name": "c", "namespace": "ns"}, "data": {"url": "http://cm"}});
    let auth = auth(&[authentication(&spec), map, secret("ns", "http://secret")], Compat::Better);
    let resolved = resolve_as(&auth, "").await.unwrap();
    assert_eq!(resolved.parameters["host"], "http://secret");
    assert_eq!(resolved.parameters["other"], "http://fromenv/v");
    assert_eq!(resolved.identity.provider, "none");
    assert_eq!(seen(&resolved.seen), ["TriggerAuthentication ns/ta", "ConfigMap ns/c", "Secret ns/s"]);
    assert!(!format!("{resolved:?}").contains("http://"));
}

#[tokio::test]
async fn cluster_trigger_authentication_reads_secrets_of_one_namespace() {
    let spec = json!({"secretTargetRef": [{"parameter": "host", "name": "s", "key": "url"}]});
    let objects = [cluster_authentication(&spec), secret("ns", "theirs"), secret("keda", "ours")];
    let resolved = resolve_as(&auth(&objects, Compat::Better), "ClusterTriggerAuthentication").await.unwrap();
    assert_eq!(resolved.parameters["host"], "ours");
}

#[tokio::test]
async fn missing_objects_are_named() {
    let error = async |objects: &[Value]| resolve_as(&auth(objects, Compat::Better), "").await.unwrap_err();
    let nothing = error(&[]).await;
    assert_eq!(nothing.to_string(), "TriggerAuthentication ns/ta does not exist");
    assert_eq!(seen(&nothing.seen), ["TriggerAuthentication ns/ta"]);
    let spec = json!({"secretTargetRef": [{"parameter": "host", "name": "s", "key": "nokey"}]});
    let no_secret = error(&[authentication(&spec)]).await;
    assert_eq!(no_secret.to_string(), "TriggerAuthentication ns/ta: Secret ns/s does not exist");
    assert_eq!(seen(&no_secret.seen), ["TriggerAuthentication ns/ta", "Secret ns/s"]);
    let no_key = error(&[authentication(&spec), secret("ns", "u")]).await;
    assert_eq!(no_key.to_string(), "TriggerAuthentication ns/ta: Secret ns/s has no key \"nokey\"");
    let spec = json!({"configMapTargetRef": [{"parameter": "host", "name": "c", "key": "k"}]});
    assert_eq!(
        error(&[authentication(&spec)]).await.to_string(),
        "TriggerAuthentication ns/ta: ConfigMap ns/c does not exist"
    );
    let spec = json!({"env": [{"parameter": "p", "name": "V", "containerName": "ghost"}]});
    assert_eq!(
        error(&[authentication(&spec)]).await.to_string(),
        "TriggerAuthentication ns/ta: couldn't find container with name ghost on Target object"
    );
    let spec = json!({"awsSecretManager": {}});
    assert_eq!(
        error(&[authentication(&spec)]).await.to_string(),
        "TriggerAuthentication ns/ta: awsSecretManager needs a podIdentity, or credentials that are not empty"
    );
}

#[tokio::test]
async fn service_principal_becomes_parameters() {
    let key = json!({"valueFrom": {"secretKeyRef": {"name": "s", "key": "url"}}});
    let spec = json!({"azureServicePrincipal": {"tenantId": "t", "clientId": "c", "clientSecret": key}});
    let resolver = auth(&[authentication(&spec), secret("ns", "hush")], Compat::Better);
    let resolved = resolve_as(&resolver, "").await.unwrap();
    let found: Vec<_> = resolved.parameters.iter().map(|(name, value)| format!("{name}={value}")).collect();
    assert_eq!(
        found,
        [
            "azureServicePrincipal=true",
            "azureServicePrincipalClientId=c",
            "azureServicePrincipalClientSecret=hush",
            "azureServicePrincipalTenantId=t",
        ]
    );
    assert_eq!(seen(&resolved.seen), ["TriggerAuthentication ns/ta", "Secret ns/s"]);
    let strict = resolve_as(&auth(&[authentication(&spec)], Compat::Strict), "").await.unwrap();
    assert_eq!(
        strict.parameters["azureServicePrincipalClientSecret"], "",
        "a missing Secret is an empty value"
    );
    assert!(resolve_as(&auth(&[authentication(&spec)], Compat::Better), "").await.is_err());
}

#[tokio::test]
async fn missing_values_are_empty_in_strict_mode() {
    let spec = json!({"secretTargetRef": [{"parameter": "host", "name": "s", "key": "nokey"}]});
    let resolved = resolve_as(&auth(&[authentication(&spec)], Compat::Strict), "").await.unwrap();
    assert_eq!(resolved.parameters["host"], "");
    let resolved = resolve_as(&auth(&[], Compat::Strict), "").await.unwrap();
    assert!(resolved.parameters.is_empty());
    assert!(resolve_as(&auth(&[], Compat::Strict), "Other").await.unwrap().parameters.is_empty());
    assert!(resolve_as(&auth(&[], Compat::Better), "Other").await.is_err());
}

#[tokio::test]
async fn restricted_secrets_are_read_in_one_namespace_only() {
    let spec = json!({"secretTargetRef": [{"parameter": "host", "name": "s", "key": "url"}]});
    let objects =
        [authentication(&spec), cluster_authentication(&spec), secret("ns", "a"), secret("keda", "b")];
    let settings = OperatorSettings { restrict_secret_access: true, ..OperatorSettings::default() };
    let rules = AuthRules::from(&settings);
    let auth = AuthResolver::new(Arc::new(ManifestObjects::new(objects.to_vec())), rules);
    let error = resolve_as(&auth, "").await.unwrap_err().to_string();
    assert!(error.contains("Secret ns/s is not read"), "{error}");
    let resolved = resolve_as(&auth, "ClusterTriggerAuthentication").await.unwrap();
    assert_eq!(resolved.parameters["host"], "b");
}

#[tokio::test]
async fn file_path_needs_cluster_trigger_authentication_and_root_folder() {
    let folder = std::env::temp_dir().join(format!("plimsoll-auth-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("good.json"), r#"{"host": "h"}"#).unwrap();
    std::fs::write(folder.join("bad.json"), r#"{"password": hunter2}"#).unwrap();
    let with = |path: &str, root: Option<PathBuf>| {
        let spec = json!({"filePath": path, "env": [{"parameter": "x", "name": "HOSTVAR"}]});
        let rules = AuthRules { file_root: root, ..rules(Compat::Better) };
        let objects = vec![authentication(&spec), cluster_authentication(&spec)];
        AuthResolver::new(Arc::new(ManifestObjects::new(objects)), rules)
    };
    let cluster = "ClusterTriggerAuthentication";
    let root = || Some(folder.clone());
    let good = resolve_as(&with("good.json", root()), cluster).await.unwrap();
    assert_eq!(good.parameters, BTreeMap::from([("host".to_owned(), "h".to_owned())]));
    let error = async |path, root, kind| resolve_as(&with(path, root), kind).await.unwrap_err().to_string();
    assert_eq!(
        error("good.json", root(), "").await,
        "filePath is only supported for ClusterTriggerAuthentication, got kind: "
    );
    assert_eq!(error("good.json", None, cluster).await, "filepath-auth-root-path not configured");
    for path in ["/etc/passwd", "../x", "a/../../b"] {
        assert_eq!(error(path, root(), cluster).await, "filePath must be relative and not contain '..'");
    }
    assert!(!error("bad.json", root(), cluster).await.contains("hunter2"));
    assert!(error("none.json", root(), cluster).await.contains("failed to read"));
    std::fs::remove_dir_all(&folder).unwrap();
}

#[tokio::test]
async fn oauth2_fields_become_parameters() {
    let spec = json!({"oauth2": {
        "clientId": "me", "tokenUrl": "http://t", "scopes": ["a", "b"], "tokenUrlParams": {"z": "1 2", "k": "&"},
        "clientSecret": {"valueFrom": {"secretKeyRef": {"name": "s", "key": "url"}}},
    }});
    let resolved =
        resolve_as(&auth(&[authentication(&spec), secret("ns", "x")], Compat::Better), "").await.unwrap();
    let wanted = [
        ("clientID", "me"),
        ("clientSecret", "x"),
        ("endpointParams", "k=%26&z=1+2"),
        ("oauthTokenURI", "http://t"),
        ("scopes", "a,b"),
    ];
    assert_eq!(resolved.parameters, wanted.map(|(name, value)| (name.to_owned(), value.to_owned())).into());
}

#[tokio::test]
async fn roles_come_from_the_identity_or_from_the_workload() {
    let account = json!({"kind": "ServiceAccount", "metadata": {
        "name": "default", "namespace": "ns", "annotations": {"eks.amazonaws.com/role-arn": "arn:w"}}});
    let with = async |identity: Value, account: Option<&Value>| {
        let mut objects = vec![authentication(&json!({"podIdentity": identity}))];
        objects.extend(account.cloned());
        resolve_as(&auth(&objects, Compat::Better), "").await
    };
    let role = |resolved: Result<ResolvedAuth, AuthError>| resolved.unwrap().parameters.remove("awsRoleArn");
    assert_eq!(
        role(with(json!({"provider": "aws", "roleArn": "arn:k"}), None).await),
        Some("arn:k".to_owned())
    );
    let workload = json!({"provider": "aws", "identityOwner": "workload"});
    assert_eq!(role(with(workload.clone(), Some(&account)).await), Some("arn:w".to_owned()));
    assert!(with(workload, None).await.is_err());
    let both = json!({"provider": "aws", "identityOwner": "workload", "roleArn": "arn:k"});
    assert!(with(both, Some(&account)).await.is_err());
    assert_eq!(role(with(json!({"provider": "aws-eks"}), Some(&account)).await), Some("arn:w".to_owned()));
    assert_eq!(role(with(json!({"provider": "aws-eks"}), None).await), None);
    let azure = with(json!({"provider": "azure-workload", "identityId": ""}), None).await.unwrap_err();
    assert_eq!(azure.to_string(), "IdentityID of PodIdentity should not be empty");
    let objects = [authentication(&json!({"podIdentity": {"provider": "azure-workload", "identityId": ""}}))];
    assert!(resolve_with(&auth(&objects, Compat::Better), "", None).await.is_ok());
}

#[tokio::test]
async fn variables_of_the_target_are_read() {
    let env = json!([{"name": "H", "valueFrom": {"secretKeyRef": {"name": "s", "key": "url"}}}]);
    let workload = json!({"spec": {"template": {"spec": {"containers": [{"name": "app", "env": env}]}}}});
    let template = PodTemplate::of_workload(&workload).unwrap();
    let found =
        auth(&[secret("ns", "u")], Compat::Better).environment("ns", Some(&template), "").await.unwrap();
    assert_eq!(found.variables["H"], "u");
    let error = auth(&[], Compat::Better).environment("ns", Some(&template), "").await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "error resolving secrets for ScaleTarget: error resolving secret name &SecretKeySelector{LocalObjectReference:\
         LocalObjectReference{Name:s,},Key:url,Optional:nil,} for env H in namespace ns"
    );
    assert_eq!(seen(&error.seen), ["Secret ns/s"]);
}

#[tokio::test]
async fn tenants_choose_neither_the_authority_nor_use_reserved_identities() {
    let with = async |kind: &str, identity: Value, users| {
        let spec = json!({"podIdentity": identity});
        let objects = vec![authentication(&spec), cluster_authentication(&spec)];
        let resolve = async |compat| {
            let identity = IdentityRules { users, ..IdentityRules::default() };
            let rules = AuthRules { identity, ..rules(compat) };
            let auth = AuthResolver::new(Arc::new(ManifestObjects::new(objects.clone())), rules);
            resolve_with(&auth, kind, None).await.map(|_| ()).map_err(|error| error.to_string())
        };
        let (better, strict) = (resolve(Compat::Better).await, resolve(Compat::Strict).await);
        assert_eq!(better, strict, "--compat=strict loosens nothing");
        strict
    };
    let authority = json!({"provider": "azure-workload", "identityAuthorityHost": "https://evil"});
    let error = with("", authority.clone(), IdentityUsers::Any).await.unwrap_err();
    assert!(error.contains("ns/ta") && error.contains("identityAuthorityHost"), "{error}");
    with("ClusterTriggerAuthentication", authority, IdentityUsers::Any).await.unwrap();
    for provider in ["aws", "aws-eks", "azure-workload", "gcp"] {
        let identity = json!({"provider": provider});
        with("", identity.clone(), IdentityUsers::Any).await.unwrap();
        let error = with("", identity.clone(), IdentityUsers::ClusterOnly).await.unwrap_err();
        assert!(error.contains(provider) && error.contains("ClusterTriggerAuthentication"), "{error}");
        with("ClusterTriggerAuthentication", identity, IdentityUsers::ClusterOnly).await.unwrap();
    }
    with("", json!({"provider": "none"}), IdentityUsers::ClusterOnly).await.unwrap();
}
