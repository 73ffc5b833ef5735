//! Which credentials reach which Vault.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use cluster::Clock;
use jiff::Timestamp;
use sources::http::Secret;

use super::*;
use crate::operator::OperatorSettings;
use crate::operator::auth::{
    AuthObjects, AuthResolver, AuthRules, Fetch, FetchError, ManifestObjects, VaultRules,
};
use crate::operator::operator_identity::audiences::{TokenAudiences, TokenMode};
use crate::operator::operator_identity::outbound::OutboundFilter;
use crate::operator::operator_identity::{IdentityRules, IdentityUsers};

const VAULT_RESPONSES: &[(&str, u16, &str)] = &[
    ("/v1/auth/k8s/login", 200, r#"{"auth": {"client_token": "t1"}}"#),
    ("/v1/auth/token/lookup-self", 200, r#"{"data": {"renewable": false}}"#),
    ("/v1/kv/a", 200, r#"{"data": {"k": "v"}}"#),
];
/// Stands for the address of the Vault, whose port is not known before.
const LISTED: &str = "http://listed";
const OWN: &str = "operators-own";
const MOUNTED: &str = "mounted-for-vault";
const APPROVED: &str = "- {audience: vault, namespace: ns, serviceAccountName: me}\n- {audience: file}\n";

/// A token whose header names it.
fn jwt(name: &str, account: &str, audience: &str) -> String {
    let claims = json!({"sub": format!("system:serviceaccount:{account}"), "aud": [audience], "exp": 2000});
    format!("{name}.{}.s", URL_SAFE_NO_PAD.encode(claims.to_string()))
}

/// A folder with the tokens of the operator.
struct TokenFolder(PathBuf);

impl TokenFolder {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("plimsoll-identity-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("own"), jwt(OWN, "keda:operator", "file")).unwrap();
        std::fs::write(folder.join("mounted"), jwt(MOUNTED, "keda:operator", "file")).unwrap();
        std::fs::write(folder.join("other"), jwt("someone-elses", "x:y", "file")).unwrap();
        Self(folder)
    }

    fn path(&self, file: &str) -> String {
        self.0.join(file).to_str().unwrap().to_owned()
    }
}

impl Drop for TokenFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Manifests whose service accounts have tokens for the requested audience.
struct Minting(ManifestObjects);

impl AuthObjects for Minting {
    fn secret<'a>(&'a self, namespace: &'a str, name: &'a str) -> Fetch<'a, BTreeMap<String, Vec<u8>>> {
        self.0.secret(namespace, name)
    }

    fn config_map<'a>(&'a self, namespace: &'a str, name: &'a str) -> Fetch<'a, BTreeMap<String, String>> {
        self.0.config_map(namespace, name)
    }

    fn service_account<'a>(
        &'a self,
        namespace: &'a str,
        name: &'a str,
    ) -> Fetch<'a, BTreeMap<String, String>> {
        self.0.service_account(namespace, name)
    }

    fn authentication<'a>(
        &'a self,
        namespace: Option<&'a str>,
        name: &'a str,
    ) -> Fetch<'a, api::keda::TriggerAuthentication> {
        self.0.authentication(namespace, name)
    }

    fn token<'a>(
        &'a self,
        namespace: &'a str,
        account: &'a str,
        audience: Option<&'a str>,
        _: Duration,
    ) -> Fetch<'a, String> {
        let token = match account {
            "empty" => Ok(String::new()),
            "me" => Ok(jwt("minted", &format!("{namespace}:me"), audience.unwrap_or("anyone"))),
            other => Err(FetchError::not_found("serviceaccounts", other)),
        };
        Box::pin(std::future::ready(token))
    }
}

fn filter(listed: Option<&str>) -> OutboundFilter {
    let listed: Vec<&str> = listed.into_iter().collect();
    OutboundFilter::parse(&json!({"hashiCorpVault": {"allowedEndpoints": listed}}).to_string()).unwrap()
}

