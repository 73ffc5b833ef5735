#![allow(clippy::unwrap_used)]

use std::path::Path;

use clap::{CommandFactory as _, FromArgMatches as _, Parser};

use super::RunArgs;
use super::flags::table;
use super::options::RunOptions;
use crate::certificates::Shared;
use crate::instance::own_namespace;
use crate::logs::LogFormat;

#[derive(Parser)]
struct RunCommandLine {
    #[command(flatten)]
    args: RunArgs,
}

fn arguments(words: &[&str]) -> Result<RunArgs, String> {
    let words = std::iter::once("run").chain(words.iter().copied());
    let matches = RunCommandLine::command().try_get_matches_from(words).map_err(|error| error.to_string())?;
    Ok(RunCommandLine::from_arg_matches(&matches).map_err(|error| error.to_string())?.args)
}

fn parse(words: &[&str]) -> Result<RunOptions, String> {
    let RunArgs { roles, flags, .. } = arguments(words)?;
    RunOptions::of(&roles, &flags, |_| None).map_err(|failure| format!("{failure:?}"))
}

#[test]
fn flags_of_several_roles_are_the_shared_ones() {
    let mut shared: Vec<String> =
        table().into_iter().filter(|flag| flag.roles.len() > 1).map(|flag| flag.name).collect();
    shared.sort_unstable();
    // A flag that is new here must mean the same in all roles; else it belongs into PREFIXED.
    assert_eq!(
        shared,
        [
            "authorization-always-allow-paths",
            "bind-address",
            "cert-secret-name",
            "compat",
            "context",
            "enable-cert-rotation",
            "health-probe-bind-address",
            "history",
            "kubeconfig",
            "leader-elect",
            "otlp-traces-endpoint",
            "secure-port",
            "tls-cert-file",
            "tls-private-key-file",
            "trace-unchanged",
        ]
    );
}

#[test]
fn shared_flags_reach_every_role() {
    let options = parse(&[
        "--secure-port=7443",
        "--bind-address=127.0.0.1",
        "--kubeconfig=/k",
        "--enable-cert-rotation",
        "--compat=strict",
    ])
    .unwrap();
    assert_eq!(options.serving.address.to_string(), "127.0.0.1:7443");
    assert_eq!(options.target.kubeconfig.as_deref(), Some(Path::new("/k")));
    let controller = options.controller.unwrap().merged_options().unwrap();
    assert_eq!((controller.secure_port, controller.enable_cert_rotation), (Some(7443), Some(true)));
    assert_eq!(controller.cert_secret_name.as_deref(), Some("plimsoll-certs"));
    let (metrics, operator) = (options.metrics.unwrap(), options.operator.unwrap());
    assert!(metrics.compat.is_strict() && operator.settings.compat.is_strict());
    let (namespace, name) = (own_namespace(), "plimsoll-certs".to_owned());
    assert_eq!(options.serving.shared, Shared::Secret { namespace, name });
    assert_eq!(
        (&metrics.serving.shared, &operator.serving.shared),
        (&options.serving.shared, &options.serving.shared)
    );
}

#[test]
fn every_role_has_its_own_lease_by_default() {
    let options = parse(&[]).unwrap();
    assert_eq!(options.roles().len(), 3);
    assert_eq!(options.serving.address.to_string(), "0.0.0.0:6443");
    assert_eq!(options.serving.shared, Shared::Nothing);
    assert!(options.serving.probes.is_some_and(|probes| probes.address.port() == 8081 && !probes.wanted));
    // The controller decides: one that acts is elected.
    assert_eq!(options.controller.unwrap().merged_options().unwrap().leader_elect, None);
    assert_eq!(options.operator.unwrap().lease.unwrap().name, "operator.keda.sh");
    let without = parse(&["--leader-elect=false"]).unwrap();
    assert_eq!(without.controller.unwrap().merged_options().unwrap().leader_elect, Some(false));
    assert!(without.operator.unwrap().lease.is_none());
}

