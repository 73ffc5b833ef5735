#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::collections::BTreeMap;
use std::sync::Arc;

use localkube::access::{Authority, Identity};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use super::*;

/// Two authorities and the ConfigMap of a cluster with them.
struct TestTrust {
    clients: Authority,
    proxies: Authority,
    trust: Trust,
}

fn data(clients: &Authority, proxies: &Authority) -> BTreeMap<String, String> {
    let pairs = [
        ("client-ca-file", clients.certificate()),
        ("requestheader-client-ca-file", proxies.certificate()),
        ("requestheader-allowed-names", "[\"front-proxy-client\"]"),
        ("requestheader-username-headers", "[\"X-Remote-User\"]"),
        ("requestheader-uid-headers", "[\"X-Remote-Uid\"]"),
        ("requestheader-group-headers", "[\"X-Remote-Group\"]"),
        ("requestheader-extra-headers-prefix", "[\"X-Remote-Extra-\"]"),
    ];
    pairs.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

fn read(data: &BTreeMap<String, String>) -> Result<Trust, trust::TrustError> {
    Trust::read(data, &Arc::new(rustls::crypto::aws_lc_rs::default_provider()), 1)
}

fn test_trust() -> TestTrust {
    let (clients, proxies) = (Authority::new("clients").unwrap(), Authority::new("proxies").unwrap());
    let trust = read(&data(&clients, &proxies)).unwrap();
    TestTrust { clients, proxies, trust }
}

fn peer(identity: &Identity) -> Peer {
    Peer::new(vec![CertificateDer::from_pem_slice(identity.certificate.as_bytes()).unwrap()]).unwrap()
}

fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        headers.append(*name, value.parse().unwrap());
    }
    headers
}

fn name(found: Result<Option<User>, Refused>) -> String {
    match found {
        Ok(Some(user)) => user.name,
        Ok(None) => "nobody".to_owned(),
        Err(Refused) => "refused".to_owned(),
    }
}

#[test]
fn user_headers_are_read_only_from_the_front_proxy() {
    let TestTrust { clients, proxies, trust } = test_trust();
    let carol = headers(&[("x-remote-user", "carol")]);
    let none = HeaderMap::new();
    let who = |identity: &Identity, headers| {
        name(by_certificate(&trust, &Clock::default(), Some(&peer(identity)), headers))
    };
    let proxy = proxies.client("front-proxy-client", None).unwrap();
    assert_eq!(who(&proxy, &carol), "carol");
    assert_eq!(who(&proxy, &none), "refused");
    assert_eq!(who(&proxies.client("other", None).unwrap(), &carol), "refused");
    let alice = clients.client("alice", Some("team")).unwrap();
    assert_eq!(who(&alice, &carol), "alice");
    // The right name of the wrong authority, a certificate of a server, one of an unknown authority.
    assert_eq!(who(&clients.client("front-proxy-client", None).unwrap(), &carol), "front-proxy-client");
    assert_eq!(who(&proxies.server(&["front-proxy-client"]).unwrap(), &carol), "refused");
    let stranger = Authority::new("clients").unwrap().client("alice", None).unwrap();
    assert_eq!(who(&stranger, &none), "refused");
    assert_eq!(name(by_certificate(&trust, &Clock::default(), None, &carol)), "nobody");
    // Before anything was read nobody is trusted.
    assert_eq!(
        name(by_certificate(&Trust::default(), &Clock::default(), Some(&peer(&proxy)), &carol)),
        "refused"
    );
    assert_eq!(
        name(by_certificate(&Trust::default(), &Clock::default(), Some(&peer(&alice)), &none)),
        "refused"
    );
}

