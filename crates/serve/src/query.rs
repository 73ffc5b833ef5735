//! The decoded path and query parameters of a request, with the semantics of Go's `net/url`.

use std::sync::OnceLock;

use api::selector::{Selector, SelectorParseError};
use api::url_escape::{path_unescaped, unescaped_bytes};
use http::Uri;

use crate::status::Status;

/// The decoded query parameters, in order.
#[derive(Clone, Debug, Default)]
pub struct Query {
    pairs: Vec<(String, String)>,
    /// Parsed once: authorization and the handler use it.
    labels: OnceLock<Result<Selector, SelectorParseError>>,
}

impl Query {
    /// Parses a query; like Go, it leaves out what cannot be decoded. Bytes that are not UTF-8 are replaced: without its value a
    /// selector would select everything, while no label, field or number contains the replacement character.
    pub fn parse(text: &str) -> Self {
        let pairs = text.split('&').filter(|pair| !pair.is_empty() && !pair.contains(';'));
        let decoded = pairs.filter_map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let decode =
                |text: &str| Some(String::from_utf8_lossy(&unescaped_bytes(text, true)?).into_owned());
            Some((decode(key)?, decode(value)?))
        });
        Self { pairs: decoded.collect(), labels: OnceLock::new() }
    }

    /// The `labelSelector`; everything if it is absent.
    pub fn labels(&self) -> Result<&Selector, &SelectorParseError> {
        let read = || Selector::parse(self.get("labelSelector").unwrap_or_default());
        self.labels.get_or_init(read).as_ref()
    }

    /// The first value of a parameter.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.pairs.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    /// All values of a parameter.
    pub fn all<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a str> {
        self.pairs.iter().filter(move |(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    /// Whether a boolean parameter is set: present, and not `0` or `false`.
    pub fn is_set(&self, key: &str) -> bool {
        self.get(key).is_some_and(|value| value != "0" && !value.eq_ignore_ascii_case("false"))
    }
}

/// The path and the query of a request.
pub(crate) fn read(uri: &Uri) -> Result<(String, Query), Status> {
    let bad = || Status::bad_request("the path of the request cannot be decoded");
    let path = path_unescaped(uri.path()).ok_or_else(bad)?;
    let path = if path.starts_with('/') { path } else { format!("/{path}") };
    Ok((path, Query::parse(uri.query().unwrap_or_default())))
}

/// Decodes percent-encoding, or returns the text unchanged if it is malformed.
pub(crate) fn decode_or_keep(text: &str) -> String {
    path_unescaped(text).unwrap_or_else(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_decoded() {
        let query = Query::parse("a=1&b=x%3Dy+z&a=2&c&&d=%zz&watch=true");
        assert_eq!((query.get("a"), query.get("b"), query.get("c")), (Some("1"), Some("x=y z"), Some("")));
        assert_eq!(query.all("a").collect::<Vec<_>>(), ["1", "2"]);
        assert_eq!(query.get("d"), None);
        assert!(query.is_set("watch") && query.is_set("c") && !query.is_set("e"));
        assert!(!Query::parse("watch=False").is_set("watch") && !Query::parse("watch=0").is_set("watch"));
        assert!(Query::parse("watch=f").is_set("watch"));
    }

    #[test]
    fn a_selector_that_is_not_utf8_is_refused() {
        let query = Query::parse("labelSelector=app%3D%ff&watch=%ff");
        assert_eq!(query.get("labelSelector"), Some("app=\u{fffd}"));
        assert!(query.labels().is_err() && query.is_set("watch"));
    }

    #[test]
    fn a_path_is_decoded_once_and_as_a_whole() {
        let path = |text: &str| read(&text.parse().unwrap()).map(|(path, _)| path);
        assert_eq!(path("/apis/g%2Fv/%2561?x=1").unwrap(), "/apis/g/v/%61");
        assert_eq!(path("/a+b").unwrap(), "/a+b");
        assert!(path("/%ff").is_err() && path("/%4").is_err() && path("/%zz").is_err());
        assert_eq!(path("*").unwrap(), "/*");
    }
}
