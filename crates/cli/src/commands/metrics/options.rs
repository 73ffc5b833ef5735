//! Validates the flags of `plimsoll metrics`.

#[cfg(test)]
mod tests;

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use api::provider::Compat;
use api::selector::Selector;
use api::time::go_duration;
use cluster::Clock;
use cluster::connect::ConnectTarget;
use jiff::SignedDuration;
use serve::{ClientTrust, FrontProxyOptions, ReviewTtls};
use sources::federation::ServiceReference;

use super::flags::{FLAGS, MetricsFlags};
use super::operator_upstream;
use crate::certificates::Shared;
use crate::failure::Failure;
use crate::flags::Group;
use crate::instance::own_namespace;
use crate::logs::{LogArgs, LogFormat, level_of_klog};
use crate::serving::{self, ListenAddress};

/// The validated options of `plimsoll metrics`.
#[derive(Clone, Debug)]
pub(crate) struct MetricsOptions {
    pub(crate) compat: Compat,
    pub(crate) target: ConnectTarget,
    /// The value of `--resource-metrics`.
    pub(crate) resource: Option<Origin>,
    /// Whether a flag of metrics-server was given that applies to kubelets only.
    pub(crate) speaks_of_kubelets: bool,
    pub(crate) kubelets: Kubelets,
    /// Rules; without them Prometheus is not queried.
    pub(crate) config: Option<PathBuf>,
    pub(crate) prometheus: Prometheus,
    pub(crate) upstreams: Option<PathBuf>,
    /// Our operator, as an upstream of external metrics.
    pub(crate) operator: Option<ServiceReference>,
    pub(crate) sharding: Option<ShardingOptions>,
    pub(crate) serving: MetricsServing,
    pub(crate) logs: LogArgs,
    /// Flags that were given and are ignored.
    pub(crate) idle: Vec<&'static str>,
}

/// Where `metrics.k8s.io` comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    Kubelets,
    Prometheus,
    /// It is not served.
    Nowhere,
}

/// Options of sharding nodes between replicas.
#[derive(Clone, Debug)]
pub(crate) struct ShardingOptions {
    pub(crate) namespace: String,
    pub(crate) service: String,
    pub(crate) authority: Option<PathBuf>,
    pub(crate) token: Option<PathBuf>,
}

/// Options of the kubelet scraper.
#[derive(Clone, Debug)]
pub(crate) struct Kubelets {
    pub(crate) resolution: Duration,
    pub(crate) keep: Duration,
    pub(crate) timeout: Duration,
    pub(crate) at_once: usize,
    pub(crate) port: u16,
    pub(crate) status_port: bool,
    pub(crate) address_types: Vec<String>,
    pub(crate) authority: Option<PathBuf>,
    pub(crate) certificate: Option<PathBuf>,
    pub(crate) key: Option<PathBuf>,
    pub(crate) insecure: bool,
    pub(crate) plain: bool,
    /// Whether a certificate may name the node instead of the address, if it was given.
    pub(crate) by_node: Option<bool>,
    pub(crate) nodes: Selector,
}

/// Options of the Prometheus client.
#[derive(Clone, Debug)]
pub(crate) struct Prometheus {
    pub(crate) url: String,
    pub(crate) post: bool,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) authority: Option<PathBuf>,
    pub(crate) certificate: Option<PathBuf>,
    pub(crate) key: Option<PathBuf>,
    pub(crate) in_cluster: bool,
    pub(crate) kubeconfig: Option<PathBuf>,
    pub(crate) token: Option<PathBuf>,
    pub(crate) relist: Duration,
    pub(crate) max_age: Duration,
    pub(crate) cache: Duration,
    pub(crate) timeout: Duration,
    pub(crate) discovery: Duration,
}

/// Options of the server.
#[derive(Clone, Debug)]
pub(crate) struct MetricsServing {
    pub(crate) address: IpAddr,
    pub(crate) port: u16,
    /// The address of probes without TLS.
    pub(crate) probes: Option<ListenAddress>,
    pub(crate) certificate: Option<(PathBuf, PathBuf)>,
    /// Where the certificate is stored that replicas share.
    pub(crate) shared: Shared,
    pub(crate) open_paths: Vec<String>,
    pub(crate) stop_after: Duration,
    /// Concurrent requests.
    pub(crate) requests: usize,
    /// Concurrent requests on one connection.
    pub(crate) streams: u32,
    /// Timeout of a request.
    pub(crate) timeout: Duration,
    /// Trusted client CAs.
    pub(crate) trusted: ClientTrust,
    /// How long results of reviews are cached.
    pub(crate) reviews: ReviewTtls,
    /// The clock of samples and reports.
    pub(crate) clock: Clock,
}

