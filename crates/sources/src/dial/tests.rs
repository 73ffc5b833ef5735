use std::sync::Mutex;

use hyper_util::client::legacy::connect::Connection as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tower::Service as _;

use super::lookups::LOOKUPS;
use super::*;
use crate::tenant::{in_namespace, namespace};

/// Resolves names from a list and records the addresses that would be connected to; it never opens a socket.
#[derive(Clone, Default)]
struct RecordingConnector {
    names: Vec<(&'static str, Vec<IpAddr>)>,
    connected: Arc<Mutex<Vec<SocketAddr>>>,
    /// The namespaces for which names were resolved.
    resolved_for: Arc<Mutex<Vec<Arc<str>>>>,
}

impl Connector for RecordingConnector {
    fn resolve<'a>(&'a self, host: &'a str, port: u16) -> ConnectFuture<'a, Vec<SocketAddr>> {
        Box::pin(async move {
            self.resolved_for.lock().unwrap().extend(namespace());
            let known = self.names.iter().find(|(name, _)| *name == host);
            let (_, found) = known.ok_or_else(|| io::Error::other("failed to lookup address information"))?;
            Ok(found.iter().map(|ip| SocketAddr::new(*ip, port)).collect())
        })
    }

    fn connect(&self, address: SocketAddr) -> ConnectFuture<'_, TcpStream> {
        self.connected.lock().unwrap().push(address);
        Box::pin(async { Err(io::ErrorKind::ConnectionRefused.into()) })
    }
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn check(policy: &OutboundPolicy, address: &str) -> Result<(), AddressClass> {
    policy.check(SocketAddr::new(ip(address), 80), &[])
}

#[test]
fn special_addresses_are_refused_in_every_form() {
    use AddressClass::*;
    let cases = [
        ("127.0.0.1", Loopback),
        ("127.255.0.9", Loopback),
        ("::1", Loopback),
        ("::ffff:127.0.0.1", Loopback),
        ("64:ff9b::7f00:1", Loopback),
        ("2002:7f00:1::1", Loopback),
        ("::127.0.0.1", Loopback),
        ("0.0.0.0", Unspecified),
        ("0.1.2.3", Unspecified),
        ("::", Unspecified),
        ("::ffff:0.0.0.0", Unspecified),
        ("169.254.169.254", LinkLocal),
        ("169.254.0.1", LinkLocal),
        ("::ffff:169.254.169.254", LinkLocal),
        ("64:ff9b::a9fe:a9fe", LinkLocal),
        ("2002:a9fe:a9fe::", LinkLocal),
        ("fe80::1", LinkLocal),
        ("febf::1", LinkLocal),
        ("64:ff9b:1::7f00:1", Loopback),
        ("64:ff9b:1:2:3:4:a9fe:a9fe", LinkLocal),
        ("fd00:ec2::254", Metadata),
        ("fd00:ec2::23", Metadata),
        ("fd20:ce::254", Metadata),
        ("100.100.100.200", Metadata),
        ("168.63.129.16", Metadata),
        ("224.0.0.1", Multicast),
        ("255.255.255.255", Multicast),
        ("ff02::1", Multicast),
    ];
    for (address, class) in cases {
        assert_eq!(check(&OutboundPolicy::default(), address), Err(class), "{address}");
        assert_eq!(check(&OutboundPolicy::unrestricted(), address), Ok(()), "{address}");
    }
    for address in ["10.0.0.1", "192.168.1.1", "8.8.8.8", "100.64.0.1", "fd00::1", "fec0::1", "2001:db8::1"] {
        assert_eq!(check(&OutboundPolicy::default(), address), Ok(()), "{address}");
    }
}

#[test]
fn ranges_allow_what_they_contain() {
    let allowing = |text: &str| OutboundPolicy::allowing([text.parse().unwrap()]);
    assert_eq!(check(&allowing("127.0.0.0/8"), "127.9.9.9"), Ok(()));
    assert_eq!(check(&allowing("127.0.0.0/8"), "::ffff:127.0.0.1"), Ok(()));
    assert_eq!(check(&allowing("127.0.0.0/8"), "::1"), Err(AddressClass::Loopback));
    assert_eq!(check(&allowing("127.0.0.1"), "127.0.0.2"), Err(AddressClass::Loopback));
    assert_eq!(check(&allowing("169.254.20.10/32"), "169.254.20.10"), Ok(()));
    assert_eq!(check(&allowing("169.254.20.10/32"), "169.254.169.254"), Err(AddressClass::LinkLocal));
    assert_eq!(check(&allowing("0.0.0.0/0"), "169.254.169.254"), Ok(()));
    assert_eq!(check(&allowing("0.0.0.0/0"), "fe80::1"), Err(AddressClass::LinkLocal));
    assert_eq!(check(&allowing("fe80::/10"), "febf::1"), Ok(()));
    for bad in ["", "x", "127.0.0.1/33", "::1/129", "127.0.0.1/-1", "127.0.0.1/+8", "127.0.0.1/", "127.1/8"] {
        assert!(bad.parse::<Cidr>().is_err(), "{bad}");
    }
}

#[test]
fn api_server_is_refused_by_address_and_port() {
    let server = [SocketAddr::new(ip("10.96.0.1"), 443)];
    let policy = OutboundPolicy::default();
    let at = |address: &str, port| SocketAddr::new(ip(address), port);
    assert_eq!(policy.check(at("10.96.0.1", 443), &server), Err(AddressClass::ApiServer));
    assert_eq!(policy.check(at("::ffff:10.96.0.1", 443), &server), Err(AddressClass::ApiServer));
    assert_eq!(policy.check(at("64:ff9b::a60:1", 443), &server), Err(AddressClass::ApiServer));
    assert_eq!(policy.check(at("10.96.0.1", 9090), &server), Ok(()));
    assert_eq!(policy.check(at("10.96.0.2", 443), &server), Ok(()));
    let allowing = OutboundPolicy::allowing(["10.96.0.1/32".parse().unwrap()]);
    assert_eq!(allowing.check(at("10.96.0.1", 443), &server), Ok(()));
}

#[tokio::test]
async fn names_are_checked_after_resolution() {
    let names = vec![
        ("rebound.example", vec![ip("169.254.169.254")]),
        ("both.example", vec![ip("127.0.0.1"), ip("10.0.0.7"), ip("fe80::1")]),
        ("api.example", vec![ip("10.96.0.1")]),
        ("nothing.example", Vec::new()),
    ];
    let recording = RecordingConnector { names, ..RecordingConnector::default() };
    let connected = Arc::clone(&recording.connected);
    let dialer = Dialer::with_connector(OutboundPolicy::default(), recording);
    dialer.protect(vec![SocketAddr::new(ip("10.96.0.1"), 443)]);
    for host in ["rebound.example", "169.254.169.254", "[fe80::1]", "::1", "0.0.0.0", "::ffff:127.0.0.1"] {
        let error = dialer.connect(host, 80).await.unwrap_err();
        assert!(matches!(error, DialError::NotAllowed { .. }), "{host}: {error}");
        assert!(error.to_string().contains("--allow-source-cidr"), "{error}");
    }
    assert!(matches!(dialer.connect("api.example", 443).await, Err(DialError::NotAllowed { .. })));
    assert!(matches!(dialer.connect("nothing.example", 443).await, Err(DialError::NoAddress(_))));
    assert!(matches!(dialer.connect("unknown.example", 443).await, Err(DialError::Lookup(_))));
    assert!(matches!(dialer.connect_to("both.example").await, Err(DialError::Invalid(_))));
    assert!(connected.lock().unwrap().is_empty());
    let unknown = dialer.connect("unknown.example", 443).await.unwrap_err();
    let cause = crate::http::HttpErrorCause::classify(&io::Error::from(unknown));
    assert!(matches!(cause, crate::http::HttpErrorCause::UnknownHost(_)), "{cause}");
    // Only the allowed address of several is tried.
    assert!(matches!(dialer.connect_to("both.example:5672").await, Err(DialError::Connect(_))));
    assert!(matches!(dialer.connect("api.example", 80).await, Err(DialError::Connect(_))));
    let tried = [SocketAddr::new(ip("10.0.0.7"), 5672), SocketAddr::new(ip("10.96.0.1"), 80)];
    assert_eq!(*connected.lock().unwrap(), tried);
}

/// Only IPv4 works.
struct OnlyV4;

impl Connector for OnlyV4 {
    fn resolve<'a>(&'a self, _: &'a str, port: u16) -> ConnectFuture<'a, Vec<SocketAddr>> {
        let both = [ip("::1"), ip("127.0.0.1")].map(|ip| SocketAddr::new(ip, port));
        Box::pin(async move { Ok(both.to_vec()) })
    }
    fn connect(&self, address: SocketAddr) -> ConnectFuture<'_, TcpStream> {
        Box::pin(async move {
            if address.is_ipv6() {
                std::future::pending::<()>().await;
            }
            TcpStream::connect(address).await
        })
    }
}

