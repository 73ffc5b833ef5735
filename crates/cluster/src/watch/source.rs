//! What to watch.

use std::fmt;
use std::sync::Arc;

/// The metadata of one object, or of the objects of a watch.
pub(crate) const METADATA: &str =
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";
/// The metadata of the objects of a list.
pub(crate) const METADATA_LIST: &str =
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";

/// Whether an object is known in a version, by its namespace, name and version.
type Known = Arc<dyn Fn(&str, &str, &str) -> bool + Send + Sync>;

/// In which form objects are asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Form {
    /// As they are.
    #[default]
    Whole,
    /// Their metadata alone.
    Metadata,
}

/// What to watch.
#[derive(Clone)]
pub struct WatchSource {
    /// Path of the collection: `/api/v1/pods`.
    pub path: String,
    /// Further parameters: `fieldSelector=…`.
    pub parameters: Vec<(&'static str, String)>,
    form: Form,
    known: Option<Known>,
}

impl fmt::Debug for WatchSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.uri(&[]))
    }
}

impl WatchSource {
    /// A whole collection.
    pub fn new(path: impl Into<String>) -> Self {
        Self { path: path.into(), parameters: Vec::new(), form: Form::Whole, known: None }
    }

    /// Only objects that a field selector takes.
    pub fn with_fields(mut self, selector: impl Into<String>) -> Self {
        self.parameters.push(("fieldSelector", selector.into()));
        self
    }

    /// Asks for the metadata of objects alone; a server that does not know that form sends everything.
    pub fn metadata_only(self) -> Self {
        Self { form: Form::Metadata, ..self }
    }

    /// Changes to objects that are `known` in that version already are not told: our own writes come back to us.
    pub fn knowing(mut self, known: impl Fn(&str, &str, &str) -> bool + Send + Sync + 'static) -> Self {
        self.known = Some(Arc::new(known));
        self
    }

    /// The plural name of the resource: `pods`.
    pub fn resource(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }

    /// Whether an object is known in this version.
    pub(super) fn knows(&self, namespace: &str, name: &str, version: &str) -> bool {
        self.known.as_ref().is_some_and(|known| known(namespace, name, version))
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

    /// All nodes.
    pub fn nodes() -> Self {
        Self::new("/api/v1/nodes")
    }

    /// The metadata of all pods that run.
    pub fn running_pods() -> Self {
        Self::pods().with_fields("status.phase=Running").metadata_only()
    }

    /// The form that is asked for.
    pub(super) fn accept(&self, watch: bool) -> &'static str {
        match (self.form, watch) {
            (Form::Whole, _) => "application/json",
            (Form::Metadata, false) => METADATA_LIST,
            (Form::Metadata, true) => METADATA,
        }
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
        assert_eq!(WatchSource::pods().uri(&[]), "/api/v1/pods");
        let some = WatchSource {
            parameters: vec![("labelSelector", "a=b,c in (d)".to_owned())],
            ..WatchSource::pods()
        };
        assert_eq!(
            some.uri(&[("watch", "true")]),
            "/api/v1/pods?labelSelector=a%3Db%2Cc%20in%20%28d%29&watch=true"
        );
    }
}
