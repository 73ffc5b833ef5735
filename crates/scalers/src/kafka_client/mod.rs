//! A client that reads the lag of consumer groups, without a Kafka library: seven requests are all it needs.
//!
//! ```text
//! wire       primitive types of the protocol
//! messages   requests and responses
//! broker     a connection to one broker: TLS, SASL
//! task       the requests to one broker in a round
//! cluster    one connection per broker, and rounds that read the offsets of all consumer groups in few requests
//! round      the requests of one round, by broker
//! sample     the offsets of one consumer group
//! lag        the lag of a sample by the policies of a trigger
//! tail       waits for new records, so that they wake
//! login      SASL logins with tokens; `msk` those of Amazon MSK
//! ```

mod broker;
mod cluster;
mod lag;
mod login;
mod messages;
mod msk;
mod round;
mod sample;
mod tail;
mod task;
#[cfg(test)]
mod tests;
mod wire;

pub(crate) use cluster::{GroupInterest, KafkaClusters};
pub(crate) use lag::{LagPolicy, PreviousOffsets};
pub(crate) use login::{OAuthToken, TokenLogin};
pub(crate) use msk::MskLogin;
pub(crate) use tail::NewRecords;

use sources::http::Secret;

use crate::dial::Dialer;
use crate::scram::ScramHash;
use crate::tls::TlsSettings;

/// A cluster, credentials and TLS settings. Equal values share connections and rounds.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct KafkaServer {
    /// The namespace of the triggers: they choose topics and groups, and so how long a round takes and whether it fails.
    pub(crate) namespace: String,
    /// Brokers that get the first requests, as `host:port`.
    pub(crate) bootstrap: Vec<String>,
    /// TLS settings; none for plain text.
    pub(crate) tls: Option<TlsSettings>,
    /// Credentials; none without SASL.
    pub(crate) login: Option<SaslLogin>,
    /// Opens its connections, also those to brokers that others name.
    pub(crate) dialer: Dialer,
}

/// SASL mechanism and credentials.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) enum SaslLogin {
    /// User name and password in clear text.
    Plain {
        /// User.
        user: String,
        /// Password.
        password: Secret,
    },
    /// User name and password that are not sent.
    Scram {
        /// Hash function.
        hash: ScramHash,
        /// User.
        user: String,
        /// Password.
        password: Secret,
    },
    /// A token that is requested at each login.
    Token(TokenLogin),
}

impl SaslLogin {
    /// Whether a token of the operator is sent.
    pub(crate) fn is_of_operator(&self) -> bool {
        matches!(self, Self::Token(TokenLogin { is_of_operator: true, .. }))
    }
}

/// Host and port of an address; the port of Kafka without one. IPv6 addresses with a port are in brackets.
fn host_and_port(address: &str) -> Option<(String, u16)> {
    const DEFAULT_PORT: u16 = 9092;
    let address = address.trim();
    let (host, port) = match address.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') || host.ends_with(']') => (host, port.parse().ok()?),
        _ => (address, DEFAULT_PORT),
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    (!host.is_empty()).then(|| (host.to_owned(), port))
}

/// Decodes bytes of a broker as the response to every request, for fuzzing; returns whether they are valid for one.
pub(crate) fn is_response(bytes: &[u8]) -> bool {
    [false, true].into_iter().any(|is_flexible| {
        let body = || wire::ResponseReader::new(bytes, is_flexible);
        let valid = [
            messages::api_versions(body()).is_ok(),
            messages::metadata(body()).is_ok(),
            messages::coordinator(body(), "group").is_ok(),
            messages::coordinators(body()).is_ok(),
            messages::group_offsets(body(), "group").is_ok(),
            messages::groups_offsets(body()).is_ok(),
            messages::list_offsets(body()).is_ok(),
            messages::has_records(body()).is_ok(),
            messages::handshake(body()).is_ok(),
            messages::authenticated(body()).is_ok(),
        ];
        valid.contains(&true)
    })
}
