//! Causes of failed scrapes, each with a text and a remedy.

use std::time::Duration;

/// Stage that a request reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RequestStage {
    /// Name resolution and TCP connect.
    Connecting,
    /// The TLS handshake.
    Handshake,
    /// Waiting for the response head.
    Waiting,
    /// Reading the response body.
    Reading,
}

/// Why a scrape failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScrapeErrorCause {
    /// The node has no address of the preferred types.
    NoAddress {
        /// The preferred types.
        types: Vec<String>,
    },
    /// The host name does not resolve.
    UnknownName {
        /// The name.
        name: Box<str>,
    },
    /// No route to the host.
    Unreachable,
    /// Connection refused.
    Refused,
    /// The request timed out.
    TimedOut {
        /// Stage that the request reached.
        stage: RequestStage,
        /// The timeout.
        after: Duration,
    },
    /// The server certificate is not signed by a trusted CA.
    UnknownAuthority,
    /// The server certificate has expired.
    CertificateExpired,
    /// The server certificate is not valid yet.
    CertificateNotYetValid,
    /// The server certificate does not carry the address.
    CertificateWithoutAddress {
        /// The address.
        address: Box<str>,
        /// Some of the names in the certificate.
        has: Vec<Box<str>>,
    },
    /// 401: the kubelet did not authenticate the request.
    NotAuthenticated,
    /// 403: the kubelet did not authorize the request.
    NotAuthorized,
    /// Another status code than 200.
    Status(u16),
    /// The response exceeds the size limit.
    TooLarge {
        /// The limit in bytes.
        limit: usize,
    },
    /// The response is not valid exposition text.
    NotMetrics(Box<str>),
    /// The kubelet reports `resource_scrape_error 1`.
    KubeletCannotMeasure,
    /// Another failure.
    Other(Box<str>),
}

const REACH_REMEDY: &str =
    "let pods reach the kubelets' port on the nodes (firewall, security group, network policy)";
const BOOTSTRAP_REMEDY: &str =
    "serverTLSBootstrap: true in the kubelet configuration, and approve its certificate requests";

