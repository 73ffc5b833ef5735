//! No scaler type connects to an address that is refused, whichever protocol it speaks.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::net::TcpListener;

use super::samples::{Protocol, samples};
use crate::dial::Dialer;
use crate::test_support::{FakeCluster, backends_with, read_first};

/// A server that counts connections.
async fn listen() -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    tokio::spawn(async move {
        while listener.accept().await.is_ok() {
            counted.fetch_add(1, Ordering::SeqCst);
        }
    });
    (port, count)
}

#[tokio::test]
async fn refused_addresses_are_not_connected_to() {
    let (port, connections) = listen().await;
    let mut count = 0;
    for (protocol, trigger) in samples(port) {
        if matches!(protocol, Protocol::Offline | Protocol::Fixed) {
            continue;
        }
        let name = &trigger.type_;
        let backends = backends_with(FakeCluster::default(), Dialer::default());
        let scaler =
            crate::table::build(&trigger, &backends).unwrap_or_else(|error| panic!("{name}: {error}"));
        let error = read_first(&*scaler).await.err().unwrap_or_else(|| panic!("{name} read a value"));
        assert!(error.message.contains("--allow-source-cidr"), "{name}: {error}");
        count += 1;
    }
    assert!(count > 30, "{count} samples");
    assert_eq!(connections.load(Ordering::SeqCst), 0);
}
