//! Real servers that scalers ask, on loopback: each ends when it is dropped, and can be stopped and started again.

mod external;
mod http_api;
mod postgresql;
mod rabbitmq;
mod redis;
mod vault;

use std::net::{Ipv4Addr, TcpListener};
use std::time::Duration;

use crate::error::{Attempt as _, Error};
use crate::pki::Identity;
use crate::program::Room;

pub use external::GoScaler;
pub use http_api::{Door, HttpApi};
pub use postgresql::Postgresql;
pub use rabbitmq::Rabbitmq;
pub use redis::{Redis, RedisCluster, RedisSetup};
pub use vault::Vault;

/// How long a server may take to be ready.
const DEADLINE: Duration = Duration::from_mins(1);

/// Ports that are free at this moment, all different.
pub(crate) fn ports<const N: usize>() -> Result<[u16; N], Error> {
    let mut held = Vec::new();
    let mut ports = [0; N];
    for port in &mut ports {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).attempt(|| "find a free port".into())?;
        *port = listener.local_addr().attempt(|| "find a free port".into())?.port();
        held.push(listener);
    }
    Ok(ports)
}

/// Writes certificate and key where a server finds them.
fn write_identity(room: &Room, identity: &Identity) -> Result<(), Error> {
    room.write("server.crt", &identity.certificate)?;
    room.write("server.key", &identity.key).map(|_| ())
}
