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
fn vanilla_request_is_signed_as_documented() {
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
    trigger.auth.insert("awsSecretAccessKey".into(), "hunter2".into());
    assert_eq!(access(&trigger), "given");
    assert!(!format!("{:?}", identity(&trigger)).contains("hunter2"));
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
fn endpoint_is_that_of_the_region_unless_given() {
    assert_eq!(endpoint("sqs", "eu-west-1", None), "https://sqs.eu-west-1.amazonaws.com");
    assert_eq!(endpoint("sqs", "cn-north-1", None), "https://sqs.cn-north-1.amazonaws.com.cn");
    assert_eq!(endpoint("sqs", "r", Some("http://localstack:4566/")), "http://localstack:4566");
}

#[tokio::test]
async fn region_is_one_label_of_the_host() {
    let keys = || AwsIdentity::Keys(keys());
    let answered = crate::web::SharedHttpClient::answered_by(|call| panic!("{call:?} was sent"));
    let web = Arc::new(answered);
    let long = format!("eu-{}-1", "west".repeat(20));
    for region in [
        "",
        "eu-west-1.evil.example/",
        "evil.example#",
        "EU-WEST-1",
        "eu_west",
        "a@b",
        "s3",
        "s3-us-west-2",
        "eu-west",
        "eu-1",
        "eu--1",
        "eu-west-",
        "eu-west-1x",
        "eu-west-100",
        "europe-west-1",
        &*long,
    ] {
        let within = Duration::from_secs(1);
        let client = AwsClient::of_identity(keys(), region, within, Arc::default(), Arc::clone(&web));
        let request =
            AwsRequest { host: "sqs", service: "sqs", target: "t", version: "1.0", body: String::new() };
        let error = client.send(request).await.unwrap_err();
        assert!(error.message.starts_with("region is not a region of AWS"), "{region}: {error}");
    }
}

#[test]
fn regions_of_all_partitions_are_known() {
    for region in [
        "eu-west-1",
        "us-gov-west-1",
        "ap-southeast-2",
        "us-iso-east-1",
        "us-isob-east-1",
        "cn-north-1",
        "mx-central-1",
        "eusc-de-east-1",
    ] {
        assert!(is_aws_region(region), "{region}");
    }
}

#[test]
fn endpoints_are_in_the_domain_of_their_partition() {
    for (region, url) in [
        ("us-gov-west-1", "https://sqs.us-gov-west-1.amazonaws.com"),
        ("cn-north-1", "https://sqs.cn-north-1.amazonaws.com.cn"),
        ("eusc-de-east-1", "https://sqs.eusc-de-east-1.amazonaws.eu"),
        ("us-iso-east-1", "https://sqs.us-iso-east-1.c2s.ic.gov"),
        ("us-isob-east-1", "https://sqs.us-isob-east-1.sc2s.sgov.gov"),
    ] {
        assert_eq!(endpoint("sqs", region, None), url);
        assert_eq!(check_endpoint(&AwsIdentity::Operator, url, ["sqs", "sqs"], region), Ok(()), "{region}");
    }
}

#[test]
fn credentials_of_the_operator_go_to_aws_only() {
    let keys = AwsIdentity::Keys(AwsKeys {
        access: "AK".into(),
        secret: crate::parameters::Secret::new("SK"),
        session: None,
    });
    let role = AwsIdentity::Role { arn: "arn".into(), external_id: None, web_identity: true };
    for host in ["sqs.eu-west-1.amazonaws.com", "sqs.cn-north-1.amazonaws.com.cn", "SQS.eu-west-1.api.aws"] {
        for identity in [&keys, &role, &AwsIdentity::Operator] {
            assert_eq!(check_destination(identity, host), Ok(()), "{host}");
        }
    }
    for host in ["", "127.0.0.1", "evilamazonaws.com", "amazonaws.com.example", "sqs.amazonaws.com."] {
        assert_eq!(check_destination(&keys, host), Ok(()), "{host}");
        for identity in [&role, &AwsIdentity::Operator] {
            assert!(check_destination(identity, host).is_err(), "{host}");
        }
    }
}

/// Machines, load balancers and functions of customers have hosts in the domains of AWS, too.
#[test]
fn credentials_of_the_operator_go_to_the_service_only() {
    let is_service = |endpoint: &str| is_of_service(endpoint, ["sqs", "sqs"], "eu-west-1");
    for good in [
        "https://sqs.eu-west-1.amazonaws.com",
        "https://SQS.eu-west-1.amazonaws.com",
        "https://sqs-fips.eu-west-1.amazonaws.com",
        "https://sqs.eu-west-1.api.aws",
        "https://vpce-0a1-2b3.sqs.eu-west-1.vpce.amazonaws.com",
        "https://vpce-0a1-2b3-eu-west-1a.sqs.eu-west-1.vpce.amazonaws.com",
    ] {
        assert!(is_service(good), "{good}");
    }
    for bad in [
        "http://sqs.eu-west-1.amazonaws.com",
        "https://sqs.eu-west-1.amazonaws.com:8443",
        "https://sqs.eu-west-1.amazonaws.com/x",
        "https://sqs.eu-west-2.amazonaws.com",
        "https://monitoring.eu-west-1.amazonaws.com",
        "https://ec2-192-0-2-1.eu-west-1.compute.amazonaws.com",
        "https://sqs-1.eu-west-1.elb.amazonaws.com",
        "https://sqs.execute-api.eu-west-1.amazonaws.com",
        "https://vpce-0a1.vpce-svc-0b2.eu-west-1.vpce.amazonaws.com",
        "https://evil.vpce-0a1.sqs.eu-west-1.vpce.amazonaws.com",
        "https://vpce-0a1@evil/.sqs.eu-west-1.vpce.amazonaws.com",
        "https://evil/sqs.eu-west-1.amazonaws.com",
        "https://sqs.eu-west-1.amazonaws.com@evil",
        "",
    ] {
        assert!(!is_service(bad), "{bad}");
    }
    let streams = ["streams.dynamodb", "dynamodb"];
    for name in ["streams.dynamodb", "streams-dynamodb", "dynamodb"] {
        assert!(is_of_service(&format!("https://{name}.eu-west-1.api.aws"), streams, "eu-west-1"), "{name}");
    }
    assert!(is_of_service("https://sqs.cn-north-1.amazonaws.com.cn", ["sqs", "sqs"], "cn-north-1"));
    assert!(!is_of_service("https://sqs.a.elb.amazonaws.com", ["sqs", "sqs"], "a.elb"));
    let elsewhere = "https://ec2-192-0-2-1.eu-west-1.compute.amazonaws.com";
    let check = |identity: &AwsIdentity| check_endpoint(identity, elsewhere, ["sqs", "sqs"], "eu-west-1");
    assert_eq!(check(&AwsIdentity::Keys(keys())), Ok(()));
    let error = check(&AwsIdentity::Operator).unwrap_err().message;
    assert!(
        error.contains("https://sqs.eu-west-1.amazonaws.com") && error.contains("ec2-192-0-2-1"),
        "{error}"
    );
}

#[tokio::test]
async fn tenants_cannot_send_credentials_of_the_operator_elsewhere() {
    let (reached, url) = {
        let reached = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let count = std::sync::Arc::clone(&reached);
        let url = crate::test_support::server(move |_| {
            count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            crate::test_support::ServerAction::Answer(200, "{}".to_owned())
        })
        .await;
        (reached, url)
    };
    let metadata = [
        ("queueURL", "https://sqs/1/q"),
        ("awsRegion", "eu-west-1"),
        ("awsEndpoint", &*url),
        ("identityOwner", "operator"),
    ];
    let trigger = crate::test_support::trigger("aws-sqs-queue", &metadata);
    let error = crate::test_support::read(&trigger).await.unwrap_err().message;
    assert!(error.contains("sent to hosts of AWS only"), "{error}");
    assert_eq!(reached.load(std::sync::atomic::Ordering::SeqCst), 0);
}

#[test]
fn cluster_only_identity_is_not_for_triggers() {
    let backends =
        Backends::without_cluster(crate::web::HttpSettings::default(), api::provider::Compat::Better)
            .with_operator_identity(OperatorIdentity::Administrators);
    let mut trigger = Trigger::default();
    trigger.metadata.insert("identityOwner".into(), "operator".into());
    let permitted =
        |trigger: &Trigger| AwsCredentials::read(trigger).unwrap().permitted_identity(trigger, &backends);
    assert!(permitted(&trigger).unwrap_err().message.contains("--operator-identity=cluster-only"));
    // The TriggerAuthentication of a pod identity was checked before.
    trigger.identity.provider = "aws".into();
    assert_eq!(permitted(&trigger), Ok(AwsIdentity::Operator));
}
