use super::request::endpoint;
use super::*;
use crate::identity::{RequestToSign, sign};

/// The example of the AWS documentation.
fn keys() -> AwsKeys {
    AwsKeys {
        access: "AKIDEXAMPLE".to_owned(),
        secret: Secret::new("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"),
        session: None,
    }
}

fn signature(request: &RequestToSign<'_>) -> String {
    let headers = sign(request, &keys(), "2015-08-30T12:36:00Z".parse().unwrap());
    let (_, authorization) = headers.iter().find(|(name, _)| *name == "authorization").unwrap();
    authorization.rsplit_once("Signature=").unwrap().1.to_owned()
}

#[test]
fn vanilla() {
    let request = RequestToSign {
        method: "GET",
        host: "example.amazonaws.com",
        path: "/",
        query: "",
        headers: &[],
        body: b"",
        region: "us-east-1",
        service: "service",
    };
    assert_eq!(signature(&request), "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31");
}

#[test]
fn list_users() {
    let request = RequestToSign {
        method: "GET",
        host: "iam.amazonaws.com",
        path: "/",
        query: "Action=ListUsers&Version=2010-05-08",
        headers: &[("content-type", "application/x-www-form-urlencoded; charset=utf-8")],
        body: b"",
        region: "us-east-1",
        service: "iam",
    };
    assert_eq!(signature(&request), "5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7");
}

#[test]
fn sessions_are_signed_too() {
    let keys = AwsKeys { session: Some(Secret::new("session")), ..keys() };
    let request = RequestToSign {
        method: "POST",
        host: "h",
        path: "/",
        query: "",
        headers: &[],
        body: b"x",
        region: "r",
        service: "s",
    };
    let headers = sign(&request, &keys, "2015-08-30T12:36:00Z".parse().unwrap());
    assert!(headers.contains(&("x-amz-security-token", "session".to_owned())));
    assert!(
        headers.iter().any(|(_, value)| value.contains("SignedHeaders=host;x-amz-date;x-amz-security-token"))
    );
}

#[test]
fn identity_selection() {
    let mut trigger = Trigger::default();
    let identity = |trigger: &Trigger| AwsCredentials::read(trigger).unwrap().identity(trigger);
    assert_eq!(identity(&trigger).unwrap_err().message, "awsAccessKeyID not found");
    trigger.metadata.insert("awsAccessKeyID".into(), "own".into());
    trigger.metadata.insert("awsSecretAccessKeyFromEnv".into(), "S".into());
    assert_eq!(identity(&trigger).unwrap_err().message, "awsSecretAccessKey not found");
    trigger.environment.insert("S".into(), "secret".into());
    let access = |trigger: &Trigger| match identity(trigger) {
        Ok(AwsIdentity::Keys(keys)) => keys.access,
        other => panic!("{other:?}"),
    };
    assert_eq!(access(&trigger), "own");
    trigger.auth.insert("awsAccessKeyId".into(), "given".into());
    assert_eq!(identity(&trigger).unwrap_err().message, "awsSecretAccessKey not found");
    trigger.auth.insert("awsSecretAccessKey".into(), "secret".into());
    assert_eq!(access(&trigger), "given");
    assert!(!format!("{:?}", identity(&trigger)).contains("secret"));
    let role = |arn: &str, external_id: Option<&str>, web_identity| {
        let external_id = external_id.map(str::to_owned);
        Ok(AwsIdentity::Role { arn: arn.to_owned(), external_id, web_identity })
    };
    trigger.auth.insert("awsRoleArn".into(), "arn".into());
    assert_eq!(identity(&trigger), role("arn", None, false));
    trigger.metadata.insert("identityOwner".into(), "operator".into());
    assert_eq!(identity(&trigger), Ok(AwsIdentity::Operator));
    trigger.identity.provider = "aws".into();
    assert_eq!(identity(&trigger), role("arn", None, true));
    trigger.identity.role_arn = Some("other".into());
    trigger.identity.external_id = Some("id".into());
    assert_eq!(identity(&trigger), role("other", Some("id"), true));
    trigger.identity.role_arn = None;
    trigger.auth.clear();
    assert_eq!(identity(&trigger), Ok(AwsIdentity::Operator));
}

#[test]
fn endpoints() {
    assert_eq!(endpoint("sqs", "eu-west-1", None), "https://sqs.eu-west-1.amazonaws.com");
    assert_eq!(endpoint("sqs", "cn-north-1", None), "https://sqs.cn-north-1.amazonaws.com.cn");
    assert_eq!(endpoint("sqs", "r", Some("http://localstack:4566/")), "http://localstack:4566");
}
