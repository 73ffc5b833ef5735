#![allow(clippy::unwrap_used)]

use std::path::Path;

use clap::{CommandFactory as _, FromArgMatches as _, Parser};

use super::RunArgs;
use super::flags::table;
use super::options::RunOptions;
use crate::certificates::Shared;
use crate::instance::own_namespace;

#[derive(Parser)]
struct RunCommandLine {
    #[command(flatten)]
    args: RunArgs,
}

fn parse(words: &[&str]) -> Result<RunOptions, String> {
    let words = std::iter::once("run").chain(words.iter().copied());
    let matches = RunCommandLine::command().try_get_matches_from(words).map_err(|error| error.to_string())?;
    let RunArgs { roles, flags, .. } =
        RunCommandLine::from_arg_matches(&matches).map_err(|error| error.to_string())?.args;
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
        (vec!["--operator=sys/op"], "the operator runs in this process"),
        (vec!["--horizontal-pod-autoscaler-tolerance=-1"], "must be 0 or more"),
        (vec!["--roles=webhook"], "possible values: controller, metrics, operator"),
        (vec!["--secure-port=-1"], "0 to 65535"),
        (vec!["--trace-unchanged=2"], "write a ratio from 0 to 1"),
    ] {
        let error = parse(&words).err().unwrap();
        assert!(error.contains(message), "{words:?}: {error}");
    }
}