#[tokio::test]
async fn other_address_family_is_tried() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let dialer = Dialer::with_connector(OutboundPolicy::allowing(Cidr::LOOPBACK), OnlyV4);
    assert!(dialer.connect("both.example", port).await.unwrap().peer_addr().unwrap().is_ipv4());
}

#[test]
fn dialers_are_equal_if_they_are_clones() {
    let dialer = Dialer::default();
    assert_eq!(dialer, dialer.clone());
    assert_ne!(dialer, Dialer::default());
}

#[tokio::test]
async fn names_are_resolved_for_the_namespace_of_the_request_or_of_the_client() {
    let recording = RecordingConnector::default();
    let resolved_for = Arc::clone(&recording.resolved_for);
    let dialer = Dialer::with_connector(OutboundPolicy::default(), recording);
    let connector = in_namespace("client", async { UriConnector::through(dialer, None) }).await;
    let connect = || connector.clone().call("http://unknown.example".parse().unwrap());
    // Channels of gRPC connect on a task of their own.
    assert!(tokio::spawn(connect()).await.unwrap().is_err());
    assert!(in_namespace("request", async { connect().await }).await.is_err());
    assert_eq!(resolved_for.lock().unwrap().join(" "), "client request");
}

/// A proxy that answers one request; its task returns the head of the request.
async fn proxy(answer: &'static str) -> (ProxyServer, tokio::task::JoinHandle<String>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let request = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        stream.write_all(answer.as_bytes()).await.unwrap();
        String::from_utf8(head).unwrap()
    });
    let authorization = Some("Basic bWU6cHc=".to_owned());
    (ProxyServer { host: "127.0.0.1".to_owned(), port, authorization }, request)
}

