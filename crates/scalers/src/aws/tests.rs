use super::request::endpoint;
use super::*;

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
    assert_eq!(identity(&trigger).unwrap().keys().unwrap().access, "own");
    trigger.auth.insert("awsAccessKeyId".into(), "given".into());
    assert_eq!(identity(&trigger).unwrap_err().message, "awsSecretAccessKey not found");
    trigger.auth.insert("awsSecretAccessKey".into(), "secret".into());
    assert_eq!(identity(&trigger).unwrap().keys().unwrap().access, "given");
    trigger.auth.insert("awsRoleArn".into(), "arn".into());
    assert!(identity(&trigger).unwrap().keys().unwrap_err().message.contains("not supported yet"));
    assert!(!format!("{:?}", identity(&trigger)).contains("secret"));
}

#[test]
fn endpoints() {
    assert_eq!(endpoint("sqs", "eu-west-1", None), "https://sqs.eu-west-1.amazonaws.com");
    assert_eq!(endpoint("sqs", "cn-north-1", None), "https://sqs.cn-north-1.amazonaws.com.cn");
    assert_eq!(endpoint("sqs", "r", Some("http://localstack:4566/")), "http://localstack:4566");
}
