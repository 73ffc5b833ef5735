//! Secret managers of clouds, whose requests are answered by functions and never sent.

use std::sync::atomic::{AtomicUsize, Ordering};

use http::{HeaderMap, StatusCode};
use scalers::identity::{Identities, IdentityEnvironment};
use scalers::web::{HttpCall, SharedHttpClient};
use sources::http::HttpResponse;

use super::*;

/// Reads these objects, with secret managers that answer by this function.
fn answered(
    objects: Vec<Value>,
    rules: AuthRules,
    answer: impl Fn(&HttpCall) -> (u16, Value) + Send + Sync + 'static,
) -> AuthResolver {
    let web = SharedHttpClient::answered_by(move |call| {
        let (status, body) = answer(call);
        let status = StatusCode::from_u16(status).unwrap();
        HttpResponse { status, headers: HeaderMap::new(), body: body.to_string().into() }
    });
    let environment =
        IdentityEnvironment::of(|name| (name == "GCE_METADATA_HOST").then(|| "metadata.test".to_owned()));
    let managers = SecretManagers::new(Arc::new(Identities::new(environment)), Arc::new(web));
    AuthResolver::new(Arc::new(ManifestObjects::new(objects)), rules).with_secret_managers(managers)
}

/// Managers that must not send anything.
fn silent(objects: Vec<Value>, rules: AuthRules) -> AuthResolver {
    answered(objects, rules, |call| panic!("{} was requested", call.url))
}

fn key(name: &str) -> Value {
    json!({"valueFrom": {"secretKeyRef": {"name": "cloud", "key": name}}})
}

/// The Secret with the credentials of the tenant.
fn credentials() -> Value {
    let data = json!({"access": "AK", "secret": "hunter2", "client": "hunter3"});
    json!({"kind": "Secret", "metadata": {"name": "cloud", "namespace": "ns"}, "stringData": data})
}

fn found(resolved: &ResolvedAuth) -> Vec<String> {
    resolved.parameters.iter().map(|(name, value)| format!("{name}={value}")).collect()
}

