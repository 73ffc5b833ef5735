#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::collections::HashSet;

use clap::{CommandFactory as _, FromArgMatches as _, Parser};

use super::*;
use crate::flags::{FlagEffect, Kind, normal};

#[derive(Parser)]
struct FlagsCommandLine {
    #[command(flatten)]
    flags: MetricsFlags,
}

fn parse(words: &[&str]) -> Result<MetricsFlags, String> {
    let words = std::iter::once("metrics").chain(words.iter().copied()).map(normal);
    let matches = FlagsCommandLine::command().disable_version_flag(true).try_get_matches_from(words);
    let line = matches.and_then(|matches| FlagsCommandLine::from_arg_matches(&matches));
    line.map(|line| line.flags).map_err(|error| error.to_string())
}

/// A value that is not the default.
fn another(flag: &Flag) -> String {
    match flag.kind {
        Kind::Bool if flag.default == "true" => "false",
        Kind::Bool => "true",
        Kind::Text | Kind::File | Kind::Repeated => "something",
        Kind::Number => "7",
        Kind::Float => "0.25",
        Kind::Duration => "1h1m1s",
        Kind::Choice(words) => words.iter().find(|word| **word != flag.default).unwrap(),
        Kind::List => "a,b",
    }
    .to_owned()
}

#[test]
fn every_flag_is_accepted_in_every_form() {
    for flag in FLAGS {
        let value = another(flag);
        let given = parse(&[&format!("--{}={value}", flag.name)]).unwrap();
        assert!(given.given(flag.name), "{}", flag.name);
        assert_eq!(given.text(flag.name).unwrap(), value);
        assert_eq!(given.idle().contains(&flag.name), flag.effect == FlagEffect::Nothing, "{}", flag.name);
        let underscored = format!("--{}={value}", flag.name.replace('-', "_"));
        assert_eq!(parse(&[&underscored]).unwrap().text(flag.name).unwrap(), value);
        if flag.kind == Kind::Bool {
            // What follows a flag that is true or false is another word.
            let both = parse(&[&format!("--{}", flag.name), "--compat", "strict"]).unwrap();
            assert!(both.bool(flag.name).unwrap(), "{}", flag.name);
        } else {
            let apart = parse(&[&format!("--{}", flag.name), &value]).unwrap();
            assert_eq!(apart.text(flag.name).unwrap(), value);
        }
        if let Some(letter) = flag.short {
            for words in [
                vec![format!("-{letter}"), value.clone()],
                vec![format!("-{letter}={value}")],
                vec![format!("-{letter}{value}")],
            ] {
                let words: Vec<&str> = words.iter().map(String::as_str).collect();
                assert_eq!(parse(&words).unwrap().text(flag.name).unwrap(), value, "{words:?}");
            }
        }
    }
}

#[test]
fn flag_table_passes_clap_assertions() {
    let mut names = HashSet::new();
    for flag in FLAGS {
        assert!(names.insert(flag.name), "{} is there twice", flag.name);
        if !flag.default.is_empty() {
            flag.check(flag.default).unwrap();
        }
        assert!(!flag.about.is_empty() && !flag.about.ends_with('.'), "{}", flag.name);
        if let Kind::Choice(words) = flag.kind {
            assert!(flag.default.is_empty() || words.contains(&flag.default), "{}", flag.name);
        }
    }
    FlagsCommandLine::command().disable_version_flag(true).debug_assert();
}

/// The table of the documentation. `PLIMSOLL_WRITE_DOCS=1 cargo test -p plimsoll --bin plimsoll flags` writes it.
#[test]
fn documentation_lists_every_flag() {
    const PLACE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/metrics.md");
    let mut table = "\n| Flag | Default | What it does |\n|---|---|---|\n".to_owned();
    for flag in FLAGS {
        let short = flag.short.filter(|letter| flag.name != letter.to_string());
        let short = short.map(|letter| format!("`-{letter}`, ")).unwrap_or_default();
        let default = if flag.default.is_empty() { String::new() } else { format!("`{}`", flag.default) };
        let nothing = if flag.effect == FlagEffect::Nothing { "*nothing:* " } else { "" };
        table += &format!(
            "| {short}`--{}` | {default} | {nothing}{} |\n",
            flag.name,
            flag.about.replace('|', "\\|")
        );
    }
    let text = std::fs::read_to_string(PLACE).unwrap();
    let (before, rest) = text.split_once("<!-- flags -->\n").unwrap();
    let (found, after) = rest.split_once("<!-- end of flags -->").unwrap();
    let table = format!("{table}\n");
    if std::env::var_os("PLIMSOLL_WRITE_DOCS").is_some() {
        let whole = format!("{before}<!-- flags -->\n{table}<!-- end of flags -->{after}");
        std::fs::write(PLACE, whole).unwrap();
    } else {
        assert_eq!(found, table);
    }
}