/// Rules that list the Vault of the test, or nothing: `log_in` replaces the name by the address.
fn rules(folder: &TokenFolder, is_listed: bool, audiences: &str) -> IdentityRules {
    IdentityRules {
        outbound: filter(is_listed.then_some(LISTED)),
        audiences: TokenAudiences::parse(audiences).unwrap(),
        own_token_file: folder.path("own").into(),
        vault_token_file: folder.path("mounted").into(),
        ..IdentityRules::default()
    }
}

/// Resolves as both kinds in both modes of compatibility, which must agree; returns what was sent, and the error.
async fn log_in(
    identity: &IdentityRules,
    kind: &str,
    login: &Value,
    operators: Option<&str>,
) -> (Vec<String>, Result<(), String>) {
    let mut outcomes = Vec::new();
    for compat in [Compat::Better, Compat::Strict] {
        let (address, requests) = vault(VAULT_RESPONSES).await;
        let text = login.to_string().replace("{vault}", &address);
        let vault: Value = serde_json::from_str(&text).unwrap();
        let is_listed = identity.outbound.lists(LISTED);
        let outbound = filter(is_listed.then_some(address.as_str()));
        let identity = IdentityRules { outbound, ..identity.clone() };
        let objects = [("TriggerAuthentication", "ns"), ("ClusterTriggerAuthentication", "")].map(|(kind, namespace)| {
            json!({"kind": kind, "metadata": {"name": "ta", "namespace": namespace}, "spec": {"hashiCorpVault": vault}})
        });
        let rules = AuthRules {
            compat,
            identity,
            vault: VaultRules {
                token: operators.map(Secret::new),
                dialer: scalers::dial::Dialer::allowing_loopback(),
                ..VaultRules::default()
            },
            ..AuthRules::from(&OperatorSettings::default())
        };
        let clock = Clock::new(|| Timestamp::from_second(1000).unwrap());
        let auth = AuthResolver::new(Arc::new(Minting(ManifestObjects::new(objects.to_vec()))), rules)
            .with_clock(clock);
        let reference = reference(kind);
        let query =
            AuthQuery { namespace: "ns", authentication: Some(&reference), template: None, container: "" };
        let resolved = auth.resolve(query).await;
        let sent: Vec<String> =
            drain(requests).into_iter().map(|(_, _, token, body)| token + &body).collect();
        let failure = resolved.map(|_| ()).map_err(|error| error.to_string().replace(&address, "{vault}"));
        outcomes.push((sent, failure));
    }
    assert_eq!(outcomes[0], outcomes[1], "--compat=strict loosens nothing");
    outcomes.remove(0)
}

fn kubernetes(credential: Value) -> Value {
    let secrets = json!([{"parameter": "p", "path": "kv/a", "key": "k"}]);
    let mut login = json!({"address": "{vault}", "authentication": "kubernetes", "mount": "k8s", "role": "r", "secrets": secrets});
    if !credential.is_null() {
        login["credential"] = credential;
    }
    login
}

fn with_token(token: &str) -> Value {
    let secrets = json!([{"parameter": "p", "path": "kv/a", "key": "k"}]);
    json!({"address": "{vault}", "authentication": "token", "credential": {"token": token}, "secrets": secrets})
}

const KINDS: [&str; 2] = ["", "ClusterTriggerAuthentication"];

