#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::collections::HashSet;
use std::time::Duration;

use api::keda::KedaProfile;
use clap::{CommandFactory as _, FromArgMatches as _, Parser};
use controllers::operator::ScalingMode;
use controllers::operator::operator_identity::audiences::TokenMode;
use controllers::operator::operator_identity::{IdentityRules, IdentityUsers};

use super::flags::{FLAGS, OperatorFlags};
use super::options::OperatorOptions;
use super::raw_metrics::RawMetricsMode;
use crate::certificates::Shared;
use crate::flags::FlagEffect;

#[derive(Parser)]
struct OperatorCommandLine {
    #[command(flatten)]
    flags: OperatorFlags,
}

fn parse(words: &[&str], variables: &[(&str, &str)]) -> Result<OperatorOptions, String> {
    let words = std::iter::once("operator").chain(words.iter().copied());
    let matches =
        OperatorCommandLine::command().try_get_matches_from(words).map_err(|error| error.to_string())?;
    let line = OperatorCommandLine::from_arg_matches(&matches).map_err(|error| error.to_string())?;
    let variable =
        |name: &str| variables.iter().find(|(own, _)| *own == name).map(|(_, value)| (*value).to_owned());
    OperatorOptions::of(&line.flags, variable).map_err(|failure| format!("{failure:?}"))
}

#[test]
fn label_selectors_come_from_the_environment() {
    let selectors = |variables: &[(&str, &str)]| {
        let settings = parse(&[], variables).unwrap().settings;
        (settings.label_selector, settings.authentication_selector)
    };
    assert_eq!(selectors(&[]), (String::new(), String::new()));
    let given = [("WATCH_LABEL_SELECTOR", "team=a"), ("WATCH_LABEL_SELECTOR_FOR_TRIGGERAUTH", "\"\"")];
    assert_eq!(selectors(&given), ("team=a".to_owned(), String::new()));
    let error = parse(&[], &[("WATCH_LABEL_SELECTOR", "team=(")]).unwrap_err();
    assert!(error.contains("invalid WATCH_LABEL_SELECTOR"), "{error}");
}

#[test]
fn keda_profile_is_named_or_found_out() {
    let options = |words: &[&str]| parse(words, &[]).unwrap();
    let plain = options(&[]);
    assert_eq!((plain.settings.profile, plain.auto_profile), (KedaProfile::V2_20, false));
    let named = options(&["--keda-profile=2.21"]);
    assert_eq!((named.settings.profile, named.auto_profile), (KedaProfile::V2_21, false));
    assert!(options(&["--keda-profile=auto"]).auto_profile);
    assert!(parse(&["--keda-profile=2.19"], &[]).is_err());
}

#[test]
fn every_flag_is_listed_once_with_a_description() {
    let mut names = HashSet::new();
    for flag in FLAGS {
        assert!(names.insert(flag.name), "{}", flag.name);
        assert!(!flag.about.is_empty(), "{}", flag.name);
    }
}

#[test]
fn flags_of_keda_manifests_are_accepted() {
    let words = [
        "--leader-elect",
        "--disable-compression=true",
        "--zap-log-level=info",
        "--zap-encoder=console",
        "--zap-time-encoding=rfc3339",
        "--enable-webhook-patching=true",
        "--cert-dir=/certs",
        "--enable-cert-rotation=true",
        "--cert-secret-name=kedaorg-certs",
        "--operator-service-name=keda-operator",
        "--metrics-server-service-name=keda-operator-metrics-apiserver",
        "--webhooks-service-name=keda-admission-webhooks",
        "--k8s-cluster-name=kubernetes-default",
        "--k8s-cluster-domain=cluster.local",
        // This folder does not exist.
        "--ca-dir=/custom/ca",
        "--enable-prometheus-metrics=false",
    ];
    let variables =
        [("WATCH_NAMESPACE", "shop, web"), ("POD_NAMESPACE", "keda"), ("KEDA_HTTP_DEFAULT_TIMEOUT", "5000")];
    let options = parse(&words, &variables).unwrap();
    assert_eq!(options.settings.namespaces, ["shop", "web"]);
    assert_eq!(options.settings.http_timeout, Duration::from_secs(5));
    assert_eq!(options.settings.cluster_object_namespace, "keda");
    assert_eq!(options.lease.unwrap().name, "operator.keda.sh");
    assert!(options.serving.names.contains(&"keda-operator-metrics-apiserver.keda.svc".to_owned()));
    assert_eq!(options.idle, ["zap-time-encoding"]);
    let (namespace, name) = ("keda".to_owned(), "kedaorg-certs".to_owned());
    assert_eq!(options.serving.shared, Shared::Secret { namespace, name });
    assert_eq!(options.serving.health.unwrap().address.port(), 8081);
    assert_eq!(options.serving.metrics_service.unwrap().address.port(), 9666);
    let idle: Vec<_> =
        FLAGS.iter().filter(|flag| flag.effect == FlagEffect::Nothing).map(|flag| flag.name).collect();
    assert!(options.idle.iter().all(|name| idle.contains(name)));
}