#[test]
fn flags_of_a_role_keep_their_names() {
    let options = parse(&[
        "--namespaces=a,b",
        "--metric-resolution=15s",
        "--act=direct",
        "--controller-record=/c",
        "--operator-record=/o",
    ])
    .unwrap();
    let controller = options.controller.unwrap().merged_options().unwrap();
    assert_eq!(controller.namespaces.unwrap(), ["a", "b"]);
    assert_eq!(controller.record.as_deref(), Some(Path::new("/c")));
    assert_eq!(options.metrics.unwrap().kubelets.resolution.as_secs(), 15);
    assert_eq!(options.operator.unwrap().record.as_deref(), Some(Path::new("/o")));
}

/// As the chart puts them together: its own, then those that `plimsoll migrate values` makes of the charts of the replaced programs.
#[test]
fn log_flags_of_the_replaced_programs_are_those_of_the_process() {
    let cases: [(&[&str], &str, LogFormat); 12] = [
        (&[], "info", LogFormat::Text),
        (&["--log-format=json", "--v=4", "--zap-log-level=info"], "debug", LogFormat::Json),
        (&["-v", "6"], "trace", LogFormat::Text),
        (&["--v=0", "--zap-log-level=error"], "info", LogFormat::Text),
        (&["--zap-log-level=error"], "error", LogFormat::Text),
        (&["--zap-log-level=debug", "--v=2", "--zap-log-level=warn"], "debug", LogFormat::Text),
        (&["--zap-log-level=3"], "trace", LogFormat::Text),
        // Our own flags take precedence, and of several the last one.
        (&["--log-level=debug", "--v=9", "--zap-log-level=9", "--log-level=warn"], "warn", LogFormat::Text),
        (&["--zap-encoder=json"], "info", LogFormat::Json),
        (&["--logging-format=json"], "info", LogFormat::Json),
        (&["--log-format=json", "--log-format=text", "--zap-encoder=json"], "info", LogFormat::Text),
        // These have no effect in the roles, either.
        (&["--logtostderr=true", "--vmodule=a=1", "--zap-time-encoding=rfc3339"], "info", LogFormat::Text),
    ];
    for (words, level, format) in cases {
        let logs = arguments(words).unwrap().logs.0;
        assert_eq!((logs.log_level.as_str(), logs.log_format), (level, format), "{words:?}");
    }
}

#[test]
fn operator_of_the_process_is_not_queried() {
    let metrics = parse(&["--operator=sys/op"]).unwrap().metrics.unwrap();
    assert!(metrics.operator.is_none(), "{:?}", metrics.operator);
    assert_eq!(metrics.idle, ["operator"], "the log names it");
    let alone = parse(&["--roles=controller,metrics", "--operator=sys/op"]).unwrap().metrics.unwrap();
    assert_eq!(alone.operator.unwrap().name.as_str(), "op");
    assert!(alone.idle.is_empty(), "{:?}", alone.idle);
}

#[test]
fn invalid_flags_are_reported() {
    for (words, message) in [
        (vec!["--config=x"], "write --controller-config or --metrics-config"),
        (vec!["--record"], "write --controller-record or --operator-record"),
        (
            vec!["--roles=controller", "--act=direct"],
            "--act is a flag of the role operator, which --roles leaves out",
        ),
        (vec!["--roles=operator", "--metric-resolution=15s"], "flag of the role metrics"),
        (vec!["--kubelet-port=x"], "write a whole number"),
        (vec!["--metric-resolution=1s"], "at least 10s"),
        (vec!["--zap-log-level=loud"], "write debug, info, error or a number"),
        (vec!["--v=much"], "write a whole number"),
        (vec!["--horizontal-pod-autoscaler-tolerance=-1"], "must be 0 or more"),
        (vec!["--roles=webhook"], "possible values: controller, metrics, operator"),
        (vec!["--secure-port=-1"], "0 to 65535"),
        (vec!["--trace-unchanged=2"], "write a ratio from 0 to 1"),
    ] {
        let error = parse(&words).err().unwrap();
        assert!(error.contains(message), "{words:?}: {error}");
    }
}