#[test]
fn all_user_headers_are_read() {
    let TestTrust { clients, proxies, trust } = test_trust();
    let sent_headers = headers(&[
        ("x-remote-user", ""),
        ("x-remote-user", "carol"),
        ("x-remote-uid", "u-1"),
        ("x-remote-group", "a"),
        ("x-remote-group", "b"),
        ("x-remote-extra-scopes%2fx", "1"),
        ("x-remote-extra-scopes%2fx", "2"),
        ("x-remote-extra-bad%zz", "3"),
    ]);
    let proxy = peer(&proxies.client("front-proxy-client", None).unwrap());
    let user = by_certificate(&trust, &Clock::default(), Some(&proxy), &sent_headers)
        .unwrap()
        .unwrap()
        .authenticated();
    assert_eq!((user.name.as_str(), user.uid.as_str()), ("carol", "u-1"));
    assert_eq!(user.groups, ["a", "b", "system:authenticated"]);
    assert_eq!(user.extra["scopes/x"], ["1", "2"]);
    assert_eq!(user.extra["bad%zz"], ["3"]);
    let alice = peer(&clients.client("alice", Some("team")).unwrap());
    let user = by_certificate(&trust, &Clock::default(), Some(&alice), &sent_headers).unwrap().unwrap();
    assert_eq!((user.name.as_str(), user.groups.as_slice()), ("alice", &["team".to_owned()][..]));
    assert!(user.extra["authentication.kubernetes.io/credential-id"][0].starts_with("X509SHA256="));
    // The front proxy also authenticates requests of the anonymous user.
    let nobody =
        headers(&[("x-remote-user", "system:anonymous"), ("x-remote-group", "system:unauthenticated")]);
    let user =
        by_certificate(&trust, &Clock::default(), Some(&proxy), &nobody).unwrap().unwrap().authenticated();
    assert_eq!(user, User::anonymous());
}

#[test]
fn identity_headers_are_stripped() {
    let TestTrust { trust, .. } = test_trust();
    let mut sent_headers = headers(&[
        ("authorization", "Bearer x"),
        ("x-remote-user", "u"),
        ("x-remote-extra-a", "b"),
        ("x-other", "kept"),
    ]);
    headers::strip(trust.proxy.as_ref(), &mut sent_headers);
    assert_eq!(sent_headers.keys().map(http::HeaderName::as_str).collect::<Vec<_>>(), ["x-other"]);
}

#[test]
fn new_authorities_apply_to_open_connections() {
    let TestTrust { clients, proxies, trust } = test_trust();
    let alice = peer(&clients.client("alice", None).unwrap());
    assert!(alice.trusted_chains(&trust, &Clock::default()).client);
    let other = Authority::new("others").unwrap();
    let mut next = read(&data(&other, &proxies)).unwrap();
    next.generation = 2;
    assert!(!alice.trusted_chains(&next, &Clock::default()).client);
}

#[test]
fn broken_configuration_is_an_error_and_an_empty_one_trusts_no_client() {
    let TestTrust { clients, proxies, .. } = test_trust();
    let with = |key: &str, value: &str| {
        let mut data = data(&clients, &proxies);
        data.insert(key.to_owned(), value.to_owned());
        read(&data)
    };
    assert!(with("client-ca-file", "nonsense").is_err());
    assert!(
        with("requestheader-allowed-names", "front-proxy-client")
            .unwrap_err()
            .to_string()
            .contains("allowed-names")
    );
    let any = with("requestheader-allowed-names", "[]").unwrap();
    assert!(any.proxy.unwrap().admits("anybody"));
    let none = read(&BTreeMap::new()).unwrap();
    assert!(none.clients.is_none() && none.proxy.is_none());
    // A prefix of nothing would take every header.
    assert!(with("requestheader-extra-headers-prefix", "[\"\"]").unwrap().proxy.unwrap().extra.is_empty());
}

#[test]
fn tokens_are_found_where_they_belong() {
    let token = |value: &str| token::bearer(&headers(&[("authorization", value)])).map(str::to_owned);
    assert_eq!(token("Bearer abc").as_deref(), Some("abc"));
    assert_eq!(token("bearer  abc ").as_deref(), Some("abc"));
    assert_eq!((token("Basic abc"), token("Bearer "), token("Bearer")), (None, None, None));
}

