use api::keda::KedaProfile;

use super::rules::{is_version, partitions};
use super::{ApacheParameters, Parameters};
use crate::Trigger;
use crate::test_support::{FakeCluster, backends, build, texts, trigger};
use crate::tls::CertificateCheck;

fn kafka(metadata: &[(&str, &str)], auth: &[(&str, &str)]) -> Trigger {
    let mut given = trigger("kafka", &[("bootstrapServers", "k:9092"), ("consumerGroup", "g")]);
    given.metadata.extend(texts(metadata));
    given.auth = texts(auth);
    given
}

fn error(trigger: &Trigger) -> String {
    build(trigger).err().map(|error| error.message).unwrap_or_default()
}

#[test]
fn partitions_are_numbers_and_ranges() {
    assert_eq!(partitions("").unwrap(), None);
    assert_eq!(partitions("1,3-5").unwrap(), Some(vec![1, 3, 4, 5]));
    assert_eq!(partitions("5-1").unwrap(), Some(vec![]));
    assert_eq!(partitions("1 - 3").unwrap(), Some(vec![1, 2, 3]));
    assert_eq!(partitions("1-2-3").unwrap_err().to_string(), "invalid partition limitation range: 1-2-3");
    assert_eq!(partitions("1,,2").unwrap_err().to_string(), "invalid partition limitation: ");
    assert!(partitions("0-2147483647").is_err());
}

#[test]
fn versions_have_three_numbers_or_four() {
    for good in ["1.0.0", "2.5.0", "0.10.2.1", "4.1.0"] {
        assert!(is_version(good), "{good}");
    }
    for bad in ["0.8", "1.2.3.4.5", "padded", "", "1..0", "1.0.x"] {
        assert!(!is_version(bad), "{bad}");
    }
}

#[test]
fn a_login_is_complete() {
    let plain = kafka(&[("sasl", "plaintext")], &[("username", "u")]);
    assert!(error(&plain).ends_with(": no password given"), "{}", error(&plain));
    let token = kafka(&[("sasl", "oauthbearer")], &[("username", "u"), ("password", "p")]);
    assert!(error(&token).ends_with("configuration: no oauth token endpoint uri given"));
    let kerberos = kafka(&[("sasl", "gssapi")], &[("username", "u")]);
    assert!(error(&kerberos).contains("exactly one of 'password' or 'keytab' must"));
    let newer = Trigger { profile: KedaProfile::V2_21, ..kerberos };
    assert!(error(&newer).contains("'keytab' or 'ccacheName'"));
}

#[test]
fn full_metadata_belongs_to_2_21() {
    let given = kafka(&[("fullMetadata", "false")], &[]);
    assert_eq!(error(&given), "");
    let newer = Trigger { profile: KedaProfile::V2_21, ..given };
    assert!(error(&newer).ends_with("topic must be specified when fullMetadata is false"));
}

#[tokio::test]
async fn kerberos_is_named_as_unsupported() {
    let auth = [("username", "u"), ("password", "p"), ("realm", "R"), ("kerberosConfig", "c")];
    let error = build(&kafka(&[("sasl", "gssapi")], &auth)).unwrap().read("m").await.unwrap_err();
    assert!(error.message.contains("gssapi (Kerberos) is not supported"), "{error}");
}

#[test]
fn refusals_are_those_of_each_type() {
    let refused = |type_: &str, metadata: &[(&str, &str)], auth: &[(&str, &str)]| {
        let error = error(&Trigger { type_: type_.to_owned(), ..kafka(metadata, auth) });
        error.replace("error parsing kafka metadata: ", "")
    };
    let activation = [("activationLagThreshold", "-1")];
    assert_eq!(
        refused("kafka", &activation, &[]),
        "\"activationLagThreshold\" must be a non-negative number"
    );
    assert_eq!(refused("apache-kafka", &activation, &[]), "activationLagThreshold must be a positive number");
    let policy = refused("apache-kafka", &[("offsetResetPolicy", "x")], &[]);
    assert_eq!(policy, "parameter \"offsetResetPolicy\" value \"x\" must be one of [earliest latest]");
    let login = [("sasl", "plaintext")];
    assert_eq!(
        refused("apache-kafka", &login, &[("username", "u")]),
        "username and password must be set when using SASL/PLAINTEXT"
    );
    assert_eq!(refused("apache-kafka", &[("sasl", "scram_sha256")], &[]), "");
    assert_eq!(
        refused("apache-kafka", &[("tls", "enable")], &[("tls", "enable")]),
        "unable to set `tls` in both ScaledObject and TriggerAuthentication together"
    );
    let iam = [("sasl", "aws_msk_iam"), ("awsRegion", "r")];
    assert_eq!(refused("apache-kafka", &iam, &[]), "TLS must be enabled when using AWS MSK IAM");
    let iam = [("sasl", "aws_msk_iam"), ("awsRegion", "r"), ("tls", "enable")];
    assert_eq!(refused("apache-kafka", &iam, &[]), "awsAccessKeyID not found");
    let partitions = refused("apache-kafka", &[("partitionLimitation", "x")], &[]);
    let begin = "unable to set param \"partitionLimitation\" value \"x\": slice element 0: unable to unmarshal to field type int";
    assert!(partitions.starts_with(begin), "{partitions}");
}

/// `unsafeSsl` and a CA of the tenant would send a token of the operator to whoever answers under the name of a broker.
#[test]
fn tokens_of_the_operator_need_a_verified_broker() {
    type Pairs = [(&'static str, &'static str)];
    let backends = backends(FakeCluster::default());
    let keys = [("awsAccessKeyID", "AK"), ("awsSecretAccessKey", "SK")];
    let role = [("awsRoleArn", "arn:aws:iam::1:role/r")];
    let of_operator = [("identityOwner", "operator")];
    let cases: [(&Pairs, &Pairs, bool); 3] =
        [(&of_operator, &[], true), (&[], &role, true), (&[], &keys, false)];
    for (metadata, auth, is_verified) in cases {
        let tls = [("tls", "enable"), ("unsafeSsl", "true"), ("awsRegion", "eu-west-1")];
        let mut given = kafka(&tls, &[("ca", "a CA of the tenant")]);
        given.metadata.extend(texts(metadata));
        given.auth.extend(texts(auth));
        let mut apache = given.clone();
        given.metadata.extend(texts(&[("sasl", "oauthbearer"), ("saslTokenProvider", "aws_msk_iam")]));
        apache.metadata.extend(texts(&[("sasl", "aws_msk_iam")]));
        apache.type_ = "apache-kafka".to_owned();
        let parameters = Parameters::read(&given).unwrap();
        let login = parameters.login(&given, &backends).unwrap();
        let of_kafka = parameters.tls.settings(login.as_ref());
        let parameters = ApacheParameters::read(&apache).unwrap();
        let login = parameters.login(&apache, &backends).unwrap();
        let of_apache = parameters.tls.settings(login.as_ref());
        for settings in [of_kafka, of_apache] {
            let settings = settings.unwrap();
            assert_eq!(settings.certificate_check == CertificateCheck::Full, is_verified, "{auth:?}");
            assert_eq!(settings.authorities.is_empty(), is_verified, "{auth:?}");
        }
    }
}
