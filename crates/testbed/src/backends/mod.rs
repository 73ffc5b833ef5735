//! Real servers that scalers query, on loopback (Redis also on an address for pods). Each ends when it is dropped, and can be stopped and started again.

mod external;
mod http_api;
mod postgresql;
mod rabbitmq;
mod redis;
mod vault;

use std::time::Duration;

use crate::error::Error;
use crate::pki::Identity;
use crate::program::TempFolder;

pub use external::GoScaler;
pub use http_api::{AuthScheme, HttpApi};
pub use postgresql::Postgresql;
pub use rabbitmq::Rabbitmq;
pub use redis::{Redis, RedisCluster, RedisSetup};
pub use vault::Vault;

/// How long a server may take to become ready.
const DEADLINE: Duration = Duration::from_mins(1);

/// Writes a certificate and its key to the folder of a server.
fn write_identity(temp_folder: &TempFolder, identity: &Identity) -> Result<(), Error> {
    temp_folder.write("server.crt", &identity.certificate)?;
    temp_folder.write("server.key", &identity.key).map(|_| ())
}