#[test]
fn invalid_der_is_refused() {
    assert!(Peer::new(Vec::new()).is_none());
    assert!(Peer::new(vec![CertificateDer::from(b"nonsense".to_vec())]).is_none());
}

#[tokio::test]
async fn the_configuration_is_read_again_when_it_could_not_be() {
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::api::{Api, DeleteParams, PostParams};

    let cluster = localkube::Cluster::start(localkube::Options::default()).await.unwrap();
    let client = cluster.client();
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "kube-system");
    let name = "extension-apiserver-authentication";
    let mut map = maps.get(name).await.unwrap();
    maps.delete(name, &DeleteParams::default()).await.unwrap();
    let reader = ClientTrustReader::new();
    let mut source =
        TrustSource::new(Arc::new(rustls::crypto::aws_lc_rs::default_provider()), ClientTrust::default());
    assert!(!reader.read(&client, &mut source).await);
    assert!(reader.current().proxy.is_none());
    map.metadata.resource_version = None;
    map.metadata.uid = None;
    let mut map = maps.create(&PostParams::default(), &map).await.unwrap();
    assert!(reader.read(&client, &mut source).await && reader.read(&client, &mut source).await);
    assert!(reader.current().proxy.is_some() && reader.current().clients.is_some());
    assert_eq!(reader.current().generation, 1);
    // A broken one changes nothing.
    map.data.as_mut().unwrap().insert("client-ca-file".into(), "nonsense".into());
    maps.replace(name, &PostParams::default(), &map).await.unwrap();
    assert!(!reader.read(&client, &mut source).await);
    assert_eq!(reader.current().generation, 1);
    assert!(reader.current().clients.is_some());
}

#[tokio::test]
async fn files_take_precedence_over_the_config_map() {
    let TestTrust { clients, proxies, .. } = test_trust();
    let folder = std::env::temp_dir().join(format!("serve-trusted-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let write = |name: &str, authority: &Authority| {
        let path = folder.join(name);
        std::fs::write(&path, authority.certificate()).unwrap();
        path
    };
    let mut given = ClientTrust { lookup: false, clients: Some(write("users", &clients)), proxies: None };
    let nobody = tower::service_fn(|_: http::Request<kube::client::Body>| async {
        Err::<http::Response<kube::client::Body>, _>(std::io::Error::other("no API server"))
    });
    let client = Client::new(nobody, "default");
    let provider = || Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let read_trust = async |given: &ClientTrust| {
        let (reader, mut source) = (ClientTrustReader::new(), TrustSource::new(provider(), given.clone()));
        (reader.read(&client, &mut source).await, reader.current())
    };
    let alice = peer(&clients.client("alice", None).unwrap());
    // Each time as if newly come: what was found out about a visitor holds for one generation of trust.
    let proxy = || peer(&proxies.client("front-proxy-client", None).unwrap());
    let carol = headers(&[("x-remote-user", "carol")]);
    let (read, trust) = read_trust(&given).await;
    assert!(read);
    assert_eq!(name(by_certificate(&trust, &Clock::default(), Some(&alice), &carol)), "alice");
    assert_eq!(name(by_certificate(&trust, &Clock::default(), Some(&proxy()), &carol)), "refused");
    // Both are given: the ConfigMap is not read, although it may be.
    given.proxies = Some(FrontProxyOptions::new(write("proxies", &proxies)));
    given.lookup = true;
    let (read, trust) = read_trust(&given).await;
    assert!(read);
    assert_eq!(name(by_certificate(&trust, &Clock::default(), Some(&proxy()), &carol)), "carol");
    // The missing one is read from the cluster, and no client is trusted while there is no response.
    given.clients = None;
    assert!(!read_trust(&given).await.0);
    given = ClientTrust { clients: Some(folder.join("none")), ..given };
    let (read, trust) = read_trust(&given).await;
    assert!(!read && trust.proxy.is_none());
    std::fs::remove_dir_all(&folder).unwrap();
}
