//! What to watch.

/// What to watch.
#[derive(Clone, Debug)]
pub struct Source {
    /// Path of the collection: `/api/v1/pods`.
    pub path: String,
    /// Further parameters: `fieldSelector=…`.
    pub parameters: Vec<(&'static str, String)>,
}

impl Source {
    /// A whole collection.
    pub fn new(path: impl Into<String>) -> Self {
        Self { path: path.into(), parameters: Vec::new() }
    }

    /// All pods.
    pub fn pods() -> Self {
        Self::new("/api/v1/pods")
    }

    /// All HorizontalPodAutoscalers.
    pub fn hpas() -> Self {
        Self::new("/apis/autoscaling/v2/horizontalpodautoscalers")
    }

    /// All Autoscalers.
    pub fn autoscalers() -> Self {
        Self::new("/apis/plimsoll.dev/v1alpha1/autoscalers")
    }

    /// Path and query of a request for it.
    pub(super) fn uri(&self, more: &[(&str, &str)]) -> String {
        let own = self.parameters.iter().map(|(name, value)| (*name, value.as_str()));
        let mut uri = self.path.clone();
        for (count, (name, value)) in own.chain(more.iter().copied()).enumerate() {
            uri.push(if count == 0 { '?' } else { '&' });
            uri.push_str(name);
            uri.push('=');
            for byte in value.bytes() {
                match byte {
                    b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                        uri.push(byte as char);
                    }
                    _ => uri.push_str(&format!("%{byte:02X}")),
                }
            }
        }
        uri
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_encoded() {
        assert_eq!(Source::pods().uri(&[]), "/api/v1/pods");
        let some =
            Source { parameters: vec![("labelSelector", "a=b,c in (d)".to_owned())], ..Source::pods() };
        assert_eq!(
            some.uri(&[("watch", "true")]),
            "/api/v1/pods?labelSelector=a%3Db%2Cc%20in%20%28d%29&watch=true"
        );
    }
}
