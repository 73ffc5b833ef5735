//! The path of one autoscaler in the console's API.

use web_console::ApiError;

use crate::live::RequestError;
use crate::live::named::{self, AutoscalerName};

/// An autoscaler that a path names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ObjectPath<'a> {
    pub(super) namespace: &'a str,
    pub(super) kind: &'a str,
    pub(super) name: &'a str,
}

impl<'a> ObjectPath<'a> {
    /// Reads the three segments of a path and refuses names that no object can have.
    pub(super) fn parse(segments: &'a [String]) -> Result<Self, ApiError> {
        let [namespace, kind, name] = segments else {
            return Err(ApiError::new(404, "an autoscaler is named by namespace, kind and name"));
        };
        for (what, text) in [("namespace", namespace), ("name", name)] {
            named::check(what, text).map_err(|failure| ApiError::new(400, failure.to_string()))?;
        }
        Ok(Self { namespace, kind, name })
    }

    /// The autoscaler.
    pub(super) fn autoscaler(&self) -> Result<AutoscalerName, ApiError> {
        let kind = named::kind(self.kind)
            .ok_or_else(|| ApiError::new(404, format!("there is no kind {}", self.kind)))?;
        Ok(AutoscalerName { kind, name: self.name.to_owned() })
    }

    /// As in rows.
    pub(super) fn id(&self) -> String {
        format!("{}/{}/{}", self.namespace, self.kind, self.name)
    }
}

/// An error of a request to the cluster.
pub(super) fn failed(error: &RequestError) -> ApiError {
    ApiError::new(error.code().unwrap_or(502), error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_name_objects_that_can_exist() {
        let parse = |segments: &[&str]| {
            let segments: Vec<String> = segments.iter().map(|segment| (*segment).to_owned()).collect();
            let path = ObjectPath::parse(&segments)?;
            path.autoscaler().map(|named| (path.id(), named.to_string()))
        };
        assert_eq!(parse(&["shop", "hpa", "web"]).unwrap(), ("shop/hpa/web".into(), "hpa/web".into()));
        assert_eq!(parse(&["shop", "sj", "mails"]).unwrap(), ("shop/sj/mails".into(), "sj/mails".into()));
        for (segments, code) in [
            (&["shop", "hpa", "../secrets"][..], 400),
            (&["shop", "hpa", "a/b"], 400),
            (&["Shop", "hpa", "web"], 400),
            (&["shop", "pod", "web"], 404),
            (&["shop", "hpa"], 404),
        ] {
            assert_eq!(parse(segments).unwrap_err().code, code, "{segments:?}");
        }
    }
}