/// The flags of both servers as their help lists them.
#[test]
fn every_flag_of_the_replaced_servers_is_accepted() {
    const THEIRS: &str = "kubeconfig metric-resolution version kubelet-request-timeout kubelet-port \
        kubelet-use-node-status-port kubelet-preferred-address-types kubelet-certificate-authority \
        kubelet-client-certificate kubelet-client-key kubelet-insecure-tls deprecated-kubelet-completely-insecure \
        node-selector bind-address secure-port cert-dir tls-cert-file tls-private-key-file tls-sni-cert-key \
        tls-cipher-suites tls-curve-preferences tls-min-version disable-http2-serving \
        http2-max-streams-per-connection permit-address-sharing permit-port-sharing authentication-kubeconfig \
        authentication-skip-lookup authentication-token-webhook-cache-ttl authentication-tolerate-lookup-failure \
        client-ca-file requestheader-client-ca-file requestheader-allowed-names requestheader-username-headers \
        requestheader-uid-headers requestheader-group-headers requestheader-extra-headers-prefix \
        authorization-kubeconfig authorization-always-allow-paths authorization-webhook-cache-authorized-ttl \
        authorization-webhook-cache-unauthorized-ttl max-requests-inflight max-mutating-requests-inflight \
        request-timeout min-request-timeout shutdown-delay-duration shutdown-send-retry-after livez-grace-period \
        goaway-chance cors-allowed-origins external-hostname advertise-address strict-transport-security-directives \
        storage-initialization-timeout shutdown-watch-termination-grace-period feature-gates emulated-version \
        emulation-forward-compatible min-compatibility-version runtime-config-emulation-forward-compatible \
        audit-policy-file audit-log-path audit-log-format audit-log-mode audit-log-maxage audit-log-maxbackup \
        audit-log-maxsize audit-webhook-mode profiling contention-profiling debug-socket-path \
        enable-priority-and-fairness logging-format log-flush-frequency v vmodule config prometheus-url \
        prometheus-verb prometheus-header prometheus-ca-file prometheus-client-tls-cert-file \
        prometheus-client-tls-key-file prometheus-auth-incluster prometheus-auth-config prometheus-token-file \
        metrics-relist-interval metrics-max-age lister-kubeconfig client-qps client-burst discovery-interval \
        disable-http2";
    for name in THEIRS.split_whitespace() {
        assert!(FLAGS.iter().any(|flag| flag.name == name), "{name}");
    }
}

#[test]
fn last_value_wins_and_lists_are_joined() {
    let flags = parse(&[
        "--kubelet-port=1",
        "--kubelet-port=2",
        "--kubelet-preferred-address-types=A,B",
        "--kubelet-preferred-address-types",
        "C",
        "--prometheus-header=a=b,c",
        "--prometheus-header=d",
    ])
    .unwrap();
    assert_eq!(flags.number("kubelet-port").unwrap(), 2);
    assert_eq!(flags.list("kubelet-preferred-address-types").unwrap(), ["A", "B", "C"]);
    assert_eq!(flags.repeated("prometheus-header").unwrap(), ["a=b,c", "d"]);
    assert_eq!(parse(&[]).unwrap().list("authorization-always-allow-paths").unwrap().len(), 3);
    assert!(parse(&[]).unwrap().list("tls-cipher-suites").unwrap().is_empty());
}

#[test]
fn unknown_flag_is_reported_with_the_nearest_known_flag() {
    for (words, expected) in [
        (&["--kubelet-prot=1"][..], "--kubelet-port"),
        (&["--kubelet-port=x"], "--kubelet-port=x: write a whole number"),
        (&["--metric-resolution=15"], "--metric-resolution=15: write a duration such as 15s or 1m30s"),
        (&["--kubelet-insecure-tls=ja"], "--kubelet-insecure-tls=ja: write true or false"),
        (&["--prometheus-verb=PUT"], "[possible values: GET, POST]"),
    ] {
        let error = parse(words).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn idle_flags_with_their_default_are_not_reported() {
    let flags = parse(&["--profiling=true", "--cert-dir=/tmp", "--secure-port=10250"]).unwrap();
    assert_eq!(flags.idle(), ["cert-dir"]);
}