impl MetricsOptions {
    /// Reads flags; only the first error is reported.
    pub(crate) fn of(flags: &MetricsFlags) -> Result<Self, Failure> {
        let kubelets = Kubelets::of(flags)?;
        let config = flags.file("config")?;
        let resource = match flags.text("resource-metrics")? {
            "kubelets" => Some(Origin::Kubelets),
            "prometheus" => Some(Origin::Prometheus),
            "none" => Some(Origin::Nowhere),
            _ => None,
        };
        if resource == Some(Origin::Prometheus) && config.is_none() {
            return Err(Failure::input("--resource-metrics=prometheus needs --config with resourceRules"));
        }
        let kubelet_only = |name: &str| {
            FLAGS.iter().any(|flag| flag.name == name && flag.group == Group::Kubelet && name != "kubeconfig")
        };
        let speaks_of_kubelets = FLAGS.iter().any(|flag| kubelet_only(flag.name) && flags.given(flag.name));
        let kubeconfig = flags.file("kubeconfig")?.or(flags.file("lister-kubeconfig")?);
        let context = Some(flags.text("context")?).filter(|name| !name.is_empty()).map(str::to_owned);
        Ok(Self {
            compat: if flags.text("compat")? == "strict" { Compat::Strict } else { Compat::Better },
            target: ConnectTarget { kubeconfig, context },
            resource,
            speaks_of_kubelets,
            kubelets,
            config,
            prometheus: Prometheus::of(flags)?,
            upstreams: flags.file("upstreams")?,
            operator: operator_upstream::parse(flags.text("operator")?)?,
            sharding: sharding(flags)?,
            serving: MetricsServing::of(flags)?,
            logs: logs(flags)?,
            idle: flags.idle(),
        })
    }

    /// Options for `plimsoll up`: frequent scrapes, any free port.
    #[cfg(feature = "desk")]
    pub(crate) fn for_embedded_cluster(resolution: Duration) -> Result<Self, Failure> {
        let mut options = Self::of(&MetricsFlags::default())?;
        options.kubelets.resolution = resolution;
        options.kubelets.timeout = resolution;
        options.kubelets.address_types = vec!["InternalIP".to_owned()];
        options.kubelets.status_port = true;
        options.serving.address = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);
        options.serving.port = 0;
        Ok(options)
    }

    /// Where `metrics.k8s.io` comes from, given whether the rules have a section for it.
    pub(crate) fn origin(&self, has_resource_rules: bool) -> Result<Origin, Failure> {
        match self.resource {
            Some(Origin::Prometheus) if !has_resource_rules => Err(Failure::input(
                "--resource-metrics=prometheus needs resourceRules in the file of --config",
            )),
            Some(origin) => Ok(origin),
            None if has_resource_rules => Ok(Origin::Prometheus),
            // When only prometheus-adapter is replaced, metrics.k8s.io stays with its current server.
            None if self.config.is_some() && !self.speaks_of_kubelets => Ok(Origin::Nowhere),
            None => Ok(Origin::Kubelets),
        }
    }
}

