//! The scalers `external` and `external-push` against an external scaler in Go with the published protocol.

use std::sync::Arc;
use std::time::{Duration, Instant};

use testbed::backends::GoScaler;
use tokio::sync::mpsc;

use super::{WAIT_TIMEOUT, assert_error_contains, certificates, read, scaler, spec, until};

#[tokio::test]
async fn go_scaler_is_queried() {
    let mut server = GoScaler::start(None).await.unwrap();
    let address = server.address();
    // The external scaler returns its default values.
    let plain = scaler("external", &[("scalerAddress", &address)], &[]);
    assert_eq!(spec(&plain).await, ("s0-test".to_owned(), "100".to_owned()));
    assert_eq!(read(&plain).await, Ok(("100".into(), true)));
    for address in [format!("dns:///{address}"), format!("passthrough:///{address}")] {
        let reported = [("scalerAddress", &*address), ("value", "0.25"), ("target", "2.5"), ("active", "no")];
        let reported = scaler("external", &reported, &[]);
        assert_eq!(spec(&reported).await, ("s0-test".to_owned(), "2.500".to_owned()));
        assert_eq!(read(&reported).await, Ok(("250m".into(), false)));
    }
    let wrong = scaler("external", &[("scalerAddress", &address), ("value", "many")], &[]);
    assert_error_contains(
        &read(&wrong).await.unwrap_err(),
        &["value is no number: many", "InvalidArgument", &address],
    );

    server.stop();
    for _ in 0..3 {
        assert!(read(&plain).await.is_err());
    }
    server.resume().await.unwrap();
    until(&plain, "100", true).await;
}

#[tokio::test]
async fn go_scaler_is_queried_over_tls() {
    let (authority, identity) = certificates();
    let server = GoScaler::start(Some(&identity)).await.unwrap();
    let address = server.address();
    let scaler_with = |more: super::ParameterPairs<'_>, auth: super::ParameterPairs<'_>| {
        scaler("external", &[&[("scalerAddress", &*address)], more].concat(), auth)
    };
    assert_eq!(
        read(&scaler_with(&[], &[("caCert", authority.certificate())])).await,
        Ok(("100".into(), true))
    );
    let unsafe_ssl = [("enableTLS", "true"), ("unsafeSsl", "true")];
    assert_eq!(read(&scaler_with(&unsafe_ssl, &[])).await, Ok(("100".into(), true)));
    assert_error_contains(
        &read(&scaler_with(&[("enableTLS", "true")], &[])).await.unwrap_err(),
        &["unknown authority"],
    );
    assert!(read(&scaler_with(&[], &[])).await.is_err());
}

#[tokio::test]
async fn go_scaler_pushes_activity_and_streams_reconnect() {
    let mut server = GoScaler::start(None).await.unwrap();
    let address = server.address();
    let scaler = scaler("external-push", &[("scalerAddress", &address)], &[]);
    let (tell, mut reported) = mpsc::channel(4);
    let listening = tokio::spawn(Arc::clone(&scaler).push(tell).unwrap());
    let reported_within = async |reported: &mut mpsc::Receiver<bool>, server: &GoScaler| {
        let begun = Instant::now();
        while server.push_active("ns/so").await.unwrap_or_default() == 0 {
            assert!(begun.elapsed() < WAIT_TIMEOUT);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_eq!(tokio::time::timeout(Duration::from_secs(5), reported.recv()).await, Ok(Some(true)));
    };
    reported_within(&mut reported, &server).await;
    // The stream ends when the external scaler ends it, and when the server is killed; it is opened again.
    assert_eq!(server.end_streams("ns/so").await.unwrap(), 1);
    reported_within(&mut reported, &server).await;
    server.stop();
    server.resume().await.unwrap();
    reported_within(&mut reported, &server).await;
    listening.abort();
}