#[tokio::test]
async fn credentials_of_the_operator_go_only_to_listed_origins() {
    let folder = TokenFolder::new("listed");
    let own = json!({"serviceAccount": folder.path("own")});
    for kind in KINDS {
        for login in [kubernetes(Value::Null), kubernetes(own.clone()), with_token("")] {
            let (sent, failure) =
                log_in(&rules(&folder, false, APPROVED), kind, &login, Some("operators-vault-token")).await;
            assert_eq!(sent, Vec::<String>::new(), "{login}");
            let error = failure.unwrap_err();
            assert!(
                error.contains("is not sent to \"{vault}\"") && error.contains("KEDA_OUTBOUND_FILTER"),
                "{error}"
            );
        }
        let listed = rules(&folder, true, APPROVED);
        for (login, credential) in [
            (kubernetes(Value::Null), MOUNTED),
            (kubernetes(own.clone()), OWN),
            (with_token(""), "operators-vault-token"),
        ] {
            let (sent, failure) = log_in(&listed, kind, &login, Some("operators-vault-token")).await;
            assert_eq!(failure, Ok(()));
            assert!(sent[0].contains(credential), "{sent:?}");
        }
        // The token of the object is used where that of the operator is not.
        let unlisted = rules(&folder, false, APPROVED);
        let (sent, failure) =
            log_in(&unlisted, kind, &with_token("tenants"), Some("operators-vault-token")).await;
        assert_eq!((failure, sent[0].as_str()), (Ok(()), "tenants"));
    }
}

#[tokio::test]
async fn cluster_only_identity_is_not_for_namespaced_objects() {
    let folder = TokenFolder::new("cluster-only");
    let listed = IdentityRules { users: IdentityUsers::ClusterOnly, ..rules(&folder, true, APPROVED) };
    for login in [kubernetes(Value::Null), with_token("")] {
        let (sent, failure) = log_in(&listed, "", &login, Some("operators-vault-token")).await;
        assert_eq!(sent, Vec::<String>::new());
        let error = failure.unwrap_err();
        assert!(error.contains("--operator-identity=cluster-only"), "{error}");
        let (sent, failure) = log_in(&listed, KINDS[1], &login, Some("operators-vault-token")).await;
        assert_eq!((failure, sent.is_empty()), (Ok(()), false));
    }
    let minted = kubernetes(json!({"serviceAccountName": "me"}));
    assert_eq!(log_in(&listed, "", &minted, None).await.1, Ok(()));
}

#[tokio::test]
async fn no_file_that_an_object_chooses_is_read() {
    let folder = TokenFolder::new("files");
    let up = format!("{}/../{}/own", folder.0.display(), folder.0.file_name().unwrap().to_str().unwrap());
    assert!(Path::new(&up).exists());
    for mode in [TokenMode::EnforceAudience, TokenMode::Legacy] {
        let audiences = if mode == TokenMode::Legacy { "[]" } else { APPROVED };
        let listed = IdentityRules { token_mode: mode, ..rules(&folder, true, audiences) };
        for path in [&folder.path("other"), "/etc/passwd", "/dev/zero", "own", &up, &folder.path("own/")] {
            for kind in KINDS {
                let login = kubernetes(json!({"serviceAccount": path}));
                let (sent, failure) = log_in(&listed, kind, &login, None).await;
                assert_eq!(sent, Vec::<String>::new(), "{path}");
                let error = failure.unwrap_err();
                assert!(error.contains("is not read") && error.contains("serviceAccountName"), "{error}");
            }
        }
    }
}

#[tokio::test]
async fn audiences_of_tokens_in_files_are_approved() {
    let folder = TokenFolder::new("audiences");
    let login = kubernetes(Value::Null);
    let refused = async |audiences: &str| {
        let (sent, failure) = log_in(&rules(&folder, true, audiences), "", &login, None).await;
        assert_eq!(sent, Vec::<String>::new());
        failure.unwrap_err()
    };
    assert_eq!(
        refused("[]").await,
        "TriggerAuthentication ns/ta: no approved service account token audiences; configure \
         KEDA_SERVICE_ACCOUNT_TOKEN_AUDIENCES"
    );
    assert!(refused("[{audience: x}]").await.contains("contains an audience not approved"));
    let no_account = kubernetes(json!({"token": "x"}));
    let (_, failure) = log_in(&rules(&folder, true, APPROVED), "", &no_account, None).await;
    assert!(failure.unwrap_err().contains("k8s SA file not in config or serviceAccountName not supplied"));
    // In legacy mode the default is the operator's own token, still only for listed origins.
    for is_listed in [true, false] {
        let legacy = IdentityRules { token_mode: TokenMode::Legacy, ..rules(&folder, is_listed, "[]") };
        let (sent, failure) = log_in(&legacy, "", &login, None).await;
        assert_eq!(failure.is_ok(), is_listed);
        assert_eq!(sent.iter().any(|sent| sent.contains(OWN)), is_listed);
    }
    std::fs::write(folder.0.join("mounted"), "hunter2").unwrap();
    let error = refused(APPROVED).await;
    assert!(error.contains("is not the token of a service account") && !error.contains("hunter2"), "{error}");
}

