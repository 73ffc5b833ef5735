use api::keda::{
    AwsSecretManagerSecret, AzureKeyVault, AzureKeyVaultCloud, AzureKeyVaultCredentials, AzureKeyVaultSecret,
    GcpSecretManagerSecret, PodIdentity,
};
use http::{HeaderMap, StatusCode};
use sources::http::{HttpResponse, Secret};

use super::*;
use crate::identity::{AwsIdentity, AwsKeys, GoogleIdentity, IdentityEnvironment, RequestToSign, sign};
use crate::test_support::{azure_token, google_metadata};
use crate::urls;
use crate::web::HttpCall;

/// Secret managers whose requests are answered by a function and never sent.
fn managers(answer: impl Fn(&HttpCall) -> (u16, String) + Send + Sync + 'static) -> SecretManagers {
    let web = SharedHttpClient::answered_by(move |call| {
        let (status, body) = answer(call);
        let status = StatusCode::from_u16(status).unwrap();
        HttpResponse { status, headers: HeaderMap::new(), body: body.into() }
    });
    let environment = IdentityEnvironment::of(|name| match name {
        "AWS_REGION" => Some("eu-north-1".to_owned()),
        "GCE_METADATA_HOST" => Some("127.0.0.1:1".to_owned()),
        _ => None,
    });
    SecretManagers::new(Arc::new(Identities::new(environment)), Arc::new(web))
}

/// Managers that must not send anything.
fn silent() -> SecretManagers {
    managers(|call| panic!("unexpected request to {}", call.url))
}

fn keys() -> AwsKeys {
    AwsKeys { access: "AK".to_owned(), secret: Secret::new("SK"), session: Some(Secret::new("ST")) }
}

/// Checks the signature of a request as AWS does: it is computed anew from what was sent.
fn assert_signed(call: &HttpCall, keys: &AwsKeys, region: &str, service: &str) {
    let header =
        |name: &str| call.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    // `20260101T000000Z`
    let date = |range: std::ops::Range<usize>| header("x-amz-date").get(range).unwrap();
    let now = format!(
        "{}-{}-{}T{}:{}:{}Z",
        date(0..4),
        date(4..6),
        date(6..8),
        date(9..11),
        date(11..13),
        date(13..15)
    );
    let now = now.parse().unwrap();
    let headers = [("content-type", header("content-type")), ("x-amz-target", header("x-amz-target"))];
    let request = RequestToSign {
        method: call.method.as_str(),
        host: urls::host(&call.url),
        path: urls::path(&call.url),
        query: "",
        headers: &headers,
        body: &call.body,
        region,
        service,
    };
    for (name, value) in sign(&request, keys, now) {
        assert_eq!(header(name), value, "{name}");
    }
}

fn aws_secret(name: &str) -> AwsSecretManagerSecret {
    AwsSecretManagerSecret { name: name.to_owned(), ..AwsSecretManagerSecret::default() }
}

#[tokio::test]
async fn aws_requests_are_signed_and_name_the_version() {
    let managers = managers(|call| {
        assert_eq!(call.headers.get("x-amz-target").unwrap(), "secretsmanager.GetSecretValue");
        assert_eq!(call.headers.get("content-type").unwrap(), "application/x-amz-json-1.1");
        let region = match &*call.url {
            "https://secretsmanager.eu-west-1.amazonaws.com/" => "eu-west-1",
            "https://secretsmanager.eu-north-1.amazonaws.com/" => "eu-north-1",
            other => panic!("{other}"),
        };
        assert_signed(call, &keys(), region, "secretsmanager");
        match std::str::from_utf8(&call.body).unwrap() {
            r#"{"SecretId":"db"}"# => (200, r#"{"SecretString": "whole"}"#.to_owned()),
            r#"{"SecretId":"db","VersionId":"v","VersionStage":"s"}"# => {
                (200, r#"{"SecretString": "old"}"#.to_owned())
            }
            r#"{"SecretId":"bin"}"# => (200, r#"{"SecretBinary": "aHVudGVyMg=="}"#.to_owned()),
            r#"{"SecretId":"none"}"# => {
                (400, r#"{"__type": "ResourceNotFoundException", "Message": "no such secret"}"#.to_owned())
            }
            other => panic!("{other}"),
        }
    });
    let client = managers.aws(AwsIdentity::Keys(keys()), "eu-west-1").unwrap();
    assert_eq!(client.read(&aws_secret("db")).await.unwrap().reveal(), "whole");
    let version = AwsSecretManagerSecret {
        version_id: "v".to_owned(),
        version_stage: "s".to_owned(),
        ..aws_secret("db")
    };
    assert_eq!(client.read(&version).await.unwrap().reveal(), "old");
    let error = client.read(&aws_secret("none")).await.unwrap_err().message;
    assert_eq!(error, "AWS Secrets Manager returned 400: ResourceNotFoundException: no such secret");
    let error = client.read(&aws_secret("bin")).await.unwrap_err().message;
    assert!(error.contains("binary") && !error.contains("aHVudGVyMg"), "{error}");
    // Without a region, that of the operator.
    let client = managers.aws(AwsIdentity::Keys(keys()), "").unwrap();
    assert_eq!(client.read(&aws_secret("db")).await.unwrap().reveal(), "whole");
}

