//! Users that a front proxy names in headers.

use http::HeaderMap;
use http::header::{AUTHORIZATION, HeaderName};

use super::authorities::Authorities;
use super::user::User;
use crate::query::decode_or_keep;

/// A front proxy: its CA, its allowed names, and its headers.
#[derive(Clone, Debug)]
pub(crate) struct FrontProxy {
    /// CAs of its client certificate.
    pub(super) authorities: Authorities,
    /// The common names its certificate may have; empty: any.
    pub(super) names: Vec<String>,
    /// Headers with the name of the user.
    pub(super) user: Vec<String>,
    /// Headers with the user's UID.
    pub(super) uid: Vec<String>,
    /// Headers with the user's groups.
    pub(super) group: Vec<String>,
    /// Name prefixes of headers with extra fields.
    pub(super) extra: Vec<String>,
}

impl FrontProxy {
    /// Whether its certificate may have this common name.
    pub(super) fn admits(&self, name: &str) -> bool {
        self.names.is_empty() || self.names.iter().any(|allowed| allowed == name)
    }
}

/// The user named in the headers of a trusted proxy; none if there is no name.
pub(super) fn user(proxy: &FrontProxy, headers: &HeaderMap) -> Option<User> {
    let first = |names: &[String]| values(headers, names).find(|value| !value.is_empty());
    let mut user = User { name: first(&proxy.user)?, ..User::default() };
    user.uid = first(&proxy.uid).unwrap_or_default();
    user.groups = values(headers, &proxy.group).collect();
    for name in headers.keys() {
        let key = proxy.extra.iter().find_map(|prefix| name.as_str().strip_prefix(&prefix.to_lowercase()));
        if let Some(key) = key {
            let own = headers.get_all(name).iter().map(text);
            user.extra.entry(decode_or_keep(key)).or_default().extend(own);
        }
    }
    Some(user)
}

fn values<'a>(headers: &'a HeaderMap, names: &'a [String]) -> impl Iterator<Item = String> + 'a {
    names.iter().flat_map(|name| headers.get_all(name.as_str())).map(text)
}

fn text(value: &http::HeaderValue) -> String {
    String::from_utf8_lossy(value.as_bytes()).into_owned()
}

/// Removes the headers that name the user.
pub(super) fn strip(proxy: Option<&FrontProxy>, headers: &mut HeaderMap) {
    let named = |name: &str| {
        proxy.is_some_and(|proxy| {
            let whole = [&proxy.user, &proxy.uid, &proxy.group].into_iter().flatten();
            whole.into_iter().any(|own| own.eq_ignore_ascii_case(name))
                || proxy.extra.iter().any(|prefix| name.starts_with(&prefix.to_lowercase()))
        })
    };
    let listed = |name: &&HeaderName| {
        **name == AUTHORIZATION || name.as_str().starts_with("x-remote-") || named(name.as_str())
    };
    let listed: Vec<HeaderName> = headers.keys().filter(listed).cloned().collect();
    for name in listed {
        headers.remove(name);
    }
}
