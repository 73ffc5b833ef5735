//! The flags of `plimsoll operator`: those of KEDA's operator under their names, and our own (docs/spec/keda.md Appendix A).

use crate::flags::{Flag, Group, Kind, Table, acts, idle};

use Group::{Logging, Operator, Own, Serving};
use Kind::{Bool, Choice, Duration, File, Float, Number, Repeated, Text};

/// The table of `plimsoll operator`.
#[derive(Clone, Debug, Default)]
pub(crate) struct OperatorTable;

impl Table for OperatorTable {
    const FLAGS: &'static [Flag] = FLAGS;
}

/// The given flags.
pub(crate) type OperatorFlags = crate::flags::Flags<OperatorTable>;

const NO_LIMIT: &str = "concurrency adapts to what the API server can handle";
const NO_GO: &str = "there is no Go runtime to profile";
const POOLED: &str = "connections are shared by all scalers and closed when idle";

/// All flags, in the order of the help.
#[rustfmt::skip]
pub(crate) const FLAGS: &[Flag] = &[
    acts(Own, "act", Choice(&["hpa", "direct"]), "hpa", "how ScaledObjects act: hpa, through an HPA as KEDA does; direct, 0 to N by ourselves; annotation plimsoll.dev/act sets it for one object"),
    acts(Own, "compat", Choice(&["better", "strict"]), "better", "better: better than KEDA where it has defects; strict: exactly as KEDA"),
    acts(Own, "keda-profile", Choice(&["2.20", "2.21", "auto"]), "2.20", "release of KEDA that is reproduced where releases differ; auto: that of the resource definitions in the cluster, at the start"),
    acts(Own, "watch-namespaces", Text, "", "only objects of these namespaces, separated by commas; without it, those of WATCH_NAMESPACE, or all"),
    acts(Own, "kubeconfig", File, "", "kubeconfig; without it, $KUBECONFIG, ~/.kube/config, or the service account of the pod"),
    acts(Own, "context", Text, "", "context of the kubeconfig; without it, the current one"),
    acts(Own, "source-deadline", Duration, "10s", "timeout of one query to an event source"),
    acts(Own, "sample-age", Duration, "16s", "maximum age of the sample that an HPA is answered with; 0s: every query goes to the source"),
    acts(Own, "secrets-check", Duration, "1m0s", "how often secrets and config maps in use are checked for changes; 0s: never"),
    acts(Own, "webhook-client-ca", File, "", "CA (PEM) of the certificates that API servers present to the webhook; re-read; without it, reviews of everybody are answered"),
    acts(Own, "allow-source-cidr", Repeated, "", "addresses that triggers may name although they are refused by default (loopback, link-local, API server); several times or with commas"),
    acts(Own, "tenant-files-dir", File, "", "folder of the files that triggers may name; without it, none is read"),
    acts(Own, "operator-identity", Choice(&["any", "cluster-only"]), "any", "whose TriggerAuthentications may use credentials of the operator: any, as in KEDA; cluster-only, only ClusterTriggerAuthentications (docs/security.md)"),
    acts(Own, "history", Duration, "1h0m0s", "how long every pass is kept in memory, at most 100 MiB of all objects; 0s keeps none"),
    acts(Own, "record", File, "", "also write every pass to files in this folder, for a week and at most 1 GiB; `why --recording` reads them"),
    acts(Own, "otlp-traces-endpoint", Text, "", "send decisions as traces to the OpenTelemetry collector at this URL, such as http://collector:4318; without it, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"),
    acts(Own, "trace-unchanged", Float, "0", "ratio of the decisions that are sent although they equal the one before them, from 0 to 1"),
    acts(Own, "log-format", Choice(&["text", "json"]), "text", "format of logs"),
    acts(Own, "log-level", Text, "info", "what is logged: error, warn, info, debug, trace, or by part (info,cluster=debug)"),

    acts(Operator, "leader-elect", Bool, "false", "use leader election, so that one of several replicas acts; all serve metrics"),
    acts(Operator, "leader-election-id", Text, "operator.keda.sh", "name of the lease"),
    acts(Operator, "k8s-cluster-name", Text, "kubernetes-default", "name of the cluster in CloudEvents"),
    acts(Operator, "filepath-auth-root-path", File, "", "folder of the files that ClusterTriggerAuthentications may name"),
    acts(Operator, "service-account-token-mode", Text, "enforce-audience", "enforce-audience: tokens of service accounts only with audiences of KEDA_SERVICE_ACCOUNT_TOKEN_AUDIENCES; legacy: without"),
    acts(Operator, "vault-kubernetes-auth-token-file", Text, "/var/run/secrets/keda-vault/token", "token for logins at Vault that name no service account; sent only to origins of KEDA_OUTBOUND_FILTER"),
    acts(Operator, "ca-dir", Repeated, "", "folder with additional CAs (PEM) that scalers trust; may be given several times [/custom/ca]"),
    acts(Operator, "enable-webhook-patching", Bool, "true", "write our CA into the ValidatingWebhookConfiguration"),
    acts(Operator, "enable-apiservice-patching", Bool, "true", "write our CA into the APIService of external.metrics.k8s.io"),
    acts(Operator, "validating-webhook-name", Text, "keda-admission", "name of the ValidatingWebhookConfiguration"),
    acts(Operator, "operator-service-name", Text, "keda-operator", "a DNS name in our certificate"),
    acts(Operator, "metrics-server-service-name", Text, "keda-metrics-apiserver", "a DNS name in our certificate"),
    acts(Operator, "webhooks-service-name", Text, "keda-admission-webhooks", "a DNS name in our certificate"),
    acts(Operator, "k8s-cluster-domain", Text, "cluster.local", "the domain of those names"),
    acts(Operator, "enable-cert-rotation", Bool, "false", "issue the certificate, renew it, and share it with other replicas in a Secret"),
    acts(Operator, "cert-secret-name", Text, "kedaorg-certs", "name of that Secret, in our own namespace"),
    acts(Operator, "cert-dir", Text, "/certs", "without rotation: folder with ca.crt, tls.crt and tls.key; re-read; without it, each process issues its own"),
    acts(Operator, "metrics-service-bind-address", Text, ":9666", "address for KEDA's own metrics adapter, with a client certificate of the same CA; 0: none"),
    acts(Operator, "health-probe-bind-address", Text, ":8081", "/healthz and /readyz without TLS; 0: none"),
    acts(Operator, "metrics-bind-address", Text, ":8080", "/metrics without TLS and authentication, only if this flag is given; else on --secure-port only"),
    acts(Operator, "enable-prometheus-metrics", Bool, "true", "false: no /metrics without TLS"),
    acts(Operator, "enable-high-cardinality-metrics-labels", Bool, "false", "keda_scaler_http_request_duration_seconds with the labels namespace, scaled_resource, trigger_name and metric_name"),
    acts(Operator, "enable-opentelemetry-metrics", Bool, "false", "also send the exported metrics to the OpenTelemetry collector of OTEL_EXPORTER_OTLP_ENDPOINT"),
    idle(Operator, "profiling-bind-address", Text, "", NO_GO),
    idle(Operator, "kube-api-qps", Number, "20", NO_LIMIT),
    idle(Operator, "kube-api-burst", Number, "30", NO_LIMIT),
    idle(Operator, "disable-compression", Bool, "true", "responses come as the API server sends them"),
    idle(Operator, "http-max-idle-conns", Number, "0", POOLED),
    idle(Operator, "http-max-idle-conns-per-host", Number, "1000", POOLED),
    idle(Operator, "http-idle-conn-timeout", Duration, "1m30s", POOLED),

    acts(Serving, "bind-address", Text, "0.0.0.0", "address to bind"),
    acts(Serving, "secure-port", Number, "6443", "port for external metrics, admission, health and exported metrics"),
    acts(Serving, "tls-cert-file", File, "", "certificate; re-read; without it, a shared or self-signed one"),
    acts(Serving, "tls-private-key-file", File, "", "its key; re-read"),

    acts(Logging, "zap-log-level", Text, "", "as --log-level: debug, info, error, or a number (the higher, the more)"),
    acts(Logging, "zap-encoder", Choice(&["json", "console"]), "console", "as --log-format"),
    idle(Logging, "zap-devel", Bool, "false", "there is one way to log"),
    idle(Logging, "zap-stacktrace-level", Text, "", "there is one way to log"),
    idle(Logging, "zap-time-encoding", Text, "epoch", "times are written as RFC 3339"),
];
