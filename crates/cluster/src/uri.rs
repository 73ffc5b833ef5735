//! Paths and queries, encoded as Go encodes them.

/// A path of segments, each encoded. Every path of the API that has a name in it is made by this function or by [`below`],
/// so that a name cannot change which resource is meant.
pub fn path<'a>(segments: impl IntoIterator<Item = &'a str>) -> String {
    below("", segments)
}

/// A path below a fixed one, such as `/api/v1`.
pub fn below<'a>(fixed: &str, segments: impl IntoIterator<Item = &'a str>) -> String {
    let mut out = fixed.to_owned();
    for segment in segments {
        out.push('/');
        match segment {
            // Proxies resolve these.
            "." => out.push_str("%2E"),
            ".." => out.push_str("%2E%2E"),
            _ => push_encoded(&mut out, segment, "%20"),
        }
    }
    out
}

/// The collection such as `/apis/apps/v1/deployments`, in one namespace unless that is empty.
pub fn within(collection: &str, namespace: &str) -> String {
    match collection.rsplit_once('/') {
        Some((base, plural)) if !namespace.is_empty() => below(base, ["namespaces", namespace, plural]),
        _ => collection.to_owned(),
    }
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

/// Appends a text with all characters encoded that have a meaning in URLs, and spaces as `space`.
pub(crate) fn push_encoded(out: &mut String, text: &str, space: &str) {
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
    fn names_stay_names() {
        assert_eq!(
            below("/api/v1", ["namespaces", "default/configmaps?dryRun=All&x=", "events"]),
            "/api/v1/namespaces/default%2Fconfigmaps%3FdryRun%3DAll%26x%3D/events"
        );
        assert_eq!(path(["a", "..", ".", "..."]), "/a/%2E%2E/%2E/...");
        assert_eq!(within("/apis/apps/v1/deployments", ""), "/apis/apps/v1/deployments");
        assert_eq!(within("/api/v1/pods", "a/b"), "/api/v1/namespaces/a%2Fb/pods");
    }

    #[test]
    fn selectors_are_encoded_as_by_kubernetes() {
        let uri = with_query("/p", [("labelSelector", "a in (x,y),b=c"), ("metricLabelSelector", "")]);
        assert_eq!(uri, "/p?labelSelector=a+in+%28x%2Cy%29%2Cb%3Dc");
        assert_eq!(with_query("/p", [("a", ""), ("b", "!c"), ("d", "e")]), "/p?b=%21c&d=e");
    }
}
