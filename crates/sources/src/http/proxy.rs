//! HTTP proxies of the environment, chosen as Go's `http.ProxyFromEnvironment` does.

use std::net::{IpAddr, SocketAddr};

use super::endpoint::{ParsedUrl, basic, without_user};
use super::error::HttpErrorCause;
use crate::dial::{Cidr, OutboundPolicy, ProxyServer};

/// Names that are never proxied: this machine, and the metadata server of Google Cloud.
const LOCAL_NAMES: [&str; 2] = ["localhost", "metadata.google.internal"];

/// Which requests are sent through which proxy. By default none is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ProxyRules {
    /// For `http` URLs.
    http: Option<ConfiguredProxy>,
    /// For `https` URLs.
    https: Option<ConfiguredProxy>,
    exceptions: Vec<ProxyException>,
}

/// A proxy, or why the one of the environment cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum ConfiguredProxy {
    Usable(ProxyServer),
    Unusable(String),
}

/// Servers that are connected to directly.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum ProxyException {
    All,
    Range(Cidr),
    Address(IpAddr, Option<String>),
    /// `.example.com`, its port, and whether `example.com` itself is meant, too.
    Domain(String, Option<String>, bool),
}

impl ProxyRules {
    /// Reads `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY`, or the same in lower case.
    pub fn from_environment(variable: impl Fn(&str) -> Option<String>) -> Self {
        let either = |name: &str| {
            let given = |name: &str| variable(name).filter(|text| !text.trim().is_empty());
            given(name).or_else(|| given(&name.to_lowercase()))
        };
        let proxy = |name: &str| either(name).map(|text| ConfiguredProxy::parse(name, text.trim()));
        let exceptions = either("NO_PROXY").unwrap_or_default();
        Self {
            http: proxy("HTTP_PROXY"),
            https: proxy("HTTPS_PROXY"),
            exceptions: exceptions.split(',').filter_map(ProxyException::parse).collect(),
        }
    }

    /// The proxy for requests to a server.
    ///
    /// # Errors
    /// The proxy of the environment cannot be used.
    pub(super) fn proxy_for(&self, url: &ParsedUrl) -> Result<Option<ProxyServer>, HttpErrorCause> {
        let proxy = if url.tls { &self.https } else { &self.http };
        let Some(proxy) = proxy.as_ref().filter(|_| self.uses_proxy(url)) else { return Ok(None) };
        match proxy {
            ConfiguredProxy::Usable(proxy) => Ok(Some(proxy.clone())),
            ConfiguredProxy::Unusable(reason) => Err(HttpErrorCause::Proxy(reason.clone())),
        }
    }

    /// The proxy for connections of gRPC to `host:port`: that for `https` URLs, with and without TLS, as in Go.
    ///
    /// # Errors
    /// The proxy of the environment cannot be used.
    pub fn tunnel_for(&self, authority: &str) -> Result<Option<ProxyServer>, HttpErrorCause> {
        self.proxy_for(&ParsedUrl::parse(&format!("https://{authority}"))?)
    }

    fn uses_proxy(&self, url: &ParsedUrl) -> bool {
        let authority = url.server.split_once("://").map_or("", |(_, authority)| authority);
        let (host, port) = host_and_port(authority);
        let port = port.unwrap_or(if url.tls { "443" } else { "80" });
        let host = host.to_lowercase();
        let address: Option<IpAddr> = unbracketed(&host).parse().ok();
        // Loopback, and metadata services: through a proxy, these would be those of the proxy's machine.
        let is_local = |address| OutboundPolicy::default().check(SocketAddr::new(address, 0), &[]).is_err();
        !LOCAL_NAMES.contains(&&*host)
            && !address.is_some_and(is_local)
            && !self.exceptions.iter().any(|exception| exception.matches(&host, address, port))
    }
}

