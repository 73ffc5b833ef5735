//! Where a node's kubelet is asked.

use std::fmt;
use std::net::Ipv6Addr;

use crate::inventory::Node;

/// The path that kubelets answer, unless the node names another one.
pub const PATH: &str = "/metrics/resource";

/// How the place of a kubelet is chosen: the same for all nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Types of addresses, best first. The first type that a node has wins, even if a later one were reachable.
    pub types: Vec<String>,
    /// Port, unless the node's own is used.
    pub port: u16,
    /// Whether the port that the node's status tells is used, if it tells one.
    pub status_port: bool,
    /// Without TLS, and without showing who we are (`--deprecated-kubelet-completely-insecure`).
    pub plain: bool,
}

impl Default for Rules {
    fn default() -> Self {
        let types = ["Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP"];
        Self { types: types.map(str::to_owned).to_vec(), port: 10250, status_port: false, plain: false }
    }
}

/// Where one kubelet is asked. Its text is the URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Name or address, without brackets.
    pub host: Box<str>,
    /// Port.
    pub port: u16,
    /// Path, ready to be sent.
    pub path: Box<str>,
    /// Without TLS.
    pub plain: bool,
}

/// A node has none of the addresses that are looked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no address matched types [{}]", types.join(" "))]
pub struct NoAddress {
    /// The types that were looked for.
    pub types: Vec<String>,
}

/// Where the kubelet of `node` is asked.
pub fn place(node: &Node, rules: &Rules) -> Result<Place, NoAddress> {
    let of_type = |wanted: &String| node.addresses.iter().find(|(kind, _)| **kind == **wanted);
    let (_, host) =
        rules.types.iter().find_map(of_type).ok_or_else(|| NoAddress { types: rules.types.clone() })?;
    let port = if rules.status_port && node.port != 0 { node.port } else { rules.port };
    let path = if node.path.is_empty() { PATH } else { &node.path };
    Ok(Place { host: (&**host).into(), port, path: escaped(path).into(), plain: rules.plain })
}

impl Place {
    /// Host and port, with brackets where they are needed.
    pub fn authority(&self) -> String {
        if self.host.parse::<Ipv6Addr>().is_ok() {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.plain { "http" } else { "https" };
        write!(f, "{scheme}://{}{}", self.authority(), self.path)
    }
}

/// A path as it goes over the wire: it begins with a slash, and what is no path (`?`, spaces, `%`) is escaped. The
/// annotation of a node is a path, not a URL.
fn escaped(path: &str) -> String {
    let mut out = String::with_capacity(path.len() + 1);
    if !path.starts_with('/') {
        out.push('/');
    }
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~$&+,/:;=@".contains(&byte) {
            out.push(byte as char);
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn node(addresses: &[(&str, &str)]) -> Node {
        Node {
            name: "a".into(),
            addresses: addresses.iter().map(|(kind, address)| ((*kind).into(), (*address).into())).collect(),
            port: 4194,
            ..Node::default()
        }
    }

    fn rules(types: &[&str]) -> Rules {
        Rules { types: types.iter().map(|&kind| kind.to_owned()).collect(), ..Rules::default() }
    }

    fn url(node: &Node, rules: &Rules) -> String {
        place(node, rules).unwrap().to_string()
    }

    const BOTH: &[(&str, &str)] = &[
        ("InternalIP", "10.0.0.1"),
        ("InternalIP", "fd00::1"),
        ("Hostname", "node-a"),
        ("ExternalIP", "203.0.113.7"),
    ];

    #[test]
    fn the_first_type_wins_and_in_it_the_first_address() {
        let node = node(BOTH);
        assert_eq!(url(&node, &Rules::default()), "https://node-a:10250/metrics/resource");
        let manifest = rules(&["InternalIP", "ExternalIP", "Hostname"]);
        assert_eq!(url(&node, &manifest), "https://10.0.0.1:10250/metrics/resource");
        assert_eq!(
            url(&node, &rules(&["InternalDNS", "ExternalIP"])),
            "https://203.0.113.7:10250/metrics/resource"
        );
    }

    #[test]
    fn addresses_of_version_six_have_brackets() {
        let node = node(&[("InternalIP", "fd00::1")]);
        let place = place(&node, &Rules::default()).unwrap();
        assert_eq!(place.to_string(), "https://[fd00::1]:10250/metrics/resource");
        assert_eq!(&*place.host, "fd00::1");
    }

    #[test]
    fn the_port_of_the_status_counts_when_it_is_asked_for_and_told() {
        let mut node = node(BOTH);
        let rules = Rules { status_port: true, ..Rules::default() };
        assert_eq!(place(&node, &rules).unwrap().port, 4194);
        node.port = 0;
        assert_eq!(place(&node, &rules).unwrap().port, 10250);
    }

    #[test]
    fn the_annotation_changes_the_path_alone() {
        let mut node = node(BOTH);
        node.path = "stats/a b?c=%d".into();
        assert_eq!(url(&node, &Rules::default()), "https://node-a:10250/stats/a%20b%3Fc=%25d");
    }

    #[test]
    fn without_tls_only_when_completely_insecure() {
        let rules = Rules { plain: true, ..Rules::default() };
        assert_eq!(url(&node(BOTH), &rules), "http://node-a:10250/metrics/resource");
    }

    #[test]
    fn a_node_without_such_an_address_says_so() {
        let failed = place(&node(&[("Hostname", "a")]), &rules(&["InternalIP", "ExternalIP"])).unwrap_err();
        assert_eq!(failed.to_string(), "no address matched types [InternalIP ExternalIP]");
    }
}
