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
const NO_GO: &str = "there is no Go runtime to profile";
const ONE_VERSION: &str = "one version of everything is built in";
const NO_GATES: &str = "there are no feature gates here";
const SAFE_TLS: &str = "TLS 1.2 and 1.3 with safe suites are spoken, nothing else";

/// All flags, in the order of the help.
#[rustfmt::skip]
pub(crate) const FLAGS: &[Flag] = &[
    // Own.
    acts(Own, "compat", Choice(&["better", "strict"]), "better", "better: better than both servers where they have defects; strict: exactly as they are"),
    acts(Own, "resource-metrics", Choice(&["kubelets", "prometheus", "none"]), "", "where metrics.k8s.io comes from; without it, from kubelets unless --config says otherwise"),
    acts(Own, "keep", Duration, "1m0s", "how long a node that cannot be scraped is still served, with its true timestamp"),
    acts(Own, "scrape-concurrency", Number, "64", "how many kubelets are scraped concurrently"),
    acts(Own, "kubelet-verify", Choice(&["address", "node"]), "", "node: a kubelet's certificate may name its node instead of the address that is dialled; address: as metrics-server; without it, node unless --compat=strict"),
    acts(Own, "upstreams", File, "", "other metrics API servers, queried for metrics that are not known here"),
    acts(Own, "operator", Text, "", "NAMESPACE/SERVICE of plimsoll operator: its external metrics are served here, too, so that both roles share one APIService"),
    acts(Own, "shares", Text, "", "divide nodes between replicas: NAMESPACE/SERVICE of these replicas"),
    acts(Own, "shares-ca-file", File, "", "CA of the other replicas' certificates, which name SERVICE.NAMESPACE.svc"),
    acts(Own, "shares-insecure-tls", Bool, "false", "do not verify the certificates of other replicas: not for production"),
    acts(Own, "shares-token-file", File, "/var/run/secrets/kubernetes.io/serviceaccount/token", "bearer token for the other replicas; re-read"),
    acts(Own, "prometheus-cache", Duration, "10s", "how long a response of Prometheus is cached for the same query; 0s: shared by concurrent queries only"),
    acts(Own, "prometheus-timeout", Duration, "30s", "timeout of a query to Prometheus"),
    acts(Own, "context", Text, "", "context of the kubeconfig; without it, the current one"),
    acts(Own, "log-level", Text, "", "what is logged: error, warn, info, debug, trace, or by part (info,sources=debug); takes precedence over -v"),
    acts(Own, "version", Bool, "false", "print the version and end"),
    // Kubelets.
    acts(Kubelet, "kubeconfig", File, "", "kubeconfig; without it, $KUBECONFIG, ~/.kube/config, or the service account of the pod"),
    acts(Kubelet, "metric-resolution", Duration, "1m0s", "time between two scrapes of a node, at least 10s"),
    acts(Kubelet, "kubelet-request-timeout", Duration, "10s", "timeout of a scrape"),
    acts(Kubelet, "kubelet-port", Number, "10250", "port of kubelets"),
    acts(Kubelet, "kubelet-use-node-status-port", Bool, "false", "use the port in the node's status, if it has one"),
    acts(Kubelet, "kubelet-preferred-address-types", List, "Hostname,InternalDNS,InternalIP,ExternalDNS,ExternalIP", "which address of a node is used, in order of preference"),
    acts(Kubelet, "kubelet-certificate-authority", File, "", "CA of kubelets' certificates; without it, that of kube-apiserver"),
    acts(Kubelet, "kubelet-client-certificate", File, "", "client certificate for kubelets"),
    acts(Kubelet, "kubelet-client-key", File, "", "key of that certificate"),
    acts(Kubelet, "kubelet-insecure-tls", Bool, "false", "do not verify kubelets' certificates; for tests"),
    acts(Kubelet, "deprecated-kubelet-completely-insecure", Bool, "false", "no TLS and no credentials; for tests"),
    short('l', acts(Kubelet, "node-selector", Text, "", "label selector of the nodes to scrape")),
    // Prometheus.
    acts(Adapter, "config", File, "", "rules of prometheus-adapter: rules, resourceRules, externalRules; re-read when it changes, or on SIGHUP"),
    acts(Adapter, "prometheus-url", Text, "https://localhost", "URL of Prometheus; a path is kept"),
    acts(Adapter, "prometheus-verb", Choice(&["GET", "POST"]), "GET", "HTTP method of queries; queries too long for GET use POST"),
    acts(Adapter, "prometheus-header", Repeated, "", "KEY=VALUE, a header of every request; may be given several times"),
    acts(Adapter, "prometheus-ca-file", File, "", "CA of Prometheus' certificate; re-read"),
    acts(Adapter, "prometheus-client-tls-cert-file", File, "", "client certificate for Prometheus; re-read"),
    acts(Adapter, "prometheus-client-tls-key-file", File, "", "key of that certificate; re-read"),
    acts(Adapter, "prometheus-auth-incluster", Bool, "false", "use the pod's service account for Prometheus"),
    acts(Adapter, "prometheus-auth-config", File, "", "kubeconfig whose credentials and CA are used for Prometheus"),
    acts(Adapter, "prometheus-token-file", File, "", "bearer token for Prometheus; re-read"),
    acts(Adapter, "metrics-relist-interval", Duration, "10m0s", "time between two series discoveries"),
    acts(Adapter, "metrics-max-age", Duration, "", "how far back series discovery looks; without it, metrics-relist-interval"),
    acts(Adapter, "lister-kubeconfig", File, "", "kubeconfig for the cluster, as --kubeconfig"),
    acts(Adapter, "discovery-interval", Duration, "1m0s", "time between two discoveries of the cluster's kinds; unchanged documents are not sent again"),
    idle(Adapter, "client-qps", Float, "5", "concurrency adapts to what kube-apiserver can handle"),
    idle(Adapter, "client-burst", Number, "10", "concurrency adapts to what kube-apiserver can handle"),
    idle(Adapter, "disable-http2", Bool, "false", "clients may use HTTP/1.1"),
    // Serving.
    acts(Serving, "bind-address", Text, "0.0.0.0", "address to bind; 0.0.0.0 is every address"),
    acts(Serving, "secure-port", Number, "443", "TLS port; 0 is any free port"),
    acts(Serving, "health-probe-bind-address", Text, "", "/healthz, /livez and /readyz without TLS at this address, such as :8081; without it or with 0, on --secure-port only"),
    acts(Serving, "tls-cert-file", File, "", "serving certificate; re-read; without it a self-signed one is issued"),
    acts(Serving, "tls-private-key-file", File, "", "key of that certificate; re-read"),
    acts(Serving, "enable-cert-rotation", Bool, "false", "issue the certificate, renew it, share it with other replicas in a Secret, and write its CA into our APIServices"),
    acts(Serving, "cert-secret-name", Text, "plimsoll-metrics-certs", "name of that Secret, in our own namespace"),
    idle(Serving, "cert-dir", Text, "apiserver.local.config/certificates", "a self-signed certificate stays in memory"),
    idle(Serving, "tls-sni-cert-key", Repeated, "", "one certificate is served; put all names in it"),
    idle(Serving, "tls-cipher-suites", List, "", SAFE_TLS),
    idle(Serving, "tls-curve-preferences", List, "", SAFE_TLS),
    idle(Serving, "tls-min-version", Text, "", SAFE_TLS),
    idle(Serving, "disable-http2-serving", Bool, "false", "clients may use HTTP/1.1"),
    acts(Serving, "http2-max-streams-per-connection", Number, "0", "concurrent requests on one connection; 0 is 100"),
    idle(Serving, "permit-address-sharing", Bool, "false", "an address is not shared"),
    idle(Serving, "permit-port-sharing", Bool, "false", "a port is not shared"),
    // Authentication.
    idle(Authentication, "authentication-kubeconfig", File, "", "--kubeconfig is used"),
    acts(Authentication, "authentication-skip-lookup", Bool, "false", "do not read the cluster's client CAs (ConfigMap extension-apiserver-authentication)"),
    acts(Authentication, "authentication-token-webhook-cache-ttl", Duration, "10s", "how long results of TokenReviews are cached"),
    idle(Authentication, "authentication-tolerate-lookup-failure", Bool, "false", "always tolerated: a failed lookup is retried"),
    acts(Authentication, "client-ca-file", File, "", "CA of client certificates, instead of the cluster's"),
    acts(Authentication, "requestheader-client-ca-file", File, "", "CA of front proxies, instead of the cluster's"),
    acts(Authentication, "requestheader-allowed-names", List, "", "common names of front proxies, with --requestheader-client-ca-file; empty: any"),
    acts(Authentication, "requestheader-username-headers", List, "x-remote-user", "headers with the user, with --requestheader-client-ca-file"),
    acts(Authentication, "requestheader-uid-headers", List, "", "headers with the user's uid, with --requestheader-client-ca-file"),
    acts(Authentication, "requestheader-group-headers", List, "x-remote-group", "headers with the user's groups, with --requestheader-client-ca-file"),
    acts(Authentication, "requestheader-extra-headers-prefix", List, "x-remote-extra-", "prefix of headers with extra fields, with --requestheader-client-ca-file"),
    // Authorization.
    acts(Authorization, "authorization-always-allow-paths", List, "/healthz,/readyz,/livez", "paths without authentication and authorization"),
    idle(Authorization, "authorization-kubeconfig", File, "", "--kubeconfig is used"),
    acts(Authorization, "authorization-webhook-cache-authorized-ttl", Duration, "10s", "how long permissions are cached; a used one is refreshed before that"),
    acts(Authorization, "authorization-webhook-cache-unauthorized-ttl", Duration, "10s", "how long refusals are cached"),
    // The generic server.
    acts(Generic, "max-requests-inflight", Number, "400", "concurrent requests; 0 is no limit"),
    idle(Generic, "max-mutating-requests-inflight", Number, "200", NO_WRITES),
    acts(Generic, "request-timeout", Duration, "1m0s", "timeout of a request"),
    idle(Generic, "min-request-timeout", Number, "1800", "these APIs have no watch"),
    acts(Generic, "shutdown-delay-duration", Duration, "0s", "how long to go on serving after SIGTERM"),
    idle(Generic, "shutdown-send-retry-after", Bool, "false", "requests during shutdown are served"),
    idle(Generic, "shutdown-watch-termination-grace-period", Duration, "0s", "these APIs have no watch"),
    idle(Generic, "livez-grace-period", Duration, "0s", "the process is live from the start"),
    idle(Generic, "goaway-chance", Float, "0", "connections are kept"),
    idle(Generic, "cors-allowed-origins", List, "", "browsers are no clients of these APIs"),
    idle(Generic, "external-hostname", Text, "", "the host name is not announced"),
    idle(Generic, "advertise-address", Text, "", "the address is not announced"),
    idle(Generic, "strict-transport-security-directives", List, "", "browsers are no clients of these APIs"),
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
    idle(Features, "enable-priority-and-fairness", Bool, "true", "requests are cheap, and limited per connection"),
    // Logging.
    short('v', acts(Logging, "v", Number, "0", "0 to 3: info; 4 and 5: debug; more: trace")),
    acts(Logging, "logging-format", Choice(&["text", "json"]), "text", "format of logs"),
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
