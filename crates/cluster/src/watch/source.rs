//! The source of a watch: path, parameters and form.

use std::fmt;
use std::sync::Arc;

use crate::uri::push_encoded;

/// The metadata of one object, or of the objects of a watch.
pub(crate) const METADATA: &str =
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";
/// The metadata of the objects of a list.
pub(crate) const METADATA_LIST: &str =
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";

/// Whether an object is known in a version, by its namespace, name and version.
type Known = Arc<dyn Fn(&str, &str, &str) -> bool + Send + Sync>;
/// Applies the text of a changed object and returns its version; none if the object must be decoded.
type TextHandler = Arc<dyn Fn(&[u8]) -> Option<String> + Send + Sync>;

/// The form in which objects are requested.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Form {
    /// Whole objects.
    #[default]
    Whole,
    /// `PartialObjectMetadata`.
    Metadata,
}

/// A collection to list and watch.
#[derive(Clone)]
pub struct WatchSource {
    /// Path of the collection: `/api/v1/pods`.
    pub path: String,
    /// Further query parameters: `fieldSelector=…`.
    pub parameters: Vec<(&'static str, String)>,
    form: Form,
    known: Option<Known>,
    text_handler: Option<TextHandler>,
}

impl fmt::Debug for WatchSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.uri(&[]))
    }
}

impl WatchSource {
    /// A whole collection.
    pub fn new(path: impl Into<String>) -> Self {
        Self { path: path.into(), parameters: Vec::new(), form: Form::Whole, known: None, text_handler: None }
    }

    /// Adds a field selector.
    fn with_fields(mut self, selector: impl Into<String>) -> Self {
        self.parameters.push(("fieldSelector", selector.into()));
        self
    }

    /// Requests `PartialObjectMetadata`; a server that does not know it sends whole objects.
    fn metadata_only(self) -> Self {
        Self { form: Form::Metadata, ..self }
    }

    /// Suppresses changes to a version that is already `known`, such as the result of our own write.
    pub fn knowing(mut self, known: impl Fn(&str, &str, &str) -> bool + Send + Sync + 'static) -> Self {
        self.known = Some(Arc::new(known));
        self
    }

    /// Offers the JSON text of each changed object to `handler` before it is decoded. A change that `handler` has applied, so that it
    /// returns the version of the object, is not reported. The text begins with the object and ends with the line of the watch. The
    /// objects of a list are offered too, and always reported.
    pub fn with_text_handler(
        mut self,
        handler: impl Fn(&[u8]) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        self.text_handler = Some(Arc::new(handler));
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

    /// The version of a changed object whose text was applied without decoding it.
    pub(super) fn apply_text(&self, object: &[u8]) -> Option<String> {
        self.text_handler.as_ref().and_then(|handler| handler(object))
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

    /// The metadata of all running pods.
    pub fn running_pods() -> Self {
        Self::pods().with_fields("status.phase=Running").metadata_only()
    }

    /// The `Accept` header.
    pub(super) fn accept(&self, watch: bool) -> &'static str {
        match (self.form, watch) {
            (Form::Whole, _) => "application/json",
            (Form::Metadata, false) => METADATA_LIST,
            (Form::Metadata, true) => METADATA,
        }
    }

    /// Path and query of a request.
    pub(super) fn uri(&self, more: &[(&str, &str)]) -> String {
        let own = self.parameters.iter().map(|(name, value)| (*name, value.as_str()));
        let mut uri = self.path.clone();
        for (count, (name, value)) in own.chain(more.iter().copied()).enumerate() {
            uri.push(if count == 0 { '?' } else { '&' });
            uri.push_str(name);
            uri.push('=');
            push_encoded(&mut uri, value, "%20");
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