#[tokio::test]
async fn credentials_of_the_operator_stay_at_aws() {
    let client = silent().aws(AwsIdentity::Operator, "evil.example/#").unwrap();
    let error = client.read(&aws_secret("db")).await.unwrap_err().message;
    assert!(error.contains("AWS"), "{error}");
    let nowhere = SecretManagers::new(
        Arc::new(Identities::new(IdentityEnvironment::of(|_| None))),
        Arc::clone(&silent().web),
    );
    let error = nowhere.aws(AwsIdentity::Operator, "").err().map(|error| error.message);
    assert!(error.is_some_and(|error| error.contains("AWS_REGION")));
}

#[test]
fn keys_of_json_secrets() {
    let text = Secret::new(r#"{"user": "u", "port": 1, "password": "hunter2"}"#);
    assert_eq!(value_of_key(&text, "user").unwrap().reveal(), "u");
    assert_eq!(value_of_key(&text, "").unwrap(), text);
    let error = |text: &Secret, key| value_of_key(text, key).unwrap_err().message;
    assert_eq!(error(&text, "port"), "it has a number at key \"port\" instead of a string");
    assert_eq!(error(&text, "none"), "it has nothing at key \"none\" instead of a string");
    let plain = error(&Secret::new("hunter2"), "k");
    assert!(plain.contains("not JSON") && !plain.contains("hunter2"), "{plain}");
}

fn vault(uri: &str, provider: &str, cloud: &str) -> AzureKeyVault {
    let credentials = AzureKeyVaultCredentials {
        client_id: "c".to_owned(),
        tenant_id: "t".to_owned(),
        ..AzureKeyVaultCredentials::default()
    };
    AzureKeyVault {
        vault_uri: uri.to_owned(),
        credentials: Some(credentials),
        pod_identity: Some(PodIdentity { provider: provider.to_owned(), ..PodIdentity::default() }),
        cloud: Some(AzureKeyVaultCloud { type_: cloud.to_owned(), ..AzureKeyVaultCloud::default() }),
        ..AzureKeyVault::default()
    }
}

fn azure_secret(name: &str, version: &str) -> AzureKeyVaultSecret {
    let (name, version) = (name.to_owned(), version.to_owned());
    AzureKeyVaultSecret { name, version, ..AzureKeyVaultSecret::default() }
}

#[tokio::test]
async fn key_vault_request_has_a_token_for_vaults() {
    let managers = managers(|call| {
        if let Some(token) = azure_token(call, "https://vault.azure.net/.default") {
            return token;
        }
        assert_eq!(call.headers.get("authorization").unwrap(), "Bearer token");
        match &*call.url {
            "https://v.vault.azure.net/secrets/db?api-version=7.4" => (200, r#"{"value": "new"}"#.to_owned()),
            "https://v.vault.azure.net/secrets/db/1a?api-version=7.4" => {
                (200, r#"{"value": "old"}"#.to_owned())
            }
            _ => (404, r#"{"error": {"code": "SecretNotFound", "message": "no such secret"}}"#.to_owned()),
        }
    });
    let client =
        managers.key_vault(&vault("https://v.vault.azure.net/", "", ""), &Secret::new("hunter2")).unwrap();
    assert_eq!(client.read(&azure_secret("db", "")).await.unwrap().reveal(), "new");
    assert_eq!(client.read(&azure_secret("db", "1a")).await.unwrap().reveal(), "old");
    let error = client.read(&azure_secret("none", "")).await.unwrap_err().message;
    assert_eq!(error, "Azure Key Vault returned 404: no such secret");
    for (name, version) in [("", ""), ("../keys/k", ""), ("db", ".."), ("db?x", "")] {
        let error = client.read(&azure_secret(name, version)).await.unwrap_err().message;
        assert!(error.contains("only letters, digits and hyphens"), "{error}");
    }
}

#[tokio::test]
async fn private_clouds_get_credentials_of_tenants_only() {
    let private = |provider| {
        let cloud = AzureKeyVaultCloud {
            type_: "Private".to_owned(),
            key_vault_resource_url: "https://vault.example/".to_owned(),
            active_directory_endpoint: "https://login.example/".to_owned(),
        };
        AzureKeyVault { cloud: Some(cloud), ..vault("https://v.vault.example", provider, "") }
    };
    let requested = managers(|call| match &*call.url {
        "https://login.example/t/oauth2/v2.0/token" => {
            assert!(!call.own_address, "the address of a tenant is checked");
            let form = std::str::from_utf8(&call.body).unwrap();
            assert!(form.contains("scope=https%3A%2F%2Fvault.example%2F.default&"), "{form}");
            (200, r#"{"access_token": "theirs", "expires_in": 3600}"#.to_owned())
        }
        "https://v.vault.example/secrets/db?api-version=7.4" => {
            assert!(!call.own_address && call.alone);
            assert_eq!(call.headers.get("authorization").unwrap(), "Bearer theirs");
            (200, r#"{"value": "v"}"#.to_owned())
        }
        other => panic!("{other}"),
    });
    let client = requested.key_vault(&private(""), &Secret::new("hunter2")).unwrap();
    assert_eq!(client.read(&azure_secret("db", "")).await.unwrap().reveal(), "v");

    let refused = |vault: &AzureKeyVault, secret: &str| {
        let client = silent().key_vault(vault, &Secret::new(secret));
        client.err().map(|error| error.message).unwrap_or_default()
    };
    for vault in [
        private("azure-workload"),
        vault("https://v.vault.azure.net", "azure-workload", "Private"),
        vault("https://evil.example", "azure-workload", ""),
        vault("https://v.vault.azure.net.evil.example", "azure-workload", ""),
        vault("https://v.vault.azure.net:8443", "azure-workload", ""),
        vault("https://v.vault.azure.net@evil.example", "azure-workload", ""),
        vault("http://v.vault.azure.net", "azure-workload", ""),
        vault("x", "azure-workload", ""),
    ] {
        assert_ne!(refused(&vault, ""), "", "{vault:?}");
    }
    let own =
        silent().key_vault(&vault("https://v.vault.azure.net", "azure-workload", ""), &Secret::default());
    assert!(own.is_ok());
    assert!(refused(&vault("https://v.vault.azure.net", "", "Private"), "s").contains("keyVaultResourceURL"));
    assert!(refused(&vault("https://v.vault.azure.net", "", "nope"), "s").contains("no environment"));
    assert!(refused(&vault("https://v.vault.azure.net", "", ""), "").contains("clientSecret are expected"));
}

#[tokio::test]
async fn google_secrets_have_a_project_and_a_version() {
    let managers = managers(|call| {
        if let Some(answer) = google_metadata(call) {
            return answer;
        }
        assert_eq!(call.headers.get("authorization").unwrap(), "Bearer t");
        match call.url.strip_prefix("https://secretmanager.googleapis.com/v1/projects/p/secrets/") {
            Some("db/versions/latest:access") => (200, r#"{"payload": {"data": "bmV3"}}"#.to_owned()),
            Some("db/versions/2:access") => (200, r#"{"payload": {"data": "b2xk"}}"#.to_owned()),
            Some("bin/versions/latest:access") => (200, r#"{"payload": {"data": "//8="}}"#.to_owned()),
            Some(_) => (403, r#"{"error": {"message": "denied"}}"#.to_owned()),
            None => panic!("{}", call.url),
        }
    });
    let client = managers.google(GoogleIdentity::Operator);
    let read = async |id: &str, version: &str| {
        let (id, version) = (id.to_owned(), version.to_owned());
        let read =
            client.read(&GcpSecretManagerSecret { id, version, ..GcpSecretManagerSecret::default() }).await;
        read.map(|secret| secret.reveal().to_owned()).map_err(|error| error.message)
    };
    assert_eq!(read("db", "").await.unwrap(), "new");
    assert_eq!(read("db", "2").await.unwrap(), "old");
    assert_eq!(read("other", "").await.unwrap_err(), "GCP Secret Manager returned 403: denied");
    assert!(read("bin", "").await.unwrap_err().contains("not text"));
    for (id, version) in [("", ""), ("../x", ""), ("db", "1:access/..")] {
        assert!(read(id, version).await.unwrap_err().contains("only letters"));
    }
}
