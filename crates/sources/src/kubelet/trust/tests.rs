#![allow(clippy::unwrap_used)]

use jiff::Timestamp;

use super::*;
use crate::kubelet::address::Place;
use crate::kubelet::client::fake::{Act, Authority as Signer, Fake, answer};
use crate::kubelet::client::{self, Client, Peer};
use crate::kubelet::report::Cause;

fn settings(signer: &Signer, compat: Compat) -> Settings {
    let authority = Authority::Known(Pem::Given(signer.pem.clone().into_bytes()));
    Settings { authority, certificate: None, token: None, compat }
}

/// Asks the kubelet of node `node-a` by its address; why it failed.
async fn asked(settings: Settings, tls: Arc<rustls::ServerConfig>) -> Result<(), Cause> {
    let fake = Fake::new(tls, |_| Act::Say(answer("200 OK", b""))).await;
    let client =
        Client::new(client::Settings::default(), Trust::new(settings).unwrap(), Arc::new(Timestamp::now));
    let place = Place { host: "127.0.0.1".into(), port: fake.port, path: "/".into(), plain: false };
    client.get("node-a", &place, &mut Peer::default()).await.map(drop).map_err(|failure| failure.cause)
}

#[tokio::test]
async fn the_address_that_was_dialled_counts() {
    let signer = Signer::new();
    for compat in [Compat::Strict, Compat::Better] {
        let tls = signer.certificate(&["127.0.0.1"], "whoever");
        assert_eq!(asked(settings(&signer, compat), tls).await, Ok(()));
    }
}

#[tokio::test]
async fn a_certificate_that_names_the_node_is_as_good_unless_strict() {
    let signer = Signer::new();
    let by_dns = signer.certificate(&["other", "Node-A"], "whoever");
    let by_common = signer.certificate(&["other"], "system:node:node-a");
    for tls in [by_dns, by_common] {
        assert_eq!(asked(settings(&signer, Compat::Better), Arc::clone(&tls)).await, Ok(()));
        let failed = asked(settings(&signer, Compat::Strict), tls).await.unwrap_err();
        assert!(matches!(failed, Cause::CertificateWithoutAddress { .. }), "{failed:?}");
    }
}

#[tokio::test]
async fn a_certificate_of_another_node_is_not() {
    let signer = Signer::new();
    let others = [
        signer.certificate(&["node-b", "10.0.0.7"], "system:node:node-b"),
        signer.certificate(&["*.node-a", "node-a.example.com"], "node-a"),
        signer.certificate(&["node-b"], "system:node:node-a.example.com"),
    ];
    for tls in others {
        let failed = asked(settings(&signer, Compat::Better), tls).await.unwrap_err();
        assert!(matches!(failed, Cause::CertificateWithoutAddress { .. }), "{failed:?}");
    }
    let tls = signer.certificate(&["node-b", "10.0.0.7"], "system:node:node-b");
    let failed = asked(settings(&signer, Compat::Better), tls).await.unwrap_err();
    assert_eq!(failed.words(), "certificate has no address 127.0.0.1, only node-b, 10.0.0.7");
}

#[tokio::test]
async fn the_name_of_the_node_does_not_help_who_is_not_signed() {
    let (signer, other) = (Signer::new(), Signer::new());
    let tls = other.certificate(&["node-a", "127.0.0.1"], "system:node:node-a");
    for compat in [Compat::Strict, Compat::Better] {
        assert_eq!(asked(settings(&signer, compat), Arc::clone(&tls)).await, Err(Cause::UnknownAuthority));
    }
    let anybody = Settings { authority: Authority::Anybody, ..settings(&signer, Compat::Better) };
    assert_eq!(asked(anybody, tls).await, Ok(()));
}

#[tokio::test]
async fn certificates_of_the_past_and_the_future() {
    let signer = Signer::new();
    let old = signer.certificate_of(&["127.0.0.1"], "a", (2019, 2021));
    assert_eq!(asked(settings(&signer, Compat::Better), old).await, Err(Cause::CertificateExpired));
    let new = signer.certificate_of(&["127.0.0.1"], "a", (2090, 2091));
    assert_eq!(asked(settings(&signer, Compat::Better), new).await, Err(Cause::CertificateNotYetValid));
}

#[tokio::test]
async fn whoever_does_not_speak_tls_is_told_apart() {
    let fake = Fake::start(0, None, Arc::default(), |_| Act::Silence).await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(fake);
    let plain = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        tokio::io::AsyncWriteExt::write_all(&mut stream, b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
        std::future::pending::<()>().await;
    });
    let signer = Signer::new();
    let trust = Trust::new(settings(&signer, Compat::Better)).unwrap();
    let client = Client::new(client::Settings::default(), trust, Arc::new(Timestamp::now));
    let place = Place { host: "127.0.0.1".into(), port, path: "/".into(), plain: false };
    let failed = client.get("a", &place, &mut Peer::default()).await.unwrap_err();
    assert_eq!(failed.cause, Cause::Other("whoever listens there does not speak TLS".into()));
    plain.abort();
}

#[tokio::test(start_paused = true)]
async fn an_authority_that_was_replaced_counts_for_the_next_connection() {
    let (old, new) = (Signer::new(), Signer::new());
    let file = std::env::temp_dir().join(format!("plimsoll-authority-{}.pem", std::process::id()));
    std::fs::write(&file, &old.pem).unwrap();
    let authority = Authority::Known(Pem::File(file.clone()));
    let trust = Trust::new(Settings { authority, ..settings(&old, Compat::Better) }).unwrap();
    let (config, first) = trust.greeting("a");
    assert_eq!(trust.generation(), first);
    // Nothing usable: what was read before counts.
    for bad in [Some("nothing"), None] {
        match bad {
            Some(text) => std::fs::write(&file, text).unwrap(),
            None => std::fs::remove_file(&file).unwrap(),
        }
        tokio::time::advance(PERIOD).await;
        assert_eq!(trust.generation(), first);
    }
    std::fs::write(&file, &new.pem).unwrap();
    assert_eq!(trust.generation(), first, "it is not read for each request");
    tokio::time::advance(PERIOD).await;
    assert_ne!(trust.generation(), first);
    assert!(!Arc::ptr_eq(&config, &trust.greeting("a").0));
    std::fs::remove_file(&file).unwrap();
}

#[tokio::test]
async fn what_cannot_be_used_is_told_at_the_start() {
    let signer = Signer::new();
    let wrong = |settings: Settings| Trust::new(settings).unwrap_err().to_string();
    let good = settings(&signer, Compat::Better);
    let given = |text: &str| Pem::Given(text.as_bytes().to_vec());
    let nobody = Settings { authority: Authority::Known(given("")), ..good.clone() };
    assert_eq!(
        wrong(nobody),
        "failed to use the authority of the kubelets ((given)): no certificate in PEM form"
    );
    let missing = Settings { authority: Authority::Known(Pem::File("/no/such.pem".into())), ..good.clone() };
    assert!(wrong(missing).starts_with("failed to read /no/such.pem: "));
    let key = Settings { certificate: Some((given(&signer.pem), given("secret"))), ..good.clone() };
    assert_eq!(
        wrong(key),
        "failed to use the certificate for kubelets with its key: no private key in PEM form"
    );
    let token = Settings { token: Some(Token::Given(Secret::new(" \n"))), ..good };
    assert_eq!(
        wrong(token),
        "failed to use the token for kubelets: it is empty, or has characters that no token has"
    );
}