impl ConfiguredProxy {
    /// `http://user:password@host:port`; the scheme may be missing.
    fn parse(name: &str, text: &str) -> Self {
        let url = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
        let parsed = match ParsedUrl::parse(&url) {
            Ok(parsed) if !parsed.tls => parsed,
            _ => {
                let shown = without_user(text);
                return Self::Unusable(format!("{name}: {shown:?} is no HTTP proxy: write http://host:port"));
            }
        };
        let authority = parsed.server.split_once("://").map_or("", |(_, authority)| authority);
        let (host, port) = host_and_port(authority);
        let Ok(port) = port.unwrap_or("80").parse() else {
            return Self::Unusable(format!("{name}: its port is no port of a proxy"));
        };
        let authorization = parsed.user.as_ref().map(|(user, password)| basic(user, password));
        Self::Usable(ProxyServer { host: host.to_owned(), port, authorization })
    }
}

impl ProxyException {
    /// One entry of `NO_PROXY`.
    fn parse(text: &str) -> Option<Self> {
        let text = text.trim().to_lowercase();
        if text.is_empty() {
            return None;
        }
        if text == "*" {
            return Some(Self::All);
        }
        if text.contains('/')
            && let Ok(range) = text.parse()
        {
            return Some(Self::Range(range));
        }
        let (host, port) = match text.parse::<IpAddr>() {
            // The colons of an address separate no port.
            Ok(_) => (&*text, None),
            Err(_) => host_and_port(&text),
        };
        let port = port.map(str::to_owned);
        if let Ok(address) = unbracketed(host).parse::<IpAddr>() {
            return Some(Self::Address(address.to_canonical(), port));
        }
        let host = if host.starts_with("*.") { host.get(1..).unwrap_or_default() } else { host };
        match host.strip_prefix('.') {
            _ if host.is_empty() => None,
            Some(_) => Some(Self::Domain(host.to_owned(), port, false)),
            None => Some(Self::Domain(format!(".{host}"), port, true)),
        }
    }

    fn matches(&self, host: &str, address: Option<IpAddr>, port: &str) -> bool {
        let is_port = |own: Option<&String>| own.is_none_or(|own| own == port);
        match self {
            Self::All => true,
            Self::Range(range) => address.is_some_and(|address| range.contains(address.to_canonical())),
            Self::Address(own, own_port) => {
                address.is_some_and(|address| address.to_canonical() == *own) && is_port(own_port.as_ref())
            }
            Self::Domain(domain, own_port, is_itself) => {
                let is_host = *is_itself && domain.strip_prefix('.') == Some(host);
                (is_host || host.ends_with(domain.as_str())) && is_port(own_port.as_ref())
            }
        }
    }
}

/// Splits `host:port`; the host of an IPv6 address keeps its brackets.
fn host_and_port(authority: &str) -> (&str, Option<&str>) {
    match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port).filter(|port| !port.is_empty())),
        _ => (authority, None),
    }
}