#[test]
fn exported_metrics_without_tls_need_a_flag() {
    let exported_metrics = |words: &[&str]| parse(words, &[]).unwrap().serving.exported_metrics;
    assert_eq!(exported_metrics(&[]), None);
    let open = exported_metrics(&["--metrics-bind-address=:8080"]).unwrap();
    assert_eq!((open.address.to_string().as_str(), open.wanted), ("0.0.0.0:8080", true));
    assert_eq!(
        exported_metrics(&["--metrics-bind-address=:8080", "--enable-prometheus-metrics=false"]),
        None
    );
    assert_eq!(exported_metrics(&["--metrics-bind-address=0"]), None);
    let health = |words: &[&str]| parse(words, &[]).unwrap().serving.health;
    assert!(health(&[]).is_some_and(|open| !open.wanted));
    assert!(health(&["--health-probe-bind-address=:8081"]).is_some_and(|open| open.wanted));
    assert_eq!(health(&["--health-probe-bind-address="]), None);
}

#[test]
fn opentelemetry_metrics_need_a_flag() {
    let flag = ["--enable-opentelemetry-metrics=true"];
    let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318");
    assert!(parse(&[], &[endpoint]).unwrap().otlp_metrics.is_none());
    let target = parse(&flag, &[endpoint]).unwrap().otlp_metrics.unwrap();
    assert!(format!("{target:?}").contains("http://collector:4318/v1/metrics"), "{target:?}");
    let error = parse(&flag, &[("OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4318")]).unwrap_err();
    assert!(error.contains("OTEL_EXPORTER_OTLP_ENDPOINT"), "{error}");
}

#[test]
fn raw_metrics_need_an_environment_variable() {
    let mode =
        |variables: &[(&'static str, &'static str)]| parse(&[], variables).unwrap().serving.raw_metrics;
    let on = ("RAW_METRICS_GRPC_PROTOCOL", "enabled");
    assert_eq!(mode(&[]), None);
    assert_eq!(mode(&[("RAW_METRICS_GRPC_PROTOCOL", "true"), ("RAW_METRICS_MODE", "hpa")]), None);
    assert_eq!(mode(&[on]), Some(RawMetricsMode::All));
    assert_eq!(mode(&[on, ("RAW_METRICS_MODE", "hpa")]), Some(RawMetricsMode::Hpa));
    assert_eq!(mode(&[on, ("RAW_METRICS_MODE", "pollinginterval")]), Some(RawMetricsMode::Poll));
    assert_eq!(mode(&[on, ("RAW_METRICS_MODE", "what?")]), Some(RawMetricsMode::All));
}

#[test]
fn certificate_source_is_files_then_secret_then_folder() {
    let shared = |words: &[&str]| parse(words, &[("POD_NAMESPACE", "ns")]).unwrap().serving.shared;
    assert_eq!(shared(&[]), Shared::Nothing);
    assert_eq!(shared(&["--cert-dir=/x"]), Shared::Folder("/x".into()));
    let secret = Shared::Secret { namespace: "ns".into(), name: "s".into() };
    assert_eq!(shared(&["--cert-dir=/x", "--enable-cert-rotation", "--cert-secret-name=s"]), secret);
    let files = ["--tls-cert-file=a", "--tls-private-key-file=b", "--enable-cert-rotation"];
    assert_eq!(shared(&files), Shared::Nothing);
}

#[test]
fn documentation_tables_match_the_flag_table() {
    let page =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/operator.md")).unwrap();
    for flag in FLAGS {
        let line = match flag.effect {
            FlagEffect::Nothing => format!("| `--{}` | {} |", flag.name, flag.about),
            FlagEffect::Acts if flag.default.is_empty() => {
                format!("| `--{}` |  | {} |", flag.name, flag.about)
            }
            FlagEffect::Acts => format!("| `--{}` | `{}` | {} |", flag.name, flag.default, flag.about),
        };
        assert!(page.lines().any(|own| own == line), "docs/operator.md lacks\n{line}");
    }
}