#[tokio::test]
async fn minted_tokens_have_the_approved_audience_and_need_tls_or_a_listed_origin() {
    let folder = TokenFolder::new("minted");
    let login = |account: &str| kubernetes(json!({"serviceAccountName": account}));
    let listed = rules(&folder, true, APPROVED);
    let (sent, failure) = log_in(&listed, "", &login("me"), None).await;
    assert_eq!(failure, Ok(()));
    assert!(sent[0].contains("minted.") && sent[1] == "t1", "{sent:?}");
    let (sent, failure) = log_in(&rules(&folder, false, APPROVED), "", &login("me"), None).await;
    assert_eq!(sent, Vec::<String>::new());
    let error = failure.unwrap_err();
    assert!(error.contains("without TLS") && error.contains("KEDA_OUTBOUND_FILTER"), "{error}");
    for (account, audiences, words) in [
        ("me", "[{audience: vault}]", "no configured token audience for service account ns/me"),
        (
            "nobody",
            "[{audience: v, namespace: ns, serviceAccountName: nobody}]",
            "ServiceAccount ns/nobody does not exist",
        ),
        (
            "empty",
            "[{audience: v, namespace: ns, serviceAccountName: empty}]",
            "token request for ns/empty returned an empty token",
        ),
    ] {
        let (sent, failure) = log_in(&rules(&folder, true, audiences), "", &login(account), None).await;
        assert_eq!(sent, Vec::<String>::new());
        let error = failure.unwrap_err();
        assert!(error.contains(words), "{error}");
    }
}

#[tokio::test]
async fn credentials_of_the_operator_are_neither_revoked_nor_read() {
    let folder = TokenFolder::new("operations");
    let listed = rules(&folder, true, APPROVED);
    for (path, type_) in [
        ("auth/token/revoke-self", "pki"),
        ("pki/auth/issue/web", "pki"),
        ("sys/issue/seal", "pki"),
        ("issue/web", "pki"),
        ("pki/issue/web/more", "pki"),
        ("pki/root/generate", "pki"),
        ("auth/token/lookup-self", ""),
        ("/auth//token/lookup-self/", "secret"),
        ("team/auth/token/lookup-self", ""),
        ("team/identity/oidc/token/role", ""),
        ("sys/mounts", "secret"),
    ] {
        for mut login in [kubernetes(Value::Null), with_token("")] {
            login["secrets"] = json!([{"parameter": "p", "path": path, "key": "k", "type": type_}]);
            for kind in KINDS {
                let (sent, failure) = log_in(&listed, kind, &login, Some("operators-vault-token")).await;
                assert_eq!(sent, Vec::<String>::new(), "{path}");
                let error = failure.unwrap_err();
                assert!(error.contains(path) && error.contains("MOUNT/issue/ROLE"), "{error}");
            }
        }
    }
}

#[tokio::test]
async fn paths_do_not_leave_the_place_they_name() {
    let folder = TokenFolder::new("paths");
    let mut login = kubernetes(json!({"serviceAccountName": "me"}));
    login["mount"] = json!("../kv");
    let (sent, failure) = log_in(&rules(&folder, true, APPROVED), "", &login, None).await;
    assert_eq!(sent, Vec::<String>::new());
    assert!(failure.unwrap_err().contains("must not contain . or .."));
}
