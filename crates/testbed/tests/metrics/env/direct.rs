//! One request to a server on this machine without the API server.

pub(crate) use testbed::direct::Caller;
use testbed::direct::DirectClient;
use testbed::direct::DirectResponse;

/// The response of a server on this machine; none if there is none.
pub(crate) async fn direct(port: u16, caller: &Caller, path: &str) -> Option<DirectResponse> {
    DirectClient::new(port, caller).unwrap().get(path).await.ok()
}