#[tokio::test]
async fn keys_of_one_aws_secret_are_one_request() {
    let spec = json!({"awsSecretManager": {
        "region": "eu-west-1",
        "credentials": {"accessKey": key("access"), "accessSecretKey": key("secret")},
        "secrets": [
            {"parameter": "user", "name": "db", "secretKey": "user"},
            {"parameter": "password", "name": "db", "secretKey": "password"},
            {"parameter": "old", "name": "db", "versionStage": "AWSPREVIOUS"},
        ],
    }});
    let objects = vec![authentication(&spec), credentials()];
    let requests = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&requests);
    let auth = answered(objects, rules(Compat::Better), move |call| {
        count.fetch_add(1, Ordering::SeqCst);
        assert_eq!(call.url, "https://secretsmanager.eu-west-1.amazonaws.com/");
        let authorization = call.headers.get("authorization").unwrap().to_str().unwrap();
        assert!(authorization.starts_with("AWS4-HMAC-SHA256 Credential=AK/"), "{authorization}");
        let body: Value = serde_json::from_slice(&call.body).unwrap();
        match body.get("VersionStage") {
            None => (200, json!({"SecretString": r#"{"user": "u", "password": "p"}"#})),
            Some(_) => (200, json!({"SecretString": "before"})),
        }
    });
    let resolved = resolve_as(&auth, "").await.unwrap();
    assert_eq!(found(&resolved), ["old=before", "password=p", "user=u"]);
    assert_eq!(requests.load(Ordering::SeqCst), 2);
    assert_eq!(seen(&resolved.seen), ["TriggerAuthentication ns/ta", "Secret ns/cloud"]);
}

#[tokio::test]
async fn secrets_that_are_not_read_are_named_or_left_out() {
    let aws = json!({
        "region": "eu-west-1", "credentials": {"accessKey": key("access"), "accessSecretKey": key("secret")},
        "secrets": [{"parameter": "p", "name": "db"}],
    });
    let google = json!({"podIdentity": {"provider": "gcp"}, "secrets": [{"parameter": "p", "id": "db"}]});
    let azure = json!({
        "vaultUri": "https://v.vault.azure.net", "secrets": [{"parameter": "p", "name": "db"}],
        "credentials": {"clientId": "c", "tenantId": "t", "clientSecret": key("client")},
    });
    for (field, manager, is_required) in [
        ("awsSecretManager", aws, false),
        ("gcpSecretManager", google, false),
        ("azureKeyVault", azure, true),
    ] {
        let resolve = async |compat| {
            let objects = vec![authentication(&json!({field: manager})), credentials()];
            let auth = answered(objects, rules(compat), |_| (403, json!({"message": "denied"})));
            let resolved = resolve_as(&auth, "").await;
            resolved.map(|resolved| found(&resolved)).map_err(|error| error.to_string())
        };
        let error = resolve(Compat::Better).await.unwrap_err();
        assert!(error.starts_with(&format!("TriggerAuthentication ns/ta: {field} \"db\": ")), "{error}");
        assert!(error.contains("403") && !error.contains("hunter"), "{error}");
        // KEDA fails for one of them, and goes on without the parameter for the others.
        let strict = resolve(Compat::Strict).await;
        assert_eq!(strict.is_err(), is_required, "{strict:?}");
        assert_eq!(strict.unwrap_or_default(), Vec::<String>::new());
    }
    let spec = json!({"awsSecretManager": {
        "credentials": {"accessKey": key("access"), "accessSecretKey": key("none")}, "secrets": [],
    }});
    let auth = silent(vec![authentication(&spec), credentials()], rules(Compat::Better));
    let error = resolve_as(&auth, "").await.unwrap_err().to_string();
    assert_eq!(error, "TriggerAuthentication ns/ta: Secret ns/cloud has no key \"none\"");
}

#[tokio::test]
async fn google_secrets_are_read_with_the_identity_of_the_operator() {
    let spec = json!({"gcpSecretManager": {
        "podIdentity": {"provider": "gcp"}, "secrets": [{"parameter": "p", "id": "db", "version": "3"}],
    }});
    let auth = answered(vec![authentication(&spec)], rules(Compat::Better), |call| {
        match call.url.strip_prefix("http://metadata.test/computeMetadata/v1/") {
            Some("project/project-id") => (200, json!(7)),
            Some(_) => (200, json!({"access_token": "t", "expires_in": 3600})),
            None => {
                let expected =
                    "https://secretmanager.googleapis.com/v1/projects/7/secrets/db/versions/3:access";
                assert_eq!(call.url, expected);
                (200, json!({"payload": {"data": "dg=="}}))
            }
        }
    });
    assert_eq!(found(&resolve_as(&auth, "").await.unwrap()), ["p=v"]);
}

#[tokio::test]
async fn identities_of_the_operator_need_permission_and_stay_at_the_vendor() {
    let aws = |provider: &str| json!({"awsSecretManager": {"region": "r", "podIdentity": {"provider": provider}, "secrets": []}});
    let google =
        |provider: &str| json!({"gcpSecretManager": {"podIdentity": {"provider": provider}, "secrets": []}});
    let azure = |uri: &str, identity: Value| json!({"azureKeyVault": {"vaultUri": uri, "podIdentity": identity, "secrets": []}});
    let vault = "https://v.vault.azure.net";
    let workload = json!({"provider": "azure-workload"});
    let resolve = async |spec: &Value, kind: &str, users| {
        let mut outcomes = Vec::new();
        for compat in [Compat::Better, Compat::Strict] {
            let identity = IdentityRules { users, ..IdentityRules::default() };
            let rules = AuthRules { identity, ..rules(compat) };
            let auth = silent(vec![authentication(spec), cluster_authentication(spec)], rules);
            outcomes
                .push(resolve_with(&auth, kind, None).await.map(|_| ()).map_err(|error| error.to_string()));
        }
        assert_eq!(outcomes[0], outcomes[1], "--compat=strict loosens nothing");
        outcomes.remove(0)
    };
    for spec in [aws("aws"), google("gcp"), azure(vault, workload.clone())] {
        resolve(&spec, "", IdentityUsers::Any).await.unwrap();
        let error = resolve(&spec, "", IdentityUsers::ClusterOnly).await.unwrap_err();
        assert!(error.contains("--operator-identity=cluster-only"), "{error}");
        resolve(&spec, "ClusterTriggerAuthentication", IdentityUsers::ClusterOnly).await.unwrap();
    }
    for spec in [aws("gcp"), aws("aws-eks"), google("aws"), azure(vault, json!({"provider": "aws"}))] {
        let error = resolve(&spec, "", IdentityUsers::Any).await.unwrap_err();
        assert!(error.contains("does not support podIdentity"), "{error}");
    }
    let error = resolve(&azure("https://evil.example", workload), "", IdentityUsers::Any).await.unwrap_err();
    assert!(error.contains("vaults of Azure"), "{error}");
    let authority = json!({"provider": "azure-workload", "identityAuthorityHost": "https://evil.example"});
    let error = resolve(&azure(vault, authority), "", IdentityUsers::Any).await.unwrap_err();
    assert!(error.contains("identityAuthorityHost"), "{error}");
}
