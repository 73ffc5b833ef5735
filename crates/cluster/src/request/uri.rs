//! Paths and queries, encoded as Go encodes them.

/// A path of segments, each encoded.
pub fn path<'a>(segments: impl IntoIterator<Item = &'a str>) -> String {
    let mut out = String::new();
    for segment in segments {
        out.push('/');
        push_encoded(&mut out, segment, "%20");
    }
    out
}

/// A path with parameters; those with an empty value are left out.
pub fn with_query<'a>(path: &str, parameters: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let mut out = path.to_owned();
    let mut mark = '?';
    for (name, value) in parameters.into_iter().filter(|(_, value)| !value.is_empty()) {
        out.push(mark);
        out.push_str(name);
        out.push('=');
        push_encoded(&mut out, value, "+");
        mark = '&';
    }
    out
}

fn push_encoded(out: &mut String, text: &str, space: &str) {
    for byte in text.bytes() {
        match byte {
            b' ' => out.push_str(space),
            b'-' | b'_' | b'.' | b'~' => out.push(byte.into()),
            _ if byte.is_ascii_alphanumeric() => out.push(byte.into()),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_encoded() {
        assert_eq!(
            path(["apis", "a/b", "*", "x y", "%2f?#", "ä"]),
            "/apis/a%2Fb/%2A/x%20y/%252f%3F%23/%C3%A4"
        );
    }

    #[test]
    fn selectors_are_encoded_as_by_kubernetes() {
        let uri = with_query("/p", [("labelSelector", "a in (x,y),b=c"), ("metricLabelSelector", "")]);
        assert_eq!(uri, "/p?labelSelector=a+in+%28x%2Cy%29%2Cb%3Dc");
        assert_eq!(with_query("/p", [("a", ""), ("b", "!c"), ("d", "e")]), "/p?b=%21c&d=e");
    }
}
