//! Address and path of the kubelet of a node.

use std::fmt;
use std::net::Ipv6Addr;

use crate::inventory::Node;

/// Path of the resource metrics unless the node annotation names another.
const DEFAULT_METRICS_PATH: &str = "/metrics/resource";

/// Rules to choose the address of a kubelet; the same for all nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressRules {
    /// Address types by preference. The first type that a node has is used, even if a later one would be reachable.
    pub types: Vec<String>,
    /// Port, unless the port of the node status is used.
    pub port: u16,
    /// Whether the port of the node status is used, if there is one.
    pub status_port: bool,
    /// Plain HTTP without credentials (`--deprecated-kubelet-completely-insecure`).
    pub plain: bool,
}

impl Default for AddressRules {
    fn default() -> Self {
        let types = ["Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP"];
        Self { types: types.map(str::to_owned).to_vec(), port: 10250, status_port: false, plain: false }
    }
}

/// Address of one kubelet; `Display` prints the URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KubeletAddress {
    /// Host name or IP address, without brackets.
    pub host: Box<str>,
    /// Port.
    pub port: u16,
    /// Escaped path.
    pub path: Box<str>,
    /// Whether plain HTTP is used.
    pub plain: bool,
}

/// The node has no address of the preferred types.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no address matched types [{}]", types.join(" "))]
pub struct NoAddress {
    /// The preferred types.
    pub types: Vec<String>,
}

/// Chooses the address of the kubelet of `node`.
pub fn kubelet_address(node: &Node, rules: &AddressRules) -> Result<KubeletAddress, NoAddress> {
    let of_type = |wanted: &String| node.addresses.iter().find(|(kind, _)| **kind == **wanted);
    let (_, host) =
        rules.types.iter().find_map(of_type).ok_or_else(|| NoAddress { types: rules.types.clone() })?;
    let port = if rules.status_port && node.port != 0 { node.port } else { rules.port };
    let path = if node.path.is_empty() { DEFAULT_METRICS_PATH } else { &node.path };
    Ok(KubeletAddress { host: (&**host).into(), port, path: escaped(path).into(), plain: rules.plain })
}

impl KubeletAddress {
    /// Host and port; IPv6 addresses in brackets.
    pub fn authority(&self) -> String {
        if self.host.parse::<Ipv6Addr>().is_ok() {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

impl fmt::Display for KubeletAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.plain { "http" } else { "https" };
        write!(f, "{scheme}://{}{}", self.authority(), self.path)
    }
}

/// Escapes a path for the request line: it starts with a slash, and characters such as `?`, space and `%` are
/// percent-encoded, because the node annotation is a path and not a URL.
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
    use super::*;

    fn node(addresses: &[(&str, &str)]) -> Node {
        Node {
            name: "a".into(),
            addresses: addresses.iter().map(|(kind, address)| ((*kind).into(), (*address).into())).collect(),
            port: 4194,
            ..Node::default()
        }
    }

    fn rules(types: &[&str]) -> AddressRules {
        AddressRules { types: types.iter().map(|&kind| kind.to_owned()).collect(), ..AddressRules::default() }
    }

    fn url(node: &Node, rules: &AddressRules) -> String {
        kubelet_address(node, rules).unwrap().to_string()
    }

    const BOTH: &[(&str, &str)] = &[
        ("InternalIP", "10.0.0.1"),
        ("InternalIP", "fd00::1"),
        ("Hostname", "node-a"),
        ("ExternalIP", "203.0.113.7"),
    ];

    #[test]
    fn first_address_of_first_type_is_used() {
        let node = node(BOTH);
        assert_eq!(url(&node, &AddressRules::default()), "https://node-a:10250/metrics/resource");
        let manifest = rules(&["InternalIP", "ExternalIP", "Hostname"]);
        assert_eq!(url(&node, &manifest), "https://10.0.0.1:10250/metrics/resource");
        assert_eq!(
            url(&node, &rules(&["InternalDNS", "ExternalIP"])),
            "https://203.0.113.7:10250/metrics/resource"
        );
    }

    #[test]
    fn ipv6_addresses_have_brackets() {
        let node = node(&[("InternalIP", "fd00::1")]);
        let kubelet_address = kubelet_address(&node, &AddressRules::default()).unwrap();
        assert_eq!(kubelet_address.to_string(), "https://[fd00::1]:10250/metrics/resource");
        assert_eq!(&*kubelet_address.host, "fd00::1");
    }

    #[test]
    fn status_port_is_used_if_enabled_and_present() {
        let mut node = node(BOTH);
        let rules = AddressRules { status_port: true, ..AddressRules::default() };
        assert_eq!(kubelet_address(&node, &rules).unwrap().port, 4194);
        node.port = 0;
        assert_eq!(kubelet_address(&node, &rules).unwrap().port, 10250);
    }

    #[test]
    fn annotation_changes_only_the_path() {
        let mut node = node(BOTH);
        node.path = "stats/a b?c=%d".into();
        assert_eq!(url(&node, &AddressRules::default()), "https://node-a:10250/stats/a%20b%3Fc=%25d");
    }

    #[test]
    fn plain_http_only_when_completely_insecure() {
        let rules = AddressRules { plain: true, ..AddressRules::default() };
        assert_eq!(url(&node(BOTH), &rules), "http://node-a:10250/metrics/resource");
    }

    #[test]
    fn node_without_matching_address_is_an_error() {
        let failed =
            kubelet_address(&node(&[("Hostname", "a")]), &rules(&["InternalIP", "ExternalIP"])).unwrap_err();
        assert_eq!(failed.to_string(), "no address matched types [InternalIP ExternalIP]");
    }
}