impl Kubelets {
    fn of(flags: &MetricsFlags) -> Result<Self, Failure> {
        let authority = flags.file("kubelet-certificate-authority")?;
        let (certificate, key) =
            (flags.file("kubelet-client-certificate")?, flags.file("kubelet-client-key")?);
        let insecure = flags.bool("kubelet-insecure-tls")?;
        let plain = flags.bool("deprecated-kubelet-completely-insecure")?;
        let timeout = flags.duration("kubelet-request-timeout")?;
        let resolution = flags.duration("metric-resolution")?;
        let wrong = |why: &str| Err(Failure::input(why));
        if authority.is_some() && insecure {
            return wrong("cannot use both --kubelet-certificate-authority and --kubelet-insecure-tls");
        }
        if certificate.is_some() != key.is_some() {
            return wrong("need both --kubelet-client-key and --kubelet-client-certificate");
        }
        for (given, name) in [
            (key.is_some(), "--kubelet-client-key"),
            (authority.is_some(), "--kubelet-certificate-authority"),
            (insecure, "--kubelet-insecure-tls"),
        ] {
            if plain && given {
                let why = format!("cannot use both {name} and --deprecated-kubelet-completely-insecure");
                return Err(Failure::input(why));
            }
        }
        if timeout <= SignedDuration::ZERO {
            return wrong("kubelet-request-timeout should be positive");
        }
        if resolution < SignedDuration::from_secs(10) {
            return Err(Failure::input(format!(
                "metric-resolution should be a time duration at least 10s, but value {} provided",
                go_duration(resolution)
            )));
        }
        if resolution.as_nanos() * 9 / 10 < timeout.as_nanos() {
            return Err(Failure::input(format!(
                "metric-resolution should be larger than kubelet-request-timeout, but metric-resolution value {} \
                 kubelet-request-timeout value {} provided",
                go_duration(resolution),
                go_duration(timeout)
            )));
        }
        let at_once = flags.number("scrape-concurrency")?;
        let at_once = usize::try_from(at_once).ok().filter(|at_once| *at_once > 0);
        let nodes = flags.text("node-selector")?;
        Ok(Self {
            resolution: positive(resolution),
            keep: period(flags, "keep")?,
            timeout: positive(timeout),
            at_once: at_once.ok_or_else(|| Failure::input("--scrape-concurrency must be at least 1"))?,
            port: port(flags, "kubelet-port")?,
            status_port: flags.bool("kubelet-use-node-status-port")?,
            address_types: flags.list("kubelet-preferred-address-types")?,
            authority,
            certificate,
            key,
            insecure,
            plain,
            by_node: Some(flags.text("kubelet-verify")?)
                .filter(|word| !word.is_empty())
                .map(|word| word == "node"),
            nodes: Selector::parse(nodes)
                .map_err(|error| Failure::input(format!("--node-selector {nodes}: {error}")))?,
        })
    }
}

impl Prometheus {
    fn of(flags: &MetricsFlags) -> Result<Self, Failure> {
        let (in_cluster, kubeconfig) =
            (flags.bool("prometheus-auth-incluster")?, flags.file("prometheus-auth-config")?);
        if in_cluster && kubeconfig.is_some() {
            return Err(Failure::input(
                "cannot use both --prometheus-auth-incluster and --prometheus-auth-config",
            ));
        }
        let relist = period(flags, "metrics-relist-interval")?;
        if relist.is_zero() {
            return Err(Failure::input("--metrics-relist-interval must be greater than 0"));
        }
        let max_age = if flags.given("metrics-max-age") { period(flags, "metrics-max-age")? } else { relist };
        if max_age < relist {
            return Err(Failure::input("max age must not be less than relist interval"));
        }
        let header = |text: String| {
            let (name, value) = text.split_once('=').unwrap_or((&text, ""));
            (name.to_owned(), value.to_owned())
        };
        let (certificate, key) =
            (flags.file("prometheus-client-tls-cert-file")?, flags.file("prometheus-client-tls-key-file")?);
        if certificate.is_some() != key.is_some() {
            return Err(Failure::input(
                "need both --prometheus-client-tls-cert-file and --prometheus-client-tls-key-file",
            ));
        }
        let discovery = period(flags, "discovery-interval")?;
        Ok(Self {
            url: flags.text("prometheus-url")?.to_owned(),
            post: flags.text("prometheus-verb")? == "POST",
            headers: flags.repeated("prometheus-header")?.into_iter().map(header).collect(),
            authority: flags.file("prometheus-ca-file")?,
            certificate,
            key,
            in_cluster,
            kubeconfig,
            token: flags.file("prometheus-token-file")?,
            relist,
            max_age,
            cache: period(flags, "prometheus-cache")?,
            timeout: period(flags, "prometheus-timeout")?.max(Duration::from_secs(1)),
            // 0 is the adapter's default and means never.
            discovery: if discovery.is_zero() { Duration::from_mins(1) } else { discovery },
        })
    }
}

impl MetricsServing {
    fn of(flags: &MetricsFlags) -> Result<Self, Failure> {
        Ok(Self {
            address: serving::address(flags.text("bind-address")?)?,
            port: port(flags, "secure-port")?,
            probes: probes(flags)?,
            shared: rotation(flags)?,
            certificate: serving::pair(flags.file("tls-cert-file")?, flags.file("tls-private-key-file")?)?,
            open_paths: flags.list("authorization-always-allow-paths")?,
            stop_after: period(flags, "shutdown-delay-duration")?,
            requests: none_if_zero(flags.number("max-requests-inflight")?).unwrap_or(usize::MAX >> 4),
            streams: none_if_zero(flags.number("http2-max-streams-per-connection")?).unwrap_or(100),
            timeout: period(flags, "request-timeout")?.max(Duration::from_secs(1)),
            trusted: trusted(flags)?,
            reviews: reviews(flags)?,
            clock: Clock::system(),
        })
    }
}