#[tokio::test]
async fn only_given_ranges_are_allowed() {
    let allows = async |words: &[&str], address: &str| {
        parse(words, &[]).unwrap().web.dialer.resolve(address, 80).await.is_ok()
    };
    assert!(!allows(&[], "127.0.0.1").await && !allows(&[], "169.254.169.254").await);
    assert!(allows(&[], "10.0.0.1").await);
    let both = ["--allow-source-cidr=127.0.0.0/8, ::1", "--allow-source-cidr=169.254.20.10"];
    for address in ["127.0.0.1", "::1", "169.254.20.10"] {
        assert!(allows(&both, address).await, "{address}");
    }
    assert!(!allows(&both, "169.254.169.254").await);
    #[cfg(feature = "desk")]
    assert!(
        OperatorOptions::for_embedded_cluster().unwrap().web.dialer.resolve("127.0.0.1", 80).await.is_ok()
    );
    assert_eq!(parse(&[], &[]).unwrap().settings.tenant_files, None);
    let folder = parse(&["--tenant-files-dir=/tenant"], &[]).unwrap().settings.tenant_files;
    assert_eq!(folder.unwrap(), std::path::Path::new("/tenant"));
}

#[test]
fn invalid_flags_are_reported() {
    for (words, variables, message) in [
        (vec!["--act=both"], vec![], "possible values: hpa, direct"),
        (vec!["--secure-port=70000"], vec![], "from 0 to 65535"),
        (vec!["--tls-cert-file=a"], vec![], "belong together"),
        (vec!["--ca-dir=/no/such/folder"], vec![], "/no/such/folder"),
        (vec!["--allow-source-cidr=10.0.0.0/8,localhost"], vec![], "is no CIDR"),
        (vec!["--sample-age=-1s"], vec![], "must not be negative"),
        (vec!["--metrics-bind-address=8080"], vec![], "such as :8080"),
        (vec![], vec![("KEDA_BOUND_SERVICE_ACCOUNT_TOKEN_EXPIRY", "30m")], "between 1h and 6h"),
        (vec![], vec![("KEDA_BOUND_SERVICE_ACCOUNT_TOKEN_EXPIRY", "7h")], "between 1h and 6h"),
        (
            vec!["--service-account-token-mode=off"],
            vec![],
            "unsupported service-account-token-mode \\\"off\\\": expected enforce-audience or legacy",
        ),
        (
            vec!["--service-account-token-mode=legacy"],
            vec![("KEDA_SERVICE_ACCOUNT_TOKEN_AUDIENCES", "[{audience: a}]")],
            "legacy token mode cannot be combined with configured audiences",
        ),
        (vec![], vec![("KEDA_SERVICE_ACCOUNT_TOKEN_AUDIENCES", "[{}]")], "audiences must be nonempty"),
        (vec![], vec![("KEDA_OUTBOUND_FILTER", "null")], "must be objects, not null"),
        (vec!["--operator-identity=none"], vec![], "possible values: any, cluster-only"),
    ] {
        let error = parse(&words, &variables).unwrap_err();
        assert!(error.contains(message), "{words:?}: {error}");
    }
}

#[test]
fn identity_rules_come_from_flags_and_variables() {
    assert_eq!(parse(&[], &[]).unwrap().settings.identity, IdentityRules::default());
    let words =
        ["--operator-identity=cluster-only", "--vault-kubernetes-auth-token-file=/t", "--compat=strict"];
    let variables = [
        ("KEDA_OUTBOUND_FILTER", r#"{"hashiCorpVault": {"allowedEndpoints": ["https://vault:8200"]}}"#),
        ("KEDA_SERVICE_ACCOUNT_TOKEN_AUDIENCES", "- audience: vault"),
    ];
    let rules = parse(&words, &variables).unwrap().settings.identity;
    assert_eq!(rules.users, IdentityUsers::ClusterOnly);
    assert_eq!(rules.vault_token_file.to_str(), Some("/t"));
    assert!(rules.outbound.lists("https://vault:8200") && !rules.outbound.lists("http://vault:8200"));
    assert!(!rules.audiences.is_empty());
    let legacy = parse(&["--service-account-token-mode=legacy"], &[]).unwrap().settings.identity;
    assert_eq!(legacy.token_mode, TokenMode::Legacy);
}

#[test]
fn defaults_equal_those_of_keda() {
    let options = parse(&[], &[]).unwrap();
    assert_eq!(options.settings.scaling_mode, ScalingMode::Hpa);
    assert_eq!(options.settings.cluster_name, "kubernetes-default");
    assert_eq!(options.settings.token_expiry, Duration::from_hours(1));
    assert!(options.lease.is_none() && options.idle.is_empty());
    assert_eq!(options.serving.webhook.as_deref(), Some("keda-admission"));
    assert_eq!(parse(&["--act", "direct"], &[]).unwrap().settings.scaling_mode, ScalingMode::Direct);
}
