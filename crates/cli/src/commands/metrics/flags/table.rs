//! Every flag: those of metrics-server and prometheus-adapter under their names and with their defaults, and our own.
//!
//! `docs/metrics.md` shows this table; a test compares them.

use crate::flags::{Flag, Group, Kind, acts, idle};

use Group::{
    Adapter, Audit, Authentication, Authorization, Features, Generic, Kubelet, Logging, Own, Serving,
};
use Kind::{Bool, Choice, Duration, File, Float, List, Number, Repeated, Text};

const fn short(letter: char, flag: Flag) -> Flag {
    Flag { short: Some(letter), ..flag }
}

const NO_AUDIT: &str = "no audit log is kept here; that of kube-apiserver has every request";
const NO_KLOG: &str = "logs go to standard error, line by line";
const NO_STORAGE: &str = "nothing is stored here";
const NO_WRITES: &str = "nothing can be written here";
const NO_GO: &str = "there is no Go runtime to look into";
const ONE_VERSION: &str = "one version of everything is built in";
const NO_GATES: &str = "there are no feature gates here";
const SAFE_TLS: &str = "TLS 1.2 and 1.3 with safe suites are spoken, nothing else";

/// All of them, in the order of the help. A table is read by line.
#[rustfmt::skip]
pub(crate) const FLAGS: &[Flag] = &[
    // What is ours.
    acts(Own, "compat", Choice(&["better", "strict"]), "better", "better: improved where both servers are poor; strict: as they are, faults included"),
    acts(Own, "resource-metrics", Choice(&["kubelets", "prometheus", "none"]), "", "where metrics.k8s.io comes from; without it, from kubelets unless --config says otherwise"),
    acts(Own, "keep", Duration, "1m0s", "how long a node that cannot be scraped is still served, with its true timestamp"),
    acts(Own, "scrape-concurrency", Number, "64", "how many kubelets are asked at once"),
    acts(Own, "kubelet-verify", Choice(&["address", "node"]), "", "node: a kubelet's certificate may name its node instead of the address that is dialled; address: as metrics-server; without it, node unless --compat=strict"),
    acts(Own, "upstreams", File, "", "other metrics API servers that are asked for what is not known here"),
    acts(Own, "shares", Text, "", "divide nodes between replicas: NAMESPACE/SERVICE of these replicas"),
    acts(Own, "shares-ca-file", File, "", "authority of the other replicas' certificates, which name SERVICE.NAMESPACE.svc"),
    acts(Own, "shares-insecure-tls", Bool, "false", "show the token to whoever answers at another replica's address: not for production"),
    acts(Own, "shares-token-file", File, "/var/run/secrets/kubernetes.io/serviceaccount/token", "token shown to the other replicas; re-read"),
    acts(Own, "prometheus-cache", Duration, "10s", "how long an answer of Prometheus is used again for the same query; 0s: only by those who ask at the same time"),
    acts(Own, "prometheus-timeout", Duration, "30s", "how long Prometheus may take for an answer"),
    acts(Own, "context", Text, "", "context of the kubeconfig; without it, the current one"),
    acts(Own, "log-level", Text, "", "what is logged: error, warn, info, debug, trace, or by part (info,sources=debug); overrules -v"),
    acts(Own, "version", Bool, "false", "print the version and end"),
    // Kubelets.
    acts(Kubelet, "kubeconfig", File, "", "kubeconfig; without it, $KUBECONFIG, ~/.kube/config, or the service account of the pod"),
    acts(Kubelet, "metric-resolution", Duration, "1m0s", "time between two scrapes of a node, at least 10s"),
    acts(Kubelet, "kubelet-request-timeout", Duration, "10s", "how long a kubelet may take"),
    acts(Kubelet, "kubelet-port", Number, "10250", "port of kubelets"),
    acts(Kubelet, "kubelet-use-node-status-port", Bool, "false", "use the port in the node's status, if it has one"),
    acts(Kubelet, "kubelet-preferred-address-types", List, "Hostname,InternalDNS,InternalIP,ExternalDNS,ExternalIP", "which address of a node is used, the best first"),
    acts(Kubelet, "kubelet-certificate-authority", File, "", "whom kubelets' certificates must come from; without it, whom kube-apiserver's comes from"),
    acts(Kubelet, "kubelet-client-certificate", File, "", "certificate shown to kubelets"),
    acts(Kubelet, "kubelet-client-key", File, "", "key of that certificate"),
    acts(Kubelet, "kubelet-insecure-tls", Bool, "false", "believe every kubelet; for tests"),
    acts(Kubelet, "deprecated-kubelet-completely-insecure", Bool, "false", "no TLS and no credentials; for tests"),
    short('l', acts(Kubelet, "node-selector", Text, "", "only nodes with such labels")),
    // Prometheus.
    acts(Adapter, "config", File, "", "rules of prometheus-adapter: rules, resourceRules, externalRules; re-read when it changes, or on SIGHUP"),
    acts(Adapter, "prometheus-url", Text, "https://localhost", "where Prometheus is; a path is kept"),
    acts(Adapter, "prometheus-verb", Choice(&["GET", "POST"]), "GET", "how it is asked; queries too long for GET go by POST"),
    acts(Adapter, "prometheus-header", Repeated, "", "KEY=VALUE, a header of every request; may be given several times"),
    acts(Adapter, "prometheus-ca-file", File, "", "whom Prometheus' certificate must come from; re-read"),
    acts(Adapter, "prometheus-client-tls-cert-file", File, "", "certificate shown to Prometheus; re-read"),
    acts(Adapter, "prometheus-client-tls-key-file", File, "", "key of that certificate; re-read"),
    acts(Adapter, "prometheus-auth-incluster", Bool, "false", "show the pod's service account to Prometheus"),
    acts(Adapter, "prometheus-auth-config", File, "", "kubeconfig whose credentials and authority are used for Prometheus"),
    acts(Adapter, "prometheus-token-file", File, "", "bearer token for Prometheus; re-read"),
    acts(Adapter, "metrics-relist-interval", Duration, "10m0s", "time between two looks at which series there are"),
    acts(Adapter, "metrics-max-age", Duration, "", "how far back is looked; without it, metrics-relist-interval"),
    acts(Adapter, "lister-kubeconfig", File, "", "kubeconfig for the cluster, as --kubeconfig"),
    acts(Adapter, "discovery-interval", Duration, "1m0s", "how often it is asked which kinds the cluster has; what has not changed is not sent again"),
    idle(Adapter, "client-qps", Float, "5", "as many requests are sent at once as kube-apiserver bears"),
    idle(Adapter, "client-burst", Number, "10", "as many requests are sent at once as kube-apiserver bears"),
    idle(Adapter, "disable-http2", Bool, "false", "HTTP/1.1 is served to whoever asks for it"),
    // Serving.
    acts(Serving, "bind-address", Text, "0.0.0.0", "address to serve on; 0.0.0.0 is every one"),
    acts(Serving, "secure-port", Number, "443", "port to serve on over TLS; 0 is any free one"),
    acts(Serving, "tls-cert-file", File, "", "certificate to serve with; re-read; without it one is made"),
    acts(Serving, "tls-private-key-file", File, "", "key of that certificate; re-read"),
    idle(Serving, "cert-dir", Text, "apiserver.local.config/certificates", "a certificate that is made stays in memory"),
    idle(Serving, "tls-sni-cert-key", Repeated, "", "one certificate is served; put all names in it"),
    idle(Serving, "tls-cipher-suites", List, "", SAFE_TLS),
    idle(Serving, "tls-curve-preferences", List, "", SAFE_TLS),
    idle(Serving, "tls-min-version", Text, "", SAFE_TLS),
    idle(Serving, "disable-http2-serving", Bool, "false", "HTTP/1.1 is served to whoever asks for it"),
    acts(Serving, "http2-max-streams-per-connection", Number, "0", "requests at a time on one connection; 0 is 100"),
    idle(Serving, "permit-address-sharing", Bool, "false", "an address is not shared"),
    idle(Serving, "permit-port-sharing", Bool, "false", "a port is not shared"),
    // Who asks.
    idle(Authentication, "authentication-kubeconfig", File, "", "--kubeconfig is used"),
    acts(Authentication, "authentication-skip-lookup", Bool, "false", "do not ask the cluster whom to trust (ConfigMap extension-apiserver-authentication)"),
    acts(Authentication, "authentication-token-webhook-cache-ttl", Duration, "10s", "how long it is remembered whose a token is"),
    idle(Authentication, "authentication-tolerate-lookup-failure", Bool, "false", "always tolerated: what cannot be looked up is looked up again"),
    acts(Authentication, "client-ca-file", File, "", "who signs users, instead of whom the cluster names"),
    acts(Authentication, "requestheader-client-ca-file", File, "", "who signs those that speak for others, instead of whom the cluster names"),
    acts(Authentication, "requestheader-allowed-names", List, "", "their names, with --requestheader-client-ca-file; none is any"),
    acts(Authentication, "requestheader-username-headers", List, "x-remote-user", "headers with the user, with --requestheader-client-ca-file"),
    acts(Authentication, "requestheader-uid-headers", List, "", "headers with the user's uid, with --requestheader-client-ca-file"),
    acts(Authentication, "requestheader-group-headers", List, "x-remote-group", "headers with the user's groups, with --requestheader-client-ca-file"),
    acts(Authentication, "requestheader-extra-headers-prefix", List, "x-remote-extra-", "beginning of headers with anything else, with --requestheader-client-ca-file"),
    // Whether they may.
    acts(Authorization, "authorization-always-allow-paths", List, "/healthz,/readyz,/livez", "paths for which nobody is asked who they are"),
    idle(Authorization, "authorization-kubeconfig", File, "", "--kubeconfig is used"),
    acts(Authorization, "authorization-webhook-cache-authorized-ttl", Duration, "10s", "how long it is remembered that somebody may do something; if it is not given, for 1m, unless --compat=strict"),
    acts(Authorization, "authorization-webhook-cache-unauthorized-ttl", Duration, "10s", "how long it is remembered that somebody may not"),
    // The generic server.
    acts(Generic, "max-requests-inflight", Number, "400", "requests at a time; 0 is any number"),
    idle(Generic, "max-mutating-requests-inflight", Number, "200", NO_WRITES),
    acts(Generic, "request-timeout", Duration, "1m0s", "how long an answer may take"),
    idle(Generic, "min-request-timeout", Number, "1800", "nothing can be watched here"),
    acts(Generic, "shutdown-delay-duration", Duration, "0s", "how long to go on serving after being told to stop"),
    idle(Generic, "shutdown-send-retry-after", Bool, "false", "whoever asks during the end is answered"),
    idle(Generic, "shutdown-watch-termination-grace-period", Duration, "0s", "nothing can be watched here"),
    idle(Generic, "livez-grace-period", Duration, "0s", "the program is alive from the start"),
    idle(Generic, "goaway-chance", Float, "0", "connections are kept"),
    idle(Generic, "cors-allowed-origins", List, "", "browsers do not ask here"),
    idle(Generic, "external-hostname", Text, "", "nobody is told a name"),
    idle(Generic, "advertise-address", Text, "", "nobody is told an address"),
    idle(Generic, "strict-transport-security-directives", List, "", "browsers do not ask here"),
    idle(Generic, "storage-initialization-timeout", Duration, "1m0s", NO_STORAGE),
    idle(Generic, "feature-gates", Text, "", NO_GATES),
    idle(Generic, "emulated-version", Repeated, "", ONE_VERSION),
    idle(Generic, "emulation-forward-compatible", Bool, "false", ONE_VERSION),
    idle(Generic, "min-compatibility-version", Repeated, "", ONE_VERSION),
    idle(Generic, "runtime-config-emulation-forward-compatible", Bool, "false", ONE_VERSION),
    // Audit.
    idle(Audit, "audit-policy-file", File, "", NO_AUDIT),
    idle(Audit, "audit-log-path", File, "", NO_AUDIT),
    idle(Audit, "audit-log-format", Text, "json", NO_AUDIT),
    idle(Audit, "audit-log-mode", Text, "blocking", NO_AUDIT),
    idle(Audit, "audit-log-version", Text, "audit.k8s.io/v1", NO_AUDIT),
    idle(Audit, "audit-log-maxage", Number, "366", NO_AUDIT),
    idle(Audit, "audit-log-maxbackup", Number, "100", NO_AUDIT),
    idle(Audit, "audit-log-maxsize", Number, "100", NO_AUDIT),
    idle(Audit, "audit-log-compress", Bool, "false", NO_AUDIT),
    idle(Audit, "audit-log-batch-buffer-size", Number, "10000", NO_AUDIT),
    idle(Audit, "audit-log-batch-max-size", Number, "1", NO_AUDIT),
    idle(Audit, "audit-log-batch-max-wait", Duration, "0s", NO_AUDIT),
    idle(Audit, "audit-log-batch-throttle-burst", Number, "0", NO_AUDIT),
    idle(Audit, "audit-log-batch-throttle-enable", Bool, "false", NO_AUDIT),
    idle(Audit, "audit-log-batch-throttle-qps", Float, "0", NO_AUDIT),
    idle(Audit, "audit-log-truncate-enabled", Bool, "false", NO_AUDIT),
    idle(Audit, "audit-log-truncate-max-batch-size", Number, "10485760", NO_AUDIT),
    idle(Audit, "audit-log-truncate-max-event-size", Number, "102400", NO_AUDIT),
    idle(Audit, "audit-webhook-config-file", File, "", NO_AUDIT),
    idle(Audit, "audit-webhook-mode", Text, "batch", NO_AUDIT),
    idle(Audit, "audit-webhook-version", Text, "audit.k8s.io/v1", NO_AUDIT),
    idle(Audit, "audit-webhook-initial-backoff", Duration, "10s", NO_AUDIT),
    idle(Audit, "audit-webhook-batch-buffer-size", Number, "10000", NO_AUDIT),
    idle(Audit, "audit-webhook-batch-max-size", Number, "400", NO_AUDIT),
    idle(Audit, "audit-webhook-batch-max-wait", Duration, "30s", NO_AUDIT),
    idle(Audit, "audit-webhook-batch-throttle-burst", Number, "15", NO_AUDIT),
    idle(Audit, "audit-webhook-batch-throttle-enable", Bool, "true", NO_AUDIT),
    idle(Audit, "audit-webhook-batch-throttle-qps", Float, "10", NO_AUDIT),
    idle(Audit, "audit-webhook-truncate-enabled", Bool, "false", NO_AUDIT),
    idle(Audit, "audit-webhook-truncate-max-batch-size", Number, "10485760", NO_AUDIT),
    idle(Audit, "audit-webhook-truncate-max-event-size", Number, "102400", NO_AUDIT),
    // Features.
    idle(Features, "profiling", Bool, "true", NO_GO),
    idle(Features, "contention-profiling", Bool, "false", NO_GO),
    idle(Features, "debug-socket-path", File, "", NO_GO),
    idle(Features, "enable-priority-and-fairness", Bool, "true", "requests are cheap, and limited by connection"),
    // Logging.
    short('v', acts(Logging, "v", Number, "0", "0 to 3: info; 4 and 5: debug; more: trace")),
    acts(Logging, "logging-format", Choice(&["text", "json"]), "text", "how logs look"),
    idle(Logging, "vmodule", Text, "", "use --log-level, by part"),
    idle(Logging, "log-flush-frequency", Duration, "5s", NO_KLOG),
    idle(Logging, "log-text-split-stream", Bool, "false", NO_KLOG),
    idle(Logging, "log-text-info-buffer-size", Text, "0", NO_KLOG),
    idle(Logging, "log-json-split-stream", Bool, "false", NO_KLOG),
    idle(Logging, "log-json-info-buffer-size", Text, "0", NO_KLOG),
    idle(Logging, "logtostderr", Bool, "true", NO_KLOG),
    idle(Logging, "alsologtostderr", Bool, "false", NO_KLOG),
    idle(Logging, "stderrthreshold", Text, "2", NO_KLOG),
    idle(Logging, "log-dir", File, "", NO_KLOG),
    idle(Logging, "log-file", File, "", NO_KLOG),
    idle(Logging, "log-file-max-size", Number, "1800", NO_KLOG),
    idle(Logging, "log-backtrace-at", Text, "", NO_KLOG),
    idle(Logging, "add-dir-header", Bool, "false", NO_KLOG),
    idle(Logging, "one-output", Bool, "false", NO_KLOG),
    idle(Logging, "skip-headers", Bool, "false", NO_KLOG),
    idle(Logging, "skip-log-headers", Bool, "false", NO_KLOG),
];