fn unbracketed(host: &str) -> &str {
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(variables: &[(&str, &str)]) -> ProxyRules {
        let value = |name: &str| variables.iter().find(|(known, _)| *known == name);
        ProxyRules::from_environment(|name| value(name).map(|(_, text)| (*text).to_owned()))
    }

    fn chosen(rules: &ProxyRules, url: &str) -> String {
        match rules.proxy_for(&ParsedUrl::parse(url).unwrap()) {
            Ok(proxy) => proxy.map(|proxy| proxy.to_string()).unwrap_or_default(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn schemes_have_their_own_proxy() {
        let both = rules(&[("HTTP_PROXY", "http://plain:3128/"), ("https_proxy", "secure")]);
        assert_eq!(chosen(&both, "http://source"), "http://plain:3128");
        assert_eq!(chosen(&both, "https://source"), "http://secure:80");
        let upper = rules(&[("HTTPS_PROXY", "upper:1"), ("https_proxy", "lower:1")]);
        assert_eq!(chosen(&upper, "https://source"), "http://upper:1");
        assert_eq!(chosen(&upper, "http://source"), "");
        assert_eq!(chosen(&ProxyRules::default(), "https://source"), "");
        let user = rules(&[("HTTP_PROXY", "http://me:p%40ss@plain:3128")]);
        assert!(!format!("{user:?}").contains("p@ss"));
        let proxy = user.proxy_for(&ParsedUrl::parse("http://source").unwrap()).unwrap().unwrap();
        assert_eq!(proxy.authorization.as_deref(), Some("Basic bWU6cEBzcw=="));
    }

    #[test]
    fn exceptions_are_those_of_go() {
        let except = |exceptions: &str, url: &str| {
            let proxies = [("HTTP_PROXY", "p:1"), ("HTTPS_PROXY", "p:1"), ("NO_PROXY", exceptions)];
            chosen(&rules(&proxies), url).is_empty()
        };
        let direct = [
            ("", "http://localhost"),
            ("", "http://LOCALHOST:8080"),
            ("", "http://127.0.0.9"),
            ("", "http://[::1]:8080"),
            ("", "http://169.254.169.254"),
            ("", "http://[fd00:ec2::23]/v1/credentials"),
            ("", "http://metadata.google.internal/computeMetadata/v1/"),
            ("*", "https://source"),
            ("example.com", "https://example.com"),
            ("example.com", "https://a.b.Example.com:444"),
            (".example.com", "https://a.example.com"),
            ("*.example.com", "https://a.example.com"),
            ("a, example.com:8443 ,b", "https://example.com:8443"),
            ("example.com:443", "https://example.com"),
            ("10.0.0.0/8", "http://10.1.2.3"),
            ("10.1.2.3", "http://10.1.2.3:9090"),
            ("10.1.2.3:80", "http://10.1.2.3"),
            ("fd00::/8", "http://[fd00::1]"),
            ("fd00::1", "http://[fd00::1]:9090"),
            ("[fd00::1]:9090", "http://[fd00::1]:9090"),
            (".svc,.cluster.local", "http://prometheus.monitoring.svc:9090"),
        ];
        for (exceptions, url) in direct {
            assert!(except(exceptions, url), "{exceptions:?} {url}");
        }
        let proxied = [
            ("", "http://source"),
            ("", "http://10.0.0.1"),
            ("", "http://localhost.example.com"),
            ("example.com", "https://badexample.com"),
            (".example.com", "https://example.com"),
            ("*.example.com", "https://example.com"),
            ("example.com:8443", "https://example.com"),
            ("10.0.0.0/8", "http://11.0.0.1"),
            ("10.0.0.0/8", "http://ten.example.com"),
            ("10.1.2.3:80", "http://10.1.2.3:81"),
            (",", "http://source"),
        ];
        for (exceptions, url) in proxied {
            assert!(!except(exceptions, url), "{exceptions:?} {url}");
        }
    }

    #[test]
    fn grpc_uses_the_proxy_of_https() {
        let proxies = rules(&[("HTTP_PROXY", "plain:1"), ("HTTPS_PROXY", "secure:2"), ("NO_PROXY", ".svc")]);
        let chosen = |authority: &str| proxies.tunnel_for(authority).unwrap().map(|proxy| proxy.to_string());
        assert_eq!(chosen("scaler.example:6000").as_deref(), Some("http://secure:2"));
        for direct in ["scaler.shop.svc:6000", "127.0.0.1:6000", "[::1]:6000", "localhost:6000"] {
            assert_eq!(chosen(direct), None, "{direct}");
        }
    }

    #[test]
    fn unusable_proxy_is_an_error_and_no_direct_connection() {
        for proxy in ["socks5://p:1080", "https://p", "http://me:secret@", "http://p:99999"] {
            let unusable = rules(&[("HTTPS_PROXY", proxy), ("NO_PROXY", "direct")]);
            let error = chosen(&unusable, "https://source");
            assert!(error.starts_with("HTTPS_PROXY: ") && !error.contains("secret"), "{error}");
            assert_eq!(chosen(&unusable, "https://direct"), "");
        }
    }
}
