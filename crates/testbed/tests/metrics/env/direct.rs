//! One request straight to a server on this machine.

use testbed::direct::Answer;
pub(crate) use testbed::direct::Caller;
use testbed::direct::Direct;

/// What a server on this machine answers; none if there is none.
pub(crate) async fn direct(port: u16, caller: &Caller, path: &str) -> Option<Answer> {
    Direct::new(port, caller).unwrap().get(path).await.ok()
}
