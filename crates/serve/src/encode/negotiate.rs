//! Content negotiation.
//!
//! As in the Go servers, `Accept` is evaluated twice: the router takes no partial wildcards and refuses types that no
//! response has; then the clauses are tried by descending quality.

use http::HeaderMap;
use http::header::USER_AGENT;

use crate::media_type::{MediaType, accepted_media_types};
use crate::query::Query;
use crate::status::Status;

/// The encoding of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    Json,
    Yaml,
    Protobuf,
}

/// Another kind that an object is converted to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Table(MetaVersion),
    Partial(MetaVersion),
    PartialList(MetaVersion),
}

/// Version of `meta.k8s.io`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MetaVersion {
    V1,
    V1beta1,
}

/// The conversions that an API supports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Forms {
    pub(crate) table: bool,
    pub(crate) partial: bool,
}

/// The result of negotiation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) encoding: Encoding,
    pub(crate) pretty: bool,
    pub(crate) form: Option<Form>,
}

impl Encoding {
    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Yaml => "application/yaml",
            Self::Protobuf => "application/vnd.kubernetes.protobuf",
        }
    }

    fn of(media: &MediaType) -> Option<Self> {
        match media.kind.as_str() {
            "application/json" | "application/*" | "*/*" => Some(Self::Json),
            "application/yaml" => Some(Self::Yaml),
            "application/vnd.kubernetes.protobuf" => Some(Self::Protobuf),
            _ => None,
        }
    }
}

impl MetaVersion {
    pub(crate) fn api_version(self) -> &'static str {
        match self {
            Self::V1 => "meta.k8s.io/v1",
            Self::V1beta1 => "meta.k8s.io/v1beta1",
        }
    }
}

impl Form {
    /// None if the API does not support the clause.
    fn of(media: &MediaType, encoding: Encoding, forms: Forms) -> Option<Self> {
        let version = match (media.group.as_str(), media.version.as_str()) {
            ("meta.k8s.io", "v1") => MetaVersion::V1,
            ("meta.k8s.io", "v1beta1") => MetaVersion::V1beta1,
            _ => return None,
        };
        match media.form.as_str() {
            "Table" if forms.table && encoding != Encoding::Protobuf => Some(Self::Table(version)),
            "PartialObjectMetadata" if forms.partial => Some(Self::Partial(version)),
            "PartialObjectMetadataList" if forms.partial => Some(Self::PartialList(version)),
            _ => None,
        }
    }
}

/// An error unless one of the accepted content types exists. The error for lists also names the watch types.
pub(crate) fn presentable(headers: &HeaderMap, list: bool) -> Result<(), Status> {
    let known =
        |media: &MediaType| media.kind == "*/*" || Encoding::of(media).is_some() && !media.kind.contains('*');
    if accepted_media_types(headers).iter().any(known) {
        return Ok(());
    }
    let followed = "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch";
    let types = if list { format!("{}, {followed}", super::TYPES) } else { super::TYPES.to_owned() };
    Err(Status::not_represented(&types))
}

/// The most preferred encoding that is supported.
pub(crate) fn choose(headers: &HeaderMap, query: &Query, forms: Forms) -> Result<Choice, Status> {
    let text = || format!("only the following media types are accepted: {}", super::TYPES);
    find(headers, query, forms).ok_or_else(|| Status::not_convertible(text()))
}

/// The encoding of an error; indented JSON if the client accepts none.
pub(crate) fn for_errors(headers: &HeaderMap, query: &Query) -> Choice {
    let readable = Choice { encoding: Encoding::Json, pretty: true, form: None };
    find(headers, query, Forms::default()).unwrap_or(readable)
}

fn find(headers: &HeaderMap, query: &Query, forms: Forms) -> Option<Choice> {
    accepted_media_types(headers).iter().find_map(|media| {
        let encoding = Encoding::of(media)?;
        // There are no streams of YAML.
        if !media.stream.is_empty() && (media.stream != "watch" || encoding == Encoding::Yaml) {
            return None;
        }
        let form = if media.converts { Some(Form::of(media, encoding, forms)?) } else { None };
        Some(Choice { encoding, pretty: media.pretty || readable(headers, query), form })
    })
}

/// Whether JSON is indented.
fn readable(headers: &HeaderMap, query: &Query) -> bool {
    match query.get("pretty").filter(|text| !text.is_empty()) {
        Some(text) => matches!(text, "1" | "t" | "T" | "true" | "TRUE" | "True"),
        None => {
            let agent = headers.get(USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or_default();
            ["curl", "Wget", "Mozilla/5.0"].iter().any(|browser| agent.starts_with(browser))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::header::ACCEPT;

    fn headers(accept: &str) -> HeaderMap {
        [(ACCEPT, accept.parse().unwrap())].into_iter().collect()
    }

    fn chosen(accept: &str, forms: Forms) -> Option<(Encoding, Option<Form>)> {
        find(&headers(accept), &Query::default(), forms).map(|choice| (choice.encoding, choice.form))
    }

    #[test]
    fn the_first_supported_type_is_chosen() {
        const ALL: Forms = Forms { table: true, partial: true };
        let none = Forms::default();
        let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
        assert_eq!(
            chosen("application/vnd.kubernetes.protobuf, */*", none),
            Some((Encoding::Protobuf, None))
        );
        assert_eq!(chosen("*/*, application/yaml", none), Some((Encoding::Yaml, None)));
        assert_eq!(chosen("application/json;q=0.1,application/yaml", none), Some((Encoding::Yaml, None)));
        assert_eq!(chosen(table, ALL), Some((Encoding::Json, Some(Form::Table(MetaVersion::V1)))));
        assert_eq!(chosen(table, none), None);
        assert_eq!(chosen(&format!("{table},application/json"), none), Some((Encoding::Json, None)));
        assert_eq!(chosen("application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io", ALL), None);
        assert_eq!(chosen("application/json;stream=other", ALL), None);
        assert_eq!(chosen("application/yaml;stream=watch", ALL), None);
        assert_eq!(chosen("application/json;v=v1;g=meta.k8s.io", ALL), None);
        assert_eq!(chosen("application/json;q=high", none), Some((Encoding::Json, None)));
        assert!(presentable(&headers("application/*"), false).is_err());
        assert!(presentable(&headers("application/json;q=0"), false).is_ok());
    }

    #[test]
    fn json_is_indented_for_people() {
        let agent = |text: &str| [(USER_AGENT, text.parse().unwrap())].into_iter().collect::<HeaderMap>();
        assert!(
            readable(&agent("curl/8"), &Query::default()) && !readable(&agent("mycurl"), &Query::default())
        );
        assert!(!readable(&agent("curl/8"), &Query::parse("pretty=0")));
        assert!(readable(&agent("kubectl"), &Query::parse("pretty=t")));
        assert!(readable(&agent("Wget/1"), &Query::parse("pretty")));
    }
}
