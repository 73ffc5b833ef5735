//! Which addresses a tenant may have us connect to; a pure decision, taken on the resolved address.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

/// Addresses of metadata services of clouds that are not link-local.
const METADATA_V4: [Ipv4Addr; 2] = [Ipv4Addr::new(100, 100, 100, 200), Ipv4Addr::new(168, 63, 129, 16)];
const METADATA_V6: Ipv6Addr = Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254);
/// The range in which AWS serves metadata (`fd00:ec2::254`) and credentials of pods (`fd00:ec2::23`).
const METADATA_RANGE_V6: Cidr =
    Cidr { address: IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0)), prefix: 32 };

/// Why an address is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressClass {
    /// `127.0.0.0/8`, `::1`.
    Loopback,
    /// `0.0.0.0/8`, `::`, which most systems treat as loopback.
    Unspecified,
    /// `169.254.0.0/16`, `fe80::/10`: also where clouds serve credentials.
    LinkLocal,
    /// A metadata service of a cloud.
    Metadata,
    /// Multicast and broadcast.
    Multicast,
    /// Address and port of the Kubernetes API server.
    ApiServer,
}

impl fmt::Display for AddressClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Loopback => "loopback",
            Self::Unspecified => "unspecified",
            Self::LinkLocal => "link-local",
            Self::Metadata => "cloud metadata",
            Self::Multicast => "multicast",
            Self::ApiServer => "the Kubernetes API server",
        })
    }
}

/// A range of addresses, such as `10.0.0.0/8`; a single address is a range of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cidr {
    address: IpAddr,
    prefix: u8,
}

/// The text is no range of addresses.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no CIDR: write for example 127.0.0.0/8 or fd00::/8")]
pub struct InvalidCidr(String);

impl Cidr {
    /// `127.0.0.0/8` and `::1/128`.
    pub const LOOPBACK: [Self; 2] = [
        Self { address: IpAddr::V4(Ipv4Addr::new(127, 0, 0, 0)), prefix: 8 },
        Self { address: IpAddr::V6(Ipv6Addr::LOCALHOST), prefix: 128 },
    ];

    pub(crate) fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.prefix)).unwrap_or(0);
                own.to_bits() & mask == other.to_bits() & mask
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(self.prefix)).unwrap_or(0);
                own.to_bits() & mask == other.to_bits() & mask
            }
            _ => false,
        }
    }
}

impl FromStr for Cidr {
    type Err = InvalidCidr;

    fn from_str(text: &str) -> Result<Self, InvalidCidr> {
        let text = text.trim();
        let bad = || InvalidCidr(text.to_owned());
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| bad())?;
        let longest = if address.is_ipv4() { 32 } else { 128 };
        let prefix = match prefix {
            None => longest,
            // `parse` accepts a sign.
            Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                digits.parse().ok().filter(|prefix| *prefix <= longest).ok_or_else(bad)?
            }
            Some(_) => return Err(bad()),
        };
        Ok(Self { address, prefix })
    }
}

/// Which addresses may be connected to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutboundPolicy {
    unrestricted: bool,
    allowed: Vec<Cidr>,
}

impl OutboundPolicy {
    /// Every address: for addresses that an administrator has written.
    pub fn unrestricted() -> Self {
        Self { unrestricted: true, allowed: Vec::new() }
    }

    /// The default, and these ranges.
    pub fn allowing(allowed: impl IntoIterator<Item = Cidr>) -> Self {
        Self { unrestricted: false, allowed: allowed.into_iter().collect() }
    }

    /// Decides on a resolved address.
    ///
    /// # Errors
    /// The class of an address that is refused.
    pub fn check(&self, address: SocketAddr, api_servers: &[SocketAddr]) -> Result<(), AddressClass> {
        let ip = address.ip().to_canonical();
        if self.unrestricted || self.allowed.iter().any(|range| range.contains(ip)) {
            return Ok(());
        }
        let reached = match ip {
            IpAddr::V6(ip) => embedded_v4(ip).map_or(IpAddr::V6(ip), IpAddr::V4),
            ip @ IpAddr::V4(_) => ip,
        };
        let is_api_server = |server: &SocketAddr| {
            server.port() == address.port() && [ip, reached].contains(&server.ip().to_canonical())
        };
        match class(ip) {
            Some(class) => Err(class),
            None if api_servers.iter().any(is_api_server) => Err(AddressClass::ApiServer),
            None => Ok(()),
        }
    }
}

/// The class of an address that is refused by default.
fn class(ip: IpAddr) -> Option<AddressClass> {
    match ip.to_canonical() {
        IpAddr::V4(ip) => class_v4(ip),
        IpAddr::V6(ip) => class_v6(ip),
    }
}

fn class_v4(ip: Ipv4Addr) -> Option<AddressClass> {
    if ip.octets().first() == Some(&0) {
        Some(AddressClass::Unspecified)
    } else if ip.is_loopback() {
        Some(AddressClass::Loopback)
    } else if ip.is_link_local() {
        Some(AddressClass::LinkLocal)
    } else if METADATA_V4.contains(&ip) {
        Some(AddressClass::Metadata)
    } else if ip.is_multicast() || ip.is_broadcast() {
        Some(AddressClass::Multicast)
    } else {
        None
    }
}

fn class_v6(ip: Ipv6Addr) -> Option<AddressClass> {
    if ip.is_unspecified() {
        Some(AddressClass::Unspecified)
    } else if ip.is_loopback() {
        Some(AddressClass::Loopback)
    } else if ip.is_unicast_link_local() {
        Some(AddressClass::LinkLocal)
    } else if ip == METADATA_V6 || METADATA_RANGE_V6.contains(ip.into()) {
        Some(AddressClass::Metadata)
    } else if ip.is_multicast() {
        Some(AddressClass::Multicast)
    } else {
        embedded_v4(ip).and_then(class_v4)
    }
}

/// The IPv4 address that a translator or tunnel would connect to: NAT64 (`64:ff9b::/96`, and `64:ff9b:1::/48` within a network),
/// 6to4 (`2002::/16`), and the deprecated IPv4-compatible form (`::/96`).
fn embedded_v4(ip: Ipv6Addr) -> Option<Ipv4Addr> {
    let low = |high: u16, low: u16| Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low));
    match ip.segments() {
        [0x64, 0xff9b, 0, 0, 0, 0, a, b]
        | [0x64, 0xff9b, 1, _, _, _, a, b]
        | [0, 0, 0, 0, 0, 0, a, b]
        | [0x2002, a, b, ..] => Some(low(a, b)),
        _ => None,
    }
}
