//! Validation of HTTP URLs as Go's `url.Parse` does it.

/// Whether a text is a URL with scheme `http` or `https` and a host that Go accepts.
pub(super) fn is_http(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once("://") else { return false };
    if !scheme.eq_ignore_ascii_case("http") && !scheme.eq_ignore_ascii_case("https") {
        return false;
    }
    if text.bytes().any(|byte| byte < b' ' || byte == 0x7f) {
        return false;
    }
    let (rest, fragment) = rest.split_once('#').unwrap_or((rest, ""));
    let rest = rest.split_once('?').map_or(rest, |(before, _)| before);
    let (authority, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
    let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    is_user(user) && is_host(host) && is_escaped(path) && is_escaped(fragment)
}

/// Whether every `%` is followed by two hex digits.
fn is_escaped(text: &str) -> bool {
    text.split('%').skip(1).all(|rest| {
        let digits = rest.as_bytes().get(..2);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    })
}

fn is_user(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_alphanumeric() || "-._:~!$&'()*+,;=%@".contains(c)) && is_escaped(text)
}

fn is_host(text: &str) -> bool {
    let (name, port) = match text.strip_prefix('[') {
        None => text.rsplit_once(':').unwrap_or((text, "")),
        Some(rest) => match rest.rsplit_once(']') {
            None => return false,
            Some((name, port)) => match (port.is_empty(), port.strip_prefix(':')) {
                (true, _) => (name, ""),
                (false, Some(port)) => (name, port),
                (false, None) => return false,
            },
        },
    };
    let is_plain =
        |c: char| !c.is_ascii() || c.is_ascii_alphanumeric() || "-_.~!$&'()*+,;=:[]<>\"%".contains(c);
    // Escapes in a host are only allowed for non-ASCII characters.
    let escapes = |rest: &str| {
        let first = rest.chars().next();
        rest.starts_with("25") || first.is_some_and(|digit| !('0'..='7').contains(&digit))
    };
    !text.is_empty()
        && name.chars().all(is_plain)
        && is_escaped(name)
        && name.split('%').skip(1).all(escapes)
        && port.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_accepted_by_go() {
        for good in [
            "http://a",
            "HTTPS://A/t",
            "https://a:8/b?c d#e",
            "http://u:p@a/",
            "http://[::1]:80/x",
            "https://ä.example/",
            "http://a/%20",
            "http://:80/",
            "http://a/b c",
        ] {
            assert!(is_http(good), "{good}");
        }
        for bad in [
            "",
            "a",
            "a/b",
            "//a/b",
            "ftp://a",
            "http:/a",
            "https://",
            "https:///p",
            "https://h ost/",
            "https://%zz/",
            "https://a:b/",
            "https://a/%z",
            "https://a/#%",
            "https://a\n/",
            "https://%41/",
            "http://[::1",
            "http://[::1]x/",
        ] {
            assert!(!is_http(bad), "{bad}");
        }
    }
}
