//! URLs in triggers.

/// `host:port` of a URL without user and password; empty if there is none.
pub(crate) fn host(url: &str) -> &str {
    let authority = authority(url);
    authority.rsplit_once('@').map_or(authority, |(_, host)| host)
}

/// Whether a URL has a user before its host. Path and query may have an `@` of their own.
pub(crate) fn has_user(url: &str) -> bool {
    authority(url).contains('@')
}

/// `user:password@host:port` of a URL; empty if there is none.
fn authority(url: &str) -> &str {
    let rest = url.split_once("://").map_or("", |(_, rest)| rest);
    rest.split(['/', '?', '#']).next().unwrap_or_default()
}

/// A URL without user and password, for errors.
pub(crate) fn shown(url: &str) -> String {
    let end = url.find("://").map_or(0, |at| at + 3);
    let (scheme, rest) = url.split_at_checked(end).unwrap_or(("", url));
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if let Some((user, _)) = authority.rsplit_once('@') {
        return format!("{scheme}{}", rest.get(user.len() + 1..).unwrap_or_default());
    }
    // `user:pass/word@host`: the apparent port is the beginning of an unescaped password.
    match rest.rsplit_once('@') {
        Some((user, host)) if !is_place(authority) && user.contains(':') => format!("{scheme}{host}"),
        _ => url.to_owned(),
    }
}

/// Whether an authority is a host with an optional numeric port.
fn is_place(authority: &str) -> bool {
    let port = authority.rfind(':').filter(|at| authority.rfind(']').is_none_or(|end| end < *at));
    let port = port.and_then(|at| authority.get(at + 1..)).unwrap_or_default();
    port.bytes().all(|byte| byte.is_ascii_digit())
}

/// The part of a URL after the host.
pub(crate) fn path(url: &str) -> &str {
    let start = url.find("://").map_or(0, |at| at + 3);
    let rest = url.get(start..).unwrap_or_default();
    rest.find(['/', '?']).and_then(|at| rest.get(at..)).unwrap_or_default()
}

/// Whether Go's `url.ParseRequestURI` accepts a text: an absolute URL or an absolute path.
pub(crate) fn is_request_uri(text: &str) -> bool {
    if text.is_empty() || text.chars().any(char::is_control) {
        return false;
    }
    if text.starts_with('/') || text == "*" {
        return true;
    }
    let Some((scheme, rest)) = text.split_once(':') else { return false };
    let known = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
    // Only `url.Parse` accepts opaque URLs without a slash after the scheme.
    known && rest.starts_with('/') && rest_is_fine(rest)
}

/// Whether Go's `url.Parse` accepts a text, which may be relative.
pub(crate) fn is_url(text: &str) -> bool {
    if text.chars().any(char::is_control) {
        return false;
    }
    let text = text.split('#').next().unwrap_or_default();
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || "+-.".contains(c)));
    let begins = text.starts_with(|c: char| c.is_ascii_alphabetic());
    match end.and_then(|end| Some((end, text.get(end..)?))) {
        Some((0, rest)) if rest.starts_with(':') => false,
        Some((_, rest)) if begins && rest.starts_with(':') => {
            let rest = rest.trim_start_matches(':');
            // Opaque URLs, such as `host:port`, are not looked into.
            !rest.starts_with('/') || rest_is_fine(rest)
        }
        _ => !text.split(['/', '?']).next().unwrap_or_default().contains(':') && rest_is_fine(text),
    }
}

/// Whether the part after the scheme is valid: complete escapes, a valid host, a numeric port.
fn rest_is_fine(rest: &str) -> bool {
    let whole = rest.match_indices('%').all(|(at, _)| {
        rest.get(at + 1..at + 3).is_some_and(|hex| hex.bytes().all(|byte| byte.is_ascii_hexdigit()))
    });
    let Some(rest) = rest.strip_prefix("//") else { return whole };
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let port = match host.strip_prefix('[') {
        Some(inner) => inner.split_once(']').map(|(_, after)| after.strip_prefix(':').unwrap_or(after)),
        None => Some(host.rsplit_once(':').map_or("", |(_, port)| port)),
    };
    whole
        && !host.contains([' ', '<', '>', '"', '\\', '^', '`', '{', '|', '}'])
        && port.is_some_and(|port| port.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_paths_and_users_are_found() {
        assert_eq!(host("http://u:p@h:1/a/b?c"), "h:1");
        assert_eq!(path("http://u:p@h:1/a/b?c"), "/a/b?c");
        assert_eq!((host("/1/q"), path("/1/q")), ("", "/1/q"));
        assert_eq!((host(""), path("")), ("", ""));
        assert_eq!((host("http://h"), path("http://h")), ("h", ""));
        assert!(has_user("http://u:p@h:1/a") && has_user("https://u@h?c"));
        assert!(!has_user("http://h:1/a@b?c@d") && !has_user("http://h?c@d") && !has_user("h"));
    }

    #[test]
    fn shown_urls_have_no_credentials() {
        assert_eq!(shown("http://u:p@h:1/a@b?c"), "http://h:1/a@b?c");
        assert_eq!(shown("u:p@h/x"), "h/x");
        for plain in ["http://h/a@b", "http://h:80/a:b@c", "http://[::1]:80/a@b", "", "日本", "http://h"] {
            assert_eq!(shown(plain), plain);
        }
        for forgotten in ["http://u:pa/ss@h:1/x", "http://u:p?a#ss@h:1/x"] {
            assert!(!shown(forgotten).contains("ss"), "{forgotten}: {}", shown(forgotten));
        }
    }

    #[test]
    fn invalid_urls_are_refused() {
        for good in ["http://h:1/x", "/a", "abc", "h:1", "clickhouse://u:p@h:9000/db", "日本", ""] {
            assert!(is_url(good), "{good}");
        }
        for bad in ["://bad", "http://[::1", "x%y", "a/b.c:d%e(f)g", "1:2", "http://h:x/"] {
            assert!(!is_url(bad), "{bad}");
        }
    }

    #[test]
    fn request_uris() {
        for good in ["http://h:1/x", "/a", "https://[::1]:80/", "http://h/x y"] {
            assert!(is_request_uri(good), "{good}");
        }
        for bad in
            ["", "abc", "a/b.c:d%e(f)g", "http://h:x/", "http://a b/", "日本", "http://h/%zz", "http://h/%é"]
        {
            assert!(!is_request_uri(bad), "{bad}");
        }
    }
}
