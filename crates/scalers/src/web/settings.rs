//! HTTP settings of the process: timeout, TLS, CA certificates.

use std::time::Duration;

use runtime::Clock;
use sources::dial::Dialer;
use sources::http::{Endpoint, ProxyRules};

/// HTTP settings of the process (docs/spec/keda.md 7.1, Appendix A).
#[derive(Clone, Debug)]
pub struct HttpSettings {
    /// Default timeout of requests.
    pub timeout: Duration,
    /// Whether connections are reused.
    pub keep_alive: bool,
    /// Requires TLS 1.3. Versions below 1.2 are never used.
    pub only_tls13: bool,
    /// CA certificates that are trusted in addition to the system's (PEM).
    pub authorities: Vec<u8>,
    /// How long a response is shared with later callers.
    pub fresh: Duration,
    /// Opens the connections; the default refuses addresses that tenants must not choose.
    pub dialer: Dialer,
    /// Which requests are sent through which proxy.
    pub proxies: ProxyRules,
    /// The wall clock, for signatures, time ranges and schedules.
    pub clock: Clock,
}

impl Default for HttpSettings {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(3),
            keep_alive: true,
            only_tls13: false,
            authorities: Vec::new(),
            fresh: Duration::from_secs(5),
            dialer: Dialer::default(),
            proxies: ProxyRules::default(),
            clock: Clock::system(),
        }
    }
}

impl HttpSettings {
    /// The default settings with connections to this machine: for clusters on a desk and for tests.
    pub fn allowing_loopback() -> Self {
        Self { dialer: Dialer::allowing_loopback(), ..Self::default() }
    }

    /// Reads the environment variables `KEDA_HTTP_*`, and those of proxies.
    pub fn from_environment(variable: impl Fn(&str) -> Option<String>) -> Self {
        let default = Self::default();
        let timeout = match variable("KEDA_HTTP_DEFAULT_TIMEOUT").map(|text| text.trim().parse::<i64>()) {
            Some(Ok(milliseconds)) => match u64::try_from(milliseconds) {
                Ok(milliseconds @ 1..) => Duration::from_millis(milliseconds),
                _ => Duration::from_millis(300),
            },
            _ => default.timeout,
        };
        let yes = |text: String| matches!(&*text, "1" | "t" | "T" | "TRUE" | "true" | "True");
        Self {
            timeout,
            keep_alive: !variable("KEDA_HTTP_DISABLE_KEEP_ALIVE").is_some_and(yes),
            proxies: ProxyRules::from_environment(&variable),
            only_tls13: variable("KEDA_HTTP_MIN_TLS_VERSION").as_deref() == Some("TLS13"),
            ..default
        }
    }

    /// Applies the settings to the endpoint of a trigger.
    pub(super) fn apply(&self, endpoint: &mut Endpoint) {
        endpoint.only_tls13 |= self.only_tls13;
        endpoint.close_connections |= !self.keep_alive;
        if !self.authorities.is_empty() && endpoint.url.starts_with("https:") {
            let own = endpoint.ca_bundle.take().unwrap_or_default();
            endpoint.ca_bundle = Some([&*own, b"\n", &*self.authorities].concat());
            endpoint.system_roots_too = true;
        }
    }
}