impl ScrapeErrorCause {
    /// Label value; nodes with the same label form a group.
    pub fn label(&self) -> &'static str {
        match self {
            Self::NoAddress { .. } => "no_address",
            Self::UnknownName { .. } => "unknown_name",
            Self::Unreachable => "unreachable",
            Self::Refused => "refused",
            Self::TimedOut { .. } => "timed_out",
            Self::UnknownAuthority => "unknown_authority",
            Self::CertificateExpired => "certificate_expired",
            Self::CertificateNotYetValid => "certificate_not_yet_valid",
            Self::CertificateWithoutAddress { .. } => "certificate_without_address",
            Self::NotAuthenticated => "not_authenticated",
            Self::NotAuthorized => "not_authorized",
            Self::Status(_) => "status",
            Self::TooLarge { .. } => "too_large",
            Self::NotMetrics(_) => "not_metrics",
            Self::KubeletCannotMeasure => "kubelet_cannot_measure",
            Self::Other(_) => "other",
        }
    }

    /// Text for one node.
    pub fn message(&self) -> String {
        match self {
            Self::NoAddress { types } => format!("node has no address of the types {}", types.join(", ")),
            Self::UnknownName { name } => format!("name {name} does not resolve"),
            Self::TimedOut { stage, after } => {
                let what = match stage {
                    RequestStage::Connecting => "connecting timed out",
                    RequestStage::Handshake => "TLS handshake timed out",
                    RequestStage::Waiting => "timed out",
                    RequestStage::Reading => "response was not complete",
                };
                format!("{what} after {}", seconds(*after))
            }
            Self::CertificateWithoutAddress { address, has } if has.is_empty() => {
                format!("certificate has no address {address}, and no name at all")
            }
            Self::CertificateWithoutAddress { address, has } => {
                format!("certificate has no address {address}, only {}", has.join(", "))
            }
            Self::Status(code) => format!("kubelet responds with {}", status_line(*code)),
            Self::TooLarge { limit } => format!("response is longer than {} MiB", limit >> 20),
            Self::NotMetrics(why) => format!("response is not metrics text: {why}"),
            Self::Other(why) => why.to_string(),
            _ => self.group_message().to_owned(),
        }
    }

    /// Text for all nodes of a group.
    pub fn group_message(&self) -> &'static str {
        match self {
            Self::NoAddress { .. } => "node has no address of the types that are looked for",
            Self::UnknownName { .. } => "name of the node does not resolve",
            Self::Unreachable => "kubelet unreachable",
            Self::Refused => "connection refused",
            Self::TimedOut { .. } => "timed out",
            Self::UnknownAuthority => "certificate signed by unknown authority",
            Self::CertificateExpired => "certificate has expired",
            Self::CertificateNotYetValid => "certificate is not valid yet",
            Self::CertificateWithoutAddress { .. } => "certificate has no such address",
            Self::NotAuthenticated => "kubelet did not authenticate the request (401 Unauthorized)",
            Self::NotAuthorized => "kubelet did not authorize the request (403 Forbidden)",
            Self::Status(_) => "kubelet responds with an error",
            Self::TooLarge { .. } => "response is too long",
            Self::NotMetrics(_) => "response is not metrics text",
            Self::KubeletCannotMeasure => "kubelet could not measure (resource_scrape_error 1)",
            Self::Other(_) => "request failed",
        }
    }

    /// What the user can do about it.
    pub fn remedy(&self) -> String {
        match self {
            Self::NoAddress { .. } => {
                "name a type of address that the nodes have: --kubelet-preferred-address-types".to_owned()
            }
            Self::UnknownName { .. } => {
                "--kubelet-preferred-address-types=InternalIP,ExternalIP,Hostname, or names that resolve in the cluster"
                    .to_owned()
            }
            Self::Unreachable | Self::TimedOut { stage: RequestStage::Connecting, .. } => REACH_REMEDY.to_owned(),
            Self::Refused => "is the kubelet running, and is this its port? \
                              --kubelet-use-node-status-port or --kubelet-port"
                .to_owned(),
            Self::TimedOut { .. } => {
                "see the load of the node and its container runtime; --kubelet-request-timeout gives more time".to_owned()
            }
            Self::UnknownAuthority => {
                format!("--kubelet-certificate-authority=FILE with the kubelets' authority, or {BOOTSTRAP_REMEDY}")
            }
            Self::CertificateExpired => {
                format!("{BOOTSTRAP_REMEDY} (kubectl get csr); rotateCertificates: true renews it from then on")
            }
            Self::CertificateNotYetValid => "set the clocks of the node and of this pod's node".to_owned(),
            Self::CertificateWithoutAddress { .. } => {
                format!("{BOOTSTRAP_REMEDY}; or --kubelet-preferred-address-types=Hostname if node names resolve")
            }
            Self::NotAuthenticated => "authentication.webhook.enabled: true in the kubelet configuration; \
                                       is the service account's token mounted?"
                .to_owned(),
            Self::NotAuthorized => "a ClusterRole with get on nodes/metrics, bound to this service account; \
                                    authorization.mode: Webhook in the kubelet configuration"
                .to_owned(),
            Self::Status(404) => "is the node's annotation metrics.k8s.io/resource-metrics-path right, \
                                  and does the kubelet serve this path?"
                .to_owned(),
            Self::Status(_) => "see the kubelet's log".to_owned(),
            Self::TooLarge { .. } | Self::NotMetrics(_) => {
                "is the server a kubelet? ask it with \
                 kubectl get --raw /api/v1/nodes/NODE/proxy/metrics/resource"
                    .to_owned()
            }
            Self::KubeletCannotMeasure => {
                "see the kubelet's log: its container runtime does not report container usage".to_owned()
            }
            Self::Other(_) => "see the log of the kubelet and the network between".to_owned(),
        }
    }
}

/// `401 Unauthorized`.
pub(crate) fn status_line(code: u16) -> String {
    let words = http::StatusCode::from_u16(code).ok().and_then(|status| status.canonical_reason());
    words.map_or_else(|| code.to_string(), |words| format!("{code} {words}"))
}

fn seconds(time: Duration) -> String {
    let millis = time.as_millis();
    if millis.is_multiple_of(1000) { format!("{} s", millis / 1000) } else { format!("{millis} ms") }
}