/// Certificate files take precedence over a Secret.
fn rotation(flags: &MetricsFlags) -> Result<Shared, Failure> {
    if !flags.bool("enable-cert-rotation")? || flags.given("tls-cert-file") {
        return Ok(Shared::Nothing);
    }
    Ok(Shared::Secret { namespace: own_namespace(), name: flags.text("cert-secret-name")?.to_owned() })
}

fn probes(flags: &MetricsFlags) -> Result<Option<ListenAddress>, Failure> {
    let address = serving::place(serving::HEALTH_PROBE_FLAG, flags.text(serving::HEALTH_PROBE_FLAG)?)?;
    Ok(address.map(|address| ListenAddress { address, wanted: true }))
}

fn trusted(flags: &MetricsFlags) -> Result<ClientTrust, Failure> {
    let proxies = match flags.file("requestheader-client-ca-file")? {
        Some(authority) => Some(FrontProxyOptions {
            names: flags.list("requestheader-allowed-names")?,
            user: flags.list("requestheader-username-headers")?,
            uid: flags.list("requestheader-uid-headers")?,
            group: flags.list("requestheader-group-headers")?,
            extra: flags.list("requestheader-extra-headers-prefix")?,
            authority,
        }),
        None => None,
    };
    let lookup = !flags.bool("authentication-skip-lookup")?;
    Ok(ClientTrust { lookup, clients: flags.file("client-ca-file")?, proxies })
}

fn reviews(flags: &MetricsFlags) -> Result<ReviewTtls, Failure> {
    Ok(ReviewTtls {
        allowed: period(flags, "authorization-webhook-cache-authorized-ttl")?,
        denied: period(flags, "authorization-webhook-cache-unauthorized-ttl")?,
        tokens: period(flags, "authentication-token-webhook-cache-ttl")?,
    })
}

/// `NAMESPACE/SERVICE`.
fn sharding(flags: &MetricsFlags) -> Result<Option<ShardingOptions>, Failure> {
    let text = flags.text("shares")?;
    if text.is_empty() {
        return Ok(None);
    }
    let both =
        text.split_once('/').filter(|(namespace, service)| !namespace.is_empty() && !service.is_empty());
    let (namespace, service) = both.ok_or_else(|| {
        Failure::input(format!(
            "--shares={text}: write NAMESPACE/SERVICE, such as plimsoll-system/plimsoll-metrics"
        ))
    })?;
    let authority = flags.file("shares-ca-file")?;
    if authority.is_none() && !flags.bool("shares-insecure-tls")? {
        return Err(Failure::input(format!(
            "--shares={text} needs --shares-ca-file: replicas show each other their tokens, and must know whom they show them to\n  \
             remedy: give all replicas a certificate for {service}.{namespace}.svc (--tls-cert-file, --tls-private-key-file) and its \
             CA by --shares-ca-file"
        )));
    }
    Ok(Some(ShardingOptions {
        namespace: namespace.to_owned(),
        service: service.to_owned(),
        authority,
        token: flags.file("shares-token-file")?,
    }))
}

fn logs(flags: &MetricsFlags) -> Result<LogArgs, Failure> {
    let log_level = match flags.text("log-level")? {
        "" => level_of_klog(flags.number("v")?),
        level => level,
    };
    let log_format = if flags.text("logging-format")? == "json" { LogFormat::Json } else { LogFormat::Text };
    Ok(LogArgs { log_format, log_level: log_level.to_owned() })
}

fn port(flags: &MetricsFlags, name: &str) -> Result<u16, Failure> {
    let number = flags.number(name)?;
    u16::try_from(number).map_err(|_| Failure::input(format!("--{name}={number}: write a port, 0 to 65535")))
}

fn period(flags: &MetricsFlags, name: &str) -> Result<Duration, Failure> {
    let given = flags.duration(name)?;
    Duration::try_from(given).map_err(|_| Failure::input(format!("--{name} must not be negative")))
}

/// A limit; 0 is none.
fn none_if_zero<T: TryFrom<i64>>(limit: i64) -> Option<T> {
    Some(limit).filter(|limit| *limit > 0).and_then(|limit| T::try_from(limit).ok())
}

fn positive(duration: SignedDuration) -> Duration {
    duration.unsigned_abs()
}
