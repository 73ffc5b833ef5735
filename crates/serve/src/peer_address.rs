//! Addresses of clients.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

/// The address of a client, for limits per client: one IPv4 address, or an IPv6 network of 64 bits, which one machine
/// usually has for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PeerAddress(IpAddr);

impl From<IpAddr> for PeerAddress {
    fn from(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V6(address) => {
                let network = u128::from(address) & (u128::MAX << 64);
                // Loopback is this machine, whatever its network.
                if address.is_loopback() { address.into() } else { Ipv6Addr::from(network).into() }
            }
            address @ IpAddr::V4(_) => address,
        })
    }
}

impl fmt::Display for PeerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_is_an_address_or_a_network() {
        let peer = |text: &str| PeerAddress::from(text.parse::<IpAddr>().unwrap());
        assert_eq!(peer("::ffff:10.0.0.1"), peer("10.0.0.1"));
        assert_ne!(peer("10.0.0.1"), peer("10.0.0.2"));
        assert_eq!(peer("2001:db8::1"), peer("2001:db8::ffff"));
        assert_ne!(peer("2001:db8:0:1::1"), peer("2001:db8::1"));
        assert_ne!(peer("::1"), peer("::2"));
    }
}
