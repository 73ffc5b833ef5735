//! Each protocol against a strict stand-in.

use aws_lc_rs::signature::{RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::*;
use crate::identity::sigv4::{RequestToSign, sign};
use crate::test_support::{ServerAction, server};

/// Keys in the form of the token service, with this access key.
fn sts_answer(access: &str) -> ServerAction {
    ServerAction::Answer(
        200,
        format!(
            "<AssumeRoleResponse><AssumeRoleResult><Credentials><AccessKeyId>{access}</AccessKeyId>\
             <SecretAccessKey>se&amp;cret</SecretAccessKey><SessionToken>session</SessionToken>\
             <Expiration>2026-01-01T01:00:00Z</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>"
        ),
    )
}

fn refused(code: &str) -> ServerAction {
    let text =
        format!("<ErrorResponse><Error><Code>{code}</Code><Message>no</Message></Error></ErrorResponse>");
    ServerAction::Answer(403, text)
}

/// Checks the signature of a request to STS.
fn assert_signed(request: &str, keys: &AwsKeys, region: &str) {
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    let header = |name: &str| {
        let line = head.lines().find_map(|line| line.strip_prefix(&format!("{name}: ")));
        line.unwrap_or_default().to_owned()
    };
    let host = header("host");
    let headers = [("content-type", "application/x-www-form-urlencoded; charset=utf-8")];
    let request = RequestToSign {
        method: "POST",
        host: &host,
        path: "/",
        query: "",
        headers: &headers,
        body: body.as_bytes(),
        region,
        service: "sts",
    };
    let expected = sign(&request, keys, "2026-01-01T00:00:00Z".parse().unwrap());
    for (name, value) in expected {
        assert_eq!(header(name), value);
    }
}

fn role(arn: &str, external_id: Option<&str>, web_identity: bool) -> AwsIdentity {
    AwsIdentity::Role { arn: arn.to_owned(), external_id: external_id.map(str::to_owned), web_identity }
}

#[tokio::test]
async fn aws_web_identity_and_assumed_role() {
    let sts = server(|request| {
        assert!(request.starts_with("POST / HTTP/1.1\r\n"), "{request}");
        if request.ends_with(
            "Action=AssumeRoleWithWebIdentity&RoleArn=arn%3Aaws%3Aiam%3A%3A1%3Arole%2Fown&RoleSessionName=KEDA\
             &Version=2011-06-15&WebIdentityToken=jwt",
        ) {
            return sts_answer("OWN");
        }
        if request.contains("Action=AssumeRoleWithWebIdentity") {
            return refused("AccessDenied");
        }
        let own = AwsKeys {
            access: "OWN".into(),
            secret: Secret::new("se&cret"),
            session: Some(Secret::new("session")),
        };
        assert_signed(request, &own, "eu-west-1");
        if request.ends_with("Action=AssumeRole&ExternalId=x%2F1&RoleArn=other&RoleSessionName=KEDA&Version=2011-06-15") {
            return sts_answer("OTHER");
        }
        refused("ValidationError")
    })
    .await;
    let token = TempFile::new("jwt");
    let identities = identities(&[
        ("AWS_WEB_IDENTITY_TOKEN_FILE", &token.path()),
        ("AWS_ROLE_ARN", "arn:aws:iam::1:role/own"),
        ("AWS_ENDPOINT_URL_STS", &sts),
    ]);
    let web = web();
    let keys = identities.aws(&AwsIdentity::Operator, "eu-west-1", &web).await.unwrap();
    assert_eq!((&*keys.access, keys.secret.reveal()), ("OWN", "se&cret"));
    let other = identities.aws(&role("other", Some("x/1"), true), "eu-west-1", &web).await.unwrap();
    assert_eq!(other.access, "OTHER");
    let error = identities.aws(&role("third", None, true), "eu-west-1", &web).await.unwrap_err();
    for part in [
        "AWS role third cannot be used",
        "web identity (STS returned 403: AccessDenied: no)",
        "ValidationError",
    ] {
        assert!(error.message.contains(part), "{error}");
    }
    assert!(!format!("{error:?} {keys:?}").contains("se&cret"));
    // The region is part of the host name.
    for region in ["evil.example/#", "s3", "s3-us-west-2", "elb", "execute-api"] {
        let error = identities.aws(&AwsIdentity::Operator, region, &web).await.unwrap_err();
        assert!(error.message.contains("is not an AWS region"), "{error}");
    }
}

#[tokio::test]
async fn aws_pod_identity_agent() {
    let agent = server(|request| {
        assert!(request.starts_with("GET /v1/credentials HTTP/1.1\r\n"), "{request}");
        assert!(request.contains("\r\nauthorization: agent-token\r\n"), "{request}");
        let body = r#"{"AccessKeyId": "A", "SecretAccessKey": "S", "Token": "T", "Expiration": "2026-01-01T06:00:00Z"}"#;
        ServerAction::Answer(200, body.to_owned())
    })
    .await;
    let token = TempFile::new("agent-token");
    let of = |url: &str| {
        identities(&[
            ("AWS_CONTAINER_CREDENTIALS_FULL_URI", url),
            ("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", &token.path()),
        ])
    };
    let found = of(&format!("{agent}/v1/credentials"))
        .aws(&AwsIdentity::Operator, "eu-west-1", &web())
        .await
        .unwrap();
    assert_eq!((&*found.access, found.session), ("A", Some(Secret::new("T"))));
    let error =
        of("http://evil.example/v1").aws(&AwsIdentity::Operator, "eu-west-1", &web()).await.unwrap_err();
    assert!(error.message.contains("names evil.example"), "{error}");
    let none = identities(&[]).aws(&AwsIdentity::Operator, "eu-west-1", &web()).await.unwrap_err();
    assert!(none.message.contains("its pod has none: set up IRSA"), "{none}");
}

#[tokio::test]
async fn azure_federation_and_client_secret() {
    let authority = server(|request| {
        let (head, form) = request.split_once("\r\n\r\n").unwrap();
        match head.lines().next().unwrap() {
            "POST /tenant/oauth2/v2.0/token HTTP/1.1" => assert_eq!(
                form,
                "client_id=client&grant_type=client_credentials&scope=https%3A%2F%2Fvault.azure.net%2F.default\
                 &client_assertion=federated&client_assertion_type=\
                 urn%3Aietf%3Aparams%3Aoauth%3Aclient-assertion-type%3Ajwt-bearer"
            ),
            "POST /other/oauth2/v2.0/token HTTP/1.1" => {
                assert!(form.ends_with("&client_secret=p%26w"), "{form}");
                let body = r#"{"error": "invalid_client", "error_description": "AADSTS7000215: wrong"}"#;
                return ServerAction::Answer(401, body.to_owned());
            }
            other => panic!("{other}"),
        }
        ServerAction::Answer(200, r#"{"access_token": "token", "expires_in": 3599}"#.to_owned())
    })
    .await;
    let file = TempFile::new("federated");
    let identities = identities(&[
        ("AZURE_FEDERATED_TOKEN_FILE", &file.path()),
        ("AZURE_AUTHORITY_HOST", &format!("{authority}/")),
        ("AZURE_CLIENT_ID", "own"),
        ("AZURE_TENANT_ID", "tenant"),
    ]);
    let scope = "https://vault.azure.net/.default";
    let workload = |authority: &str| AzureIdentity::Workload {
        client: "client".into(),
        tenant: String::new(),
        authority: authority.into(),
    };
    let token = identities.azure(&workload(""), scope, &web()).await.unwrap();
    assert_eq!(token.reveal(), "token");
    // A trigger cannot send the operator's token elsewhere.
    let error = identities.azure(&workload("https://evil.example"), scope, &web()).await.unwrap_err();
    assert!(error.message.contains("is not an authority of Azure"), "{error}");
    let secret = AzureIdentity::ClientSecret {
        client: "app".into(),
        tenant: "other".into(),
        secret: Secret::new("p&w"),
        authority,
    };
    let error = identities.azure(&secret, scope, &web()).await.unwrap_err();
    let expected = "Azure client app in tenant other cannot be used: the token endpoint returned 401: invalid_client: \
                    AADSTS7000215: wrong";
    assert_eq!(error.message, expected);
    let nobody = super::identities(&[]).azure(&workload(""), scope, &web()).await.unwrap_err();
    assert!(nobody.message.contains("AZURE_FEDERATED_TOKEN_FILE"), "{nobody}");
}

/// A new key, as JSON of a service account, and its public half.
fn service_account() -> (String, Vec<u8>) {
    use aws_lc_rs::encoding::AsDer as _;
    use aws_lc_rs::rsa::{KeyPair, KeySize};
    use aws_lc_rs::signature::KeyPair as _;
    let pair = KeyPair::generate(KeySize::Rsa2048).unwrap();
    let der: aws_lc_rs::encoding::Pkcs8V1Der<'_> = pair.as_der().unwrap();
    let body = base64::prelude::BASE64_STANDARD.encode(der.as_ref());
    let pem = format!("-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----\n");
    let account = serde_json::json!({
        "type": "service_account",
        "client_email": "sa@p.iam.gserviceaccount.com",
        "private_key_id": "k1",
        "private_key": pem,
        "token_uri": "https://evil.example/token",
    });
    (account.to_string(), pair.public_key().as_ref().to_vec())
}

#[tokio::test]
async fn google_service_account_key() {
    let (account, public) = service_account();
    let tokens = server(move |request| {
        let form = request.split_once("\r\n\r\n").unwrap().1;
        let rest = form.strip_prefix("assertion=").unwrap();
        let assertion =
            rest.strip_suffix("&grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer").unwrap();
        let (signed, signature) = assertion.rsplit_once('.').unwrap();
        let signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
        UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, &public)
            .verify(signed.as_bytes(), &signature)
            .unwrap();
        let (header, claims) = signed.split_once('.').unwrap();
        let json = |part| {
            serde_json::from_slice::<serde_json::Value>(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
        };
        assert_eq!(json(header), serde_json::json!({"alg": "RS256", "typ": "JWT", "kid": "k1"}));
        let claims = json(claims);
        assert_eq!(claims["iss"], "sa@p.iam.gserviceaccount.com");
        assert_eq!(claims["scope"], "monitoring.read");
        let (issued, end) = (claims["iat"].as_i64().unwrap(), claims["exp"].as_i64().unwrap());
        assert_eq!((issued, end), (1_767_225_600 - 10, 1_767_225_600 + 3590));
        ServerAction::Answer(200, r#"{"access_token": "token", "expires_in": 3599}"#.to_owned())
    })
    .await;
    let mut identities = identities(&[]);
    identities.environment.google_token_url = tokens;
    let key = GoogleIdentity::Key(Secret::new(account));
    let token = identities.google(&key, "monitoring.read", &web()).await.unwrap();
    assert_eq!(token.reveal(), "token");
    let broken = r#"{"type": "service_account", "client_email": "e", "private_key": "hunter2"}"#;
    let error = identities.google(&GoogleIdentity::Key(Secret::new(broken)), "s", &web()).await.unwrap_err();
    assert_eq!(error.message, "Google service account e: the private key is no RSA key in PEM form");
    let federated = GoogleIdentity::Key(Secret::new(r#"{"type": "external_account"}"#));
    let error = identities.google(&federated, "s", &web()).await.unwrap_err();
    assert!(error.message.contains("only from the operator's own"), "{error}");
}

#[tokio::test]
async fn google_metadata_server() {
    let metadata = server(|request| {
        assert!(
            request.starts_with(
                "GET /computeMetadata/v1/instance/service-accounts/default/token?scopes=https%3A%2F%2Fs HTTP/1.1\r\n"
            ),
            "{request}"
        );
        assert!(request.contains("\r\nmetadata-flavor: Google\r\n"), "{request}");
        ServerAction::Answer(200, r#"{"access_token": "token", "expires_in": 3599, "token_type": "Bearer"}"#.to_owned())
    })
    .await;
    let identities = identities(&[("GCE_METADATA_HOST", metadata.strip_prefix("http://").unwrap())]);
    let token = identities.google(&GoogleIdentity::Operator, "https://s", &web()).await.unwrap();
    assert_eq!(token.reveal(), "token");
}

#[tokio::test]
async fn google_federation_with_impersonation() {
    let google = server(|request| {
        let (head, body) = request.split_once("\r\n\r\n").unwrap();
        if head.starts_with("POST /v1/token HTTP/1.1\r\n") {
            assert_eq!(
                body,
                "audience=%2F%2Fiam.googleapis.com%2Fpool&grant_type=\
                 urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Atoken-exchange&requested_token_type=\
                 urn%3Aietf%3Aparams%3Aoauth%3Atoken-type%3Aaccess_token&scope=\
                 https%3A%2F%2Fwww.googleapis.com%2Fauth%2Fcloud-platform&subject_token=kubernetes\
                 &subject_token_type=urn%3Aietf%3Aparams%3Aoauth%3Atoken-type%3Ajwt"
            );
            return ServerAction::Answer(
                200,
                r#"{"access_token": "federated", "expires_in": 3600}"#.to_owned(),
            );
        }
        assert!(
            head.starts_with(
                "POST /v1/projects/-/serviceAccounts/sa@p.example:generateAccessToken HTTP/1.1\r\n"
            ),
            "{head}"
        );
        assert!(head.contains("\r\nauthorization: Bearer federated"), "{head}");
        assert_eq!(body, r#"{"scope":["s"],"lifetime":"3600s"}"#);
        ServerAction::Answer(
            200,
            r#"{"accessToken": "lent", "expireTime": "2026-01-01T01:00:00Z"}"#.to_owned(),
        )
    })
    .await;
    let token = TempFile::new(r#"{"token": "kubernetes"}"#);
    let account = serde_json::json!({
        "type": "external_account",
        "audience": "//iam.googleapis.com/pool",
        "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
        "token_url": "https://evil.example/token",
        "credential_source": {"file": token.path(), "format": {"type": "json", "subject_token_field_name": "token"}},
        "service_account_impersonation_url":
            "https://evil.example/v1/projects/-/serviceAccounts/sa@p.example:generateAccessToken",
    });
    let account = TempFile::new(&account.to_string());
    let mut identities = identities(&[("GOOGLE_APPLICATION_CREDENTIALS", &account.path())]);
    identities.environment.google_sts_url = format!("{google}/v1/token");
    identities.environment.google_iam_url = google;
    let lent = identities.google(&GoogleIdentity::Operator, "s", &web()).await.unwrap();
    assert_eq!(lent.reveal(), "lent");
}

#[tokio::test]
async fn google_projects() {
    let key = |text: &str| GoogleIdentity::Key(Secret::new(text));
    let project = identities(&[]).google_project(&key(r#"{"project_id": "shop"}"#), &web()).await.unwrap();
    assert_eq!(project, "shop");
    let error = identities(&[]).google_project(&key("{}"), &web()).await.unwrap_err();
    assert!(error.message.contains("name no project"), "{error}");
    let error = identities(&[]).google_project(&key("hunter2"), &web()).await.unwrap_err();
    assert_eq!(error.message, "the Google credentials are not JSON");
    let given = identities(&[("CLOUDSDK_CORE_PROJECT", "given")]);
    assert_eq!(given.google_project(&GoogleIdentity::Operator, &web()).await.unwrap(), "given");
    let metadata = server(|request| {
        assert!(request.starts_with("GET /computeMetadata/v1/project/project-id HTTP/1.1\r\n"), "{request}");
        assert!(request.contains("\r\nmetadata-flavor: Google\r\n"), "{request}");
        ServerAction::Answer(200, "example.com:shop\n".to_owned())
    })
    .await;
    let machine = identities(&[("GCE_METADATA_HOST", metadata.strip_prefix("http://").unwrap())]);
    assert_eq!(machine.google_project(&GoogleIdentity::Operator, &web()).await.unwrap(), "example.com:shop");
    let portal = server(|_| ServerAction::Answer(200, "<html>".to_owned())).await;
    let portal = identities(&[("GCE_METADATA_HOST", portal.strip_prefix("http://").unwrap())]);
    let error = portal.google_project(&GoogleIdentity::Operator, &web()).await.unwrap_err();
    assert!(
        error.message.contains("set CLOUDSDK_CORE_PROJECT") && !error.message.contains("html"),
        "{error}"
    );
}
