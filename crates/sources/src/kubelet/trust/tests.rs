#![allow(clippy::unwrap_used)]

use super::*;
use crate::kubelet::address::KubeletAddress;
use crate::kubelet::client::fake::{Fake, FakeAction, TestCa as Signer, answer};
use crate::kubelet::client::{self, KubeletClient, KubeletConnection};
use crate::kubelet::report::ScrapeErrorCause;

fn settings(signer: &Signer, compat: Compat) -> TrustSettings {
    let authority = TrustedAuthority::Ca(Pem::Inline(signer.pem.clone().into_bytes()));
    TrustSettings { authority, certificate: None, token: None, compat }
}

/// Scrapes the kubelet of `node-a` by its address; returns the error cause.
async fn requested(settings: TrustSettings, tls: Arc<rustls::ServerConfig>) -> Result<(), ScrapeErrorCause> {
    let fake = Fake::new(tls, |_| FakeAction::Respond(answer("200 OK", b""))).await;
    let client = KubeletClient::new(
        client::KubeletClientSettings::default(),
        KubeletTrust::new(settings).unwrap(),
        crate::Clock::system(),
    );
    let target = KubeletAddress { host: "127.0.0.1".into(), port: fake.port, path: "/".into(), plain: false };
    client
        .get("node-a", &target, &mut KubeletConnection::default())
        .await
        .map(drop)
        .map_err(|failure| failure.cause)
}

#[tokio::test]
async fn dialled_address_is_verified() {
    let signer = Signer::new();
    for compat in [Compat::Strict, Compat::Better] {
        let tls = signer.certificate(&["127.0.0.1"], "whoever");
        assert_eq!(requested(settings(&signer, compat), tls).await, Ok(()));
    }
}

#[tokio::test]
async fn certificate_naming_the_node_is_accepted_unless_strict() {
    let signer = Signer::new();
    let by_dns = signer.certificate(&["other", "Node-A"], "whoever");
    let by_common = signer.certificate(&["other"], "system:node:node-a");
    for tls in [by_dns, by_common] {
        assert_eq!(requested(settings(&signer, Compat::Better), Arc::clone(&tls)).await, Ok(()));
        let failed = requested(settings(&signer, Compat::Strict), tls).await.unwrap_err();
        assert!(matches!(failed, ScrapeErrorCause::CertificateWithoutAddress { .. }), "{failed:?}");
    }
}

#[tokio::test]
async fn certificate_of_another_node_is_rejected() {
    let signer = Signer::new();
    let others = [
        signer.certificate(&["node-b", "10.0.0.7"], "system:node:node-b"),
        signer.certificate(&["*.node-a", "node-a.example.com"], "node-a"),
        signer.certificate(&["node-b"], "system:node:node-a.example.com"),
    ];
    for tls in others {
        let failed = requested(settings(&signer, Compat::Better), tls).await.unwrap_err();
        assert!(matches!(failed, ScrapeErrorCause::CertificateWithoutAddress { .. }), "{failed:?}");
    }
    let tls = signer.certificate(&["node-b", "10.0.0.7"], "system:node:node-b");
    let failed = requested(settings(&signer, Compat::Better), tls).await.unwrap_err();
    assert_eq!(failed.message(), "certificate has no address 127.0.0.1, only node-b, 10.0.0.7");
}

#[tokio::test]
async fn node_name_does_not_replace_a_trusted_signature() {
    let (signer, other) = (Signer::new(), Signer::new());
    let tls = other.certificate(&["node-a", "127.0.0.1"], "system:node:node-a");
    for compat in [Compat::Strict, Compat::Better] {
        assert_eq!(
            requested(settings(&signer, compat), Arc::clone(&tls)).await,
            Err(ScrapeErrorCause::UnknownAuthority)
        );
    }
    let any_certificate =
        TrustSettings { authority: TrustedAuthority::Any, ..settings(&signer, Compat::Better) };
    assert_eq!(requested(any_certificate, tls).await, Ok(()));
}

