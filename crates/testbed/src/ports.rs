//! Free ports for programs that need a port to listen on.

use std::io::{Error as IoError, ErrorKind};
use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::error::{Attempt, Error};

/// The first port. All ports are below the ephemeral ports of the system, which an outgoing connection might take before the program listens.
const FIRST_PORT: u32 = 20_000;
const PORT_COUNT: u32 = 12_000;

/// A port on which no program listens, and which this process does not return again.
pub fn free() -> Result<u16, Error> {
    static NEXT_PORT: AtomicU32 = AtomicU32::new(0);
    // Processes that run at the same time start at different ports.
    let begin = std::process::id().wrapping_mul(101);
    let next = || begin.wrapping_add(NEXT_PORT.fetch_add(1, Ordering::Relaxed)) % PORT_COUNT + FIRST_PORT;
    let is_free = |port: &u16| TcpListener::bind((Ipv4Addr::UNSPECIFIED, *port)).is_ok();
    std::iter::repeat_with(next)
        .take(PORT_COUNT as usize)
        .filter_map(|port| u16::try_from(port).ok())
        .find(is_free)
        .ok_or_else(|| IoError::from(ErrorKind::AddrInUse))
        .attempt(|| "find a free port".into())
}

/// Several distinct ports.
pub(crate) fn several<const N: usize>() -> Result<[u16; N], Error> {
    let mut ports = [0; N];
    for port in &mut ports {
        *port = free()?;
    }
    Ok(ports)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_unique_and_outside_the_ephemeral_range() {
        let ports: [u16; 50] = several().unwrap();
        let mut different = ports.to_vec();
        different.sort_unstable();
        different.dedup();
        assert_eq!(different.len(), ports.len());
        let range = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
        let connections =
            range.split_whitespace().next().and_then(|first| first.parse().ok()).unwrap_or(32_768);
        assert!(ports.iter().all(|port| *port < connections), "{ports:?}");
    }

    #[test]
    fn ports_in_use_are_skipped() {
        let taken = free().unwrap() + 1;
        let _held = TcpListener::bind((Ipv4Addr::UNSPECIFIED, taken));
        assert!(!several::<50>().unwrap().contains(&taken));
    }
}
