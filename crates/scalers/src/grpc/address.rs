//! Addresses and error messages of gRPC servers, without IO.

use api::text::truncated;

use crate::ParseError;
use crate::urls::shown;

/// Default port, as in gRPC.
const DEFAULT_PORT: u16 = 443;
/// Maximum length in characters of a server's error message.
const MAX_MESSAGE_CHARS: usize = 200;

/// Parses an address of gRPC: `host`, `host:port`, `dns:///host:port`. The result is `host:port`, with an IPv6 address in
/// brackets. Sockets of the file system are refused, because they are those of the operator and not of the tenant.
pub(crate) fn parse_address(address: &str) -> Result<String, ParseError> {
    if address.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Err("the address has spaces in it".into());
    }
    if let Some(scheme) = ["unix", "unix-abstract"].iter().find(|scheme| has_scheme(address, scheme)) {
        return Err(format!("{scheme}: addresses are not allowed: write host:port").into());
    }
    let host = match address.split_once("://") {
        // The authority names a DNS server, which is ignored: the system's resolver is used.
        Some(("dns" | "passthrough", rest)) => rest.split_once('/').map_or("", |(_, host)| host),
        Some((scheme @ ("http" | "https" | "grpc" | "grpcs"), rest)) => {
            let rest = shown(rest.split('/').next().unwrap_or_default());
            return Err(format!("{scheme}:// does not belong here: write {rest}").into());
        }
        Some((scheme, _)) => return Err(format!("{scheme}: is no scheme of gRPC that is known here").into()),
        None => {
            ["dns:", "passthrough:"].iter().find_map(|scheme| address.strip_prefix(scheme)).unwrap_or(address)
        }
    };
    with_port(host)
}

fn has_scheme(address: &str, scheme: &str) -> bool {
    address.split_once(':').is_some_and(|(given, _)| given.eq_ignore_ascii_case(scheme))
}

fn with_port(host: &str) -> Result<String, ParseError> {
    let bad = |reason: &str| Err(format!("{reason}: write host:port").into());
    let (name, port) = match host.strip_prefix('[') {
        Some(inside) => match inside.split_once(']') {
            Some((name, "")) => (format!("[{name}]"), None),
            Some((name, port)) if port.starts_with(':') => (format!("[{name}]"), port.get(1..)),
            _ => return bad("a bracket is not closed"),
        },
        // More than one colon: an IPv6 address without brackets.
        None if host.matches(':').count() > 1 => (format!("[{host}]"), None),
        None => match host.split_once(':') {
            Some((name, port)) => (name.to_owned(), Some(port)),
            None => (host.to_owned(), None),
        },
    };
    if name.is_empty() || name == "[]" {
        return bad("there is no host");
    }
    if !name.chars().all(|c| c.is_alphanumeric() || "-._[]:%".contains(c)) {
        return bad("that is no host");
    }
    match port.map(str::parse::<u16>) {
        None => Ok(format!("{name}:{DEFAULT_PORT}")),
        Some(Ok(port @ 1..)) => Ok(format!("{name}:{port}")),
        Some(_) => bad("that is no port"),
    }
}

/// A server's error message, shortened to fit into an event.
pub(super) fn shorten(text: &str) -> String {
    truncated(text, MAX_MESSAGE_CHARS).replace(char::is_control, " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_those_of_grpc() {
        let host = |address: &str| parse_address(address).unwrap();
        assert_eq!(host("mail.ns.svc:6000"), "mail.ns.svc:6000");
        assert_eq!(host("mail"), "mail:443");
        assert_eq!(host("dns:///mail:6000"), "mail:6000");
        assert_eq!(host("dns:mail:6000"), "mail:6000");
        assert_eq!(host("dns://9.9.9.9/mail:6000"), "mail:6000");
        assert_eq!(host("passthrough:///mail:1"), "mail:1");
        assert_eq!(host("[::1]:6000"), "[::1]:6000");
        assert_eq!(host("::1"), "[::1]:443");
        for socket in
            ["unix:///run/mail", "unix:/run/mail", "unix:mail", "UNIX:/run/mail", "unix-abstract:mail"]
        {
            let error = parse_address(socket).unwrap_err().to_string();
            assert!(error.ends_with(": addresses are not allowed: write host:port"), "{error}");
        }
        for bad in
            ["", " padded:1 ", "a b", "x,y;z=w", "{}[]<>|", "a:b", "a:0", "a:70000", "a/b", "xds:///a", ":1"]
        {
            assert!(parse_address(bad).is_err(), "{bad}");
        }
        assert_eq!(
            parse_address("http://mail:1/x").unwrap_err().to_string(),
            "http:// does not belong here: write mail:1"
        );
        assert_eq!(
            parse_address("http://u:p@mail:1").unwrap_err().to_string(),
            "http:// does not belong here: write mail:1"
        );
    }

    #[test]
    fn server_messages_are_shortened() {
        assert_eq!(shorten("a\nb"), "a b");
        assert_eq!(shorten(&"é".repeat(1000)).chars().count(), 201);
    }
}