async fn connect_through(proxy: ProxyServer, url: &str) -> Result<DialedStream, DialError> {
    let names = vec![
        ("rebound.example", vec![ip("169.254.169.254")]),
        ("mixed.example", vec![ip("10.9.8.7"), ip("169.254.169.254")]),
    ];
    let recording = RecordingConnector { names, ..RecordingConnector::default() };
    let connected = Arc::clone(&recording.connected);
    let dialer = Dialer::with_connector(OutboundPolicy::default(), recording);
    let stream = UriConnector::through(dialer, Some(proxy)).call(url.parse().unwrap()).await;
    assert!(connected.lock().unwrap().is_empty(), "no direct connection");
    stream
}

#[tokio::test]
async fn servers_with_tls_are_reached_through_a_tunnel() {
    // The proxy on loopback is that of the administrator; only the proxy knows the name.
    let (server, request) = proxy("HTTP/1.1 200 Connection established\r\n\r\n").await;
    let stream = connect_through(server, "https://source.example/path").await.unwrap();
    assert!(!stream.connected().is_proxied());
    let head = "CONNECT source.example:443 HTTP/1.1\r\nHost: source.example:443\r\n\
                Proxy-Authorization: Basic bWU6cHc=\r\n\r\n";
    assert_eq!(request.await.unwrap(), head);
    let (server, _) = proxy("HTTP/1.1 403 Forbidden\r\n\r\n").await;
    let error = connect_through(server, "https://source.example").await.unwrap_err().to_string();
    assert!(error.contains("opens no tunnel to source.example:443") && error.contains("403"), "{error}");
    assert!(!error.contains("bWU6cHc"), "{error}");
}

#[tokio::test]
async fn name_of_the_proxy_does_not_wait_for_names_of_a_namespace() {
    // More names than one namespace may resolve at once, each in a domain of its own.
    let mut hanging: Vec<_> = (0..100)
        .map(|number| {
            Box::pin(in_namespace("proxied", async move {
                let host = format!("h.slow{number}.example");
                LOOKUPS.run(&host, std::future::pending::<io::Result<()>>()).await
            }))
        })
        .collect();
    for lookup in &mut hanging {
        assert!(futures::poll!(lookup).is_pending());
        // A task may take a limited number of permits before it yields.
        tokio::task::yield_now().await;
    }
    let (server, _) = proxy("HTTP/1.1 200 Connection established\r\n\r\n").await;
    let named = ProxyServer { host: "localhost".to_owned(), ..server };
    in_namespace("proxied", connect_through(named, "https://source.example")).await.unwrap();
}

#[tokio::test]
async fn refused_addresses_are_not_sent_to_the_proxy() {
    let refused = [
        "https://rebound.example",
        "http://rebound.example",
        "https://mixed.example",
        "http://mixed.example",
        "http://100.100.100.200",
    ];
    for url in refused {
        let (server, request) = proxy("").await;
        let error = connect_through(server, url).await.unwrap_err();
        assert!(matches!(error, DialError::NotAllowed { .. }), "{error}");
        request.abort();
    }
    let (server, request) = proxy("").await;
    let stream = connect_through(server, "http://10.9.8.7").await.unwrap();
    assert!(stream.connected().is_proxied(), "requests name the server");
    request.abort();
    // A port on which nothing listens any more.
    let (server, request) = proxy("").await;
    request.abort();
    assert!(request.await.unwrap_err().is_cancelled());
    let error = connect_through(server, "http://10.9.8.7").await.unwrap_err().to_string();
    assert!(error.contains("cannot be reached"), "{error}");
}

/// Resolves no name, because others are being resolved.
struct BusyConnector;

impl Connector for BusyConnector {
    fn resolve<'a>(&'a self, _: &'a str, _: u16) -> ConnectFuture<'a, Vec<SocketAddr>> {
        Box::pin(async { Err(io::ErrorKind::ResourceBusy.into()) })
    }

    fn connect(&self, _: SocketAddr) -> ConnectFuture<'_, TcpStream> {
        Box::pin(async { Err(io::ErrorKind::ConnectionRefused.into()) })
    }
}

#[tokio::test]
async fn name_that_waits_for_others_is_not_sent_to_the_proxy() {
    let (server, request) = proxy("").await;
    let dialer = Dialer::with_connector(OutboundPolicy::default(), BusyConnector);
    let url = "http://metadata.google.internal".parse().unwrap();
    let error = UriConnector::through(dialer, Some(server)).call(url).await.unwrap_err();
    assert!(matches!(error, DialError::Lookup(_)), "{error}");
    request.abort();
}
