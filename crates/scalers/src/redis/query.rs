//! Requests and responses, without IO.

use crate::ParseError;
use crate::responses::excerpt;
use crate::urls::shown;

/// Default port.
const DEFAULT_PORT: u16 = 6379;
/// First major version that reports the lag of a group.
const FIRST_VERSION_WITH_LAG: u32 = 7;

/// What is counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RedisCount {
    /// The entries of a list, set, sorted set or hash.
    Entries {
        /// Its key.
        key: String,
    },
    /// The entries of a stream.
    Length {
        /// Its key.
        stream: String,
    },
    /// Pending entries: delivered to the group but not acknowledged.
    Pending {
        /// Its key.
        stream: String,
        /// The group.
        group: String,
    },
    /// Lag: entries not delivered to the group yet.
    Lag {
        /// Its key.
        stream: String,
        /// The group.
        group: String,
    },
}

/// The addresses, followed by those built from hosts and ports.
pub(super) fn addresses(
    addresses: &[String],
    hosts: &[String],
    ports: &[String],
) -> Result<Vec<String>, ParseError> {
    let mut all = addresses.to_vec();
    if !hosts.is_empty() && !ports.is_empty() {
        if hosts.len() != ports.len() {
            return Err(
                "not enough hosts or ports given. number of hosts should be equal to the number of ports"
                    .into(),
            );
        }
        all.extend(hosts.iter().zip(ports).map(|(host, port)| {
            if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
        }));
    }
    if all.first().is_none_or(String::is_empty) {
        return Err(
            "no addresses or hosts given. address should be a comma separated list of host:port or set the \
                    host/port values"
                .into(),
        );
    }
    Ok(all)
}

/// Host and port of an address.
pub(super) fn host_and_port(address: &str) -> Result<(String, u16), ParseError> {
    let bad = || ParseError::from(format!("{:?} is no address: write host:port", shown(address)));
    if address.contains("://") {
        return Err(bad());
    }
    let (host, port) = match address.strip_prefix('[') {
        Some(inside) => {
            let (host, port) = inside.split_once(']').ok_or_else(bad)?;
            (host, port.strip_prefix(':'))
        }
        None if address.matches(':').count() > 1 => (address, None),
        None => match address.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (address, None),
        },
    };
    if host.is_empty() || host.chars().any(char::is_whitespace) {
        return Err(bad());
    }
    match port {
        None => Ok((host.to_owned(), DEFAULT_PORT)),
        Some(port) => Ok((host.to_owned(), port.parse().map_err(|_| bad())?)),
    }
}

/// The command that counts the entries of a key of this type.
pub(super) fn counts(key: &str, kind: &str) -> Result<&'static str, ParseError> {
    match kind {
        // A list without entries does not exist.
        "list" | "none" => Ok("LLEN"),
        "set" => Ok("SCARD"),
        "zset" => Ok("ZCARD"),
        "hash" => Ok("HLEN"),
        "stream" => Err(format!("{key} is a stream: use the trigger redis-streams").into()),
        other => Err(format!("{key} is a {}, whose entries cannot be counted", excerpt(other)).into()),
    }
}

/// Fails if a server does not report lag, based on its response to `INFO server`.
pub(super) fn knows_lag(info: &str) -> Result<(), ParseError> {
    let version = info.lines().find_map(|line| line.trim().strip_prefix("redis_version:"));
    let major = version.and_then(|version| version.split('.').next()?.parse::<u32>().ok());
    match major {
        Some(major) if major >= FIRST_VERSION_WITH_LAG => Ok(()),
        Some(_) => Err(format!(
            "redis version 7+ required for lag, this one is {}",
            excerpt(version.unwrap_or_default())
        )
        .into()),
        None => Err("redis version 7+ required for lag, and this server does not say which it is".into()),
    }
}