#[tokio::test]
async fn expired_and_future_certificates_are_rejected() {
    let signer = Signer::new();
    let old = signer.certificate_of(&["127.0.0.1"], "a", (2019, 2021));
    assert_eq!(
        requested(settings(&signer, Compat::Better), old).await,
        Err(ScrapeErrorCause::CertificateExpired)
    );
    let new = signer.certificate_of(&["127.0.0.1"], "a", (2090, 2091));
    assert_eq!(
        requested(settings(&signer, Compat::Better), new).await,
        Err(ScrapeErrorCause::CertificateNotYetValid)
    );
}

#[tokio::test]
async fn plain_text_server_is_classified() {
    let fake = Fake::start(0, None, Arc::default(), |_| FakeAction::Silence).await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(fake);
    let plain = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        tokio::io::AsyncWriteExt::write_all(&mut stream, b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
        std::future::pending::<()>().await;
    });
    let signer = Signer::new();
    let trust = KubeletTrust::new(settings(&signer, Compat::Better)).unwrap();
    let client = KubeletClient::new(client::KubeletClientSettings::default(), trust, crate::Clock::system());
    let target = KubeletAddress { host: "127.0.0.1".into(), port, path: "/".into(), plain: false };
    let failed = client.get("a", &target, &mut KubeletConnection::default()).await.unwrap_err();
    assert_eq!(failed.cause, ScrapeErrorCause::Other("the server does not speak TLS".into()));
    plain.abort();
}

#[tokio::test(start_paused = true)]
async fn replaced_ca_is_used_for_the_next_connection() {
    let (old, new) = (Signer::new(), Signer::new());
    let file = std::env::temp_dir().join(format!("plimsoll-authority-{}.pem", std::process::id()));
    std::fs::write(&file, &old.pem).unwrap();
    let authority = TrustedAuthority::Ca(Pem::File(file.clone()));
    let trust = KubeletTrust::new(TrustSettings { authority, ..settings(&old, Compat::Better) }).unwrap();
    let (config, first) = trust.tls_config("a");
    assert_eq!(trust.generation(), first);
    // An unusable file keeps the previous material.
    for bad in [Some("nothing"), None] {
        match bad {
            Some(text) => std::fs::write(&file, text).unwrap(),
            None => std::fs::remove_file(&file).unwrap(),
        }
        tokio::time::advance(FILE_CHECK_INTERVAL).await;
        assert_eq!(trust.generation(), first);
    }
    std::fs::write(&file, &new.pem).unwrap();
    assert_eq!(trust.generation(), first, "it is not read for each request");
    tokio::time::advance(FILE_CHECK_INTERVAL).await;
    assert_ne!(trust.generation(), first);
    assert!(!Arc::ptr_eq(&config, &trust.tls_config("a").0));
    std::fs::remove_file(&file).unwrap();
}

#[tokio::test]
async fn invalid_material_fails_at_startup() {
    let signer = Signer::new();
    let wrong = |settings: TrustSettings| KubeletTrust::new(settings).unwrap_err().to_string();
    let good = settings(&signer, Compat::Better);
    let given = |text: &str| Pem::Inline(text.as_bytes().to_vec());
    let nobody = TrustSettings { authority: TrustedAuthority::Ca(given("")), ..good.clone() };
    assert_eq!(
        wrong(nobody),
        "failed to use the authority of the kubelets ((given)): no certificate in PEM form"
    );
    let missing =
        TrustSettings { authority: TrustedAuthority::Ca(Pem::File("/no/such.pem".into())), ..good.clone() };
    assert!(wrong(missing).starts_with("failed to read /no/such.pem: "));
    let key = TrustSettings { certificate: Some((given(&signer.pem), given("secret"))), ..good.clone() };
    assert_eq!(
        wrong(key),
        "failed to use the certificate for kubelets with its key: no private key in PEM form"
    );
    let token = TrustSettings { token: Some(BearerToken::Inline(Secret::new(" \n"))), ..good };
    assert_eq!(
        wrong(token),
        "failed to use the token for kubelets: it is empty, or has characters that no token has"
    );
}
