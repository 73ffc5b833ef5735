//! Real servers that scalers ask, on loopback: each ends when it is dropped, and can be stopped and started again.

mod external;
mod http_api;
mod postgresql;
mod rabbitmq;
mod redis;
mod vault;

use std::time::Duration;

use crate::error::Error;
use crate::pki::Identity;
use crate::program::Room;

pub use external::GoScaler;
pub use http_api::{AuthScheme, HttpApi};
pub use postgresql::Postgresql;
pub use rabbitmq::Rabbitmq;
pub use redis::{Redis, RedisCluster, RedisSetup};
pub use vault::Vault;

/// How long a server may take to be ready.
const DEADLINE: Duration = Duration::from_mins(1);

/// Writes certificate and key where a server finds them.
fn write_identity(room: &Room, identity: &Identity) -> Result<(), Error> {
    room.write("server.crt", &identity.certificate)?;
    room.write("server.key", &identity.key).map(|_| ())
}
