//! The header `Accept`.

use http::HeaderMap;
use http::header::ACCEPT;

/// A media type that a client accepts.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct MediaType {
    /// `application/json`, or with `*`.
    pub(crate) kind: String,
    /// `Table`, `APIGroupDiscoveryList`, …; empty for the object itself.
    pub(crate) form: String,
    /// Group of the form.
    pub(crate) group: String,
    /// Version of the form.
    pub(crate) version: String,
    /// `watch`, or empty.
    pub(crate) stream: String,
    /// Whether indented JSON is requested.
    pub(crate) pretty: bool,
    /// Whether another form is requested, perhaps without a name.
    pub(crate) converts: bool,
    quality: f32,
}

impl MediaType {
    /// Whether it matches JSON.
    pub(crate) fn is_json(&self) -> bool {
        matches!(self.kind.as_str(), "application/json" | "application/*" | "*/*")
    }

    /// Whether it is JSON in this form, group and version.
    pub(crate) fn is(&self, form: &str, group: &str, version: &str) -> bool {
        self.is_json() && self.form == form && self.group == group && self.version == version
    }

    /// Whether it is JSON without another form.
    pub(crate) fn is_plain(&self) -> bool {
        self.is_json() && !self.converts
    }

    /// Parses as Kubernetes does: letter case and quotes matter, and a quality that is no number is 0.
    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(';').map(|part| part.trim_matches(' '));
        let kind = parts.next().filter(|kind| kind.contains('/'))?.to_owned();
        let mut media = Self { kind, quality: 1.0, ..Self::default() };
        for (key, value) in parts.filter_map(|part| part.split_once('=')) {
            if value.is_empty() || value.contains('=') {
                continue;
            }
            let (key, trimmed) = (key.trim_matches(' '), value.trim_matches(' '));
            media.converts |= matches!(key, "as" | "g" | "v");
            match key {
                "as" => trimmed.clone_into(&mut media.form),
                "g" => trimmed.clone_into(&mut media.group),
                "v" => trimmed.clone_into(&mut media.version),
                "stream" => trimmed.clone_into(&mut media.stream),
                "pretty" => media.pretty = trimmed == "1",
                "q" => media.quality = value.parse().unwrap_or(0.0),
                _ => {}
            }
        }
        Some(media)
    }

    /// Whether it is preferred. As in Kubernetes this is no order: a specific type with a low quality and `*/*` with a high one are
    /// preferred to each other, and then the later one comes first.
    fn precedes(&self, other: &Self) -> bool {
        let is_any = |media: &Self| media.kind.starts_with("*/");
        let is_any_of_type = |media: &Self| media.kind.ends_with("/*");
        self.quality > other.quality
            || (!is_any(self) && is_any(other))
            || (!is_any_of_type(self) && is_any_of_type(other))
    }
}

/// Up to this many types are sorted by insertion, as in Go.
const MAX_INSERTION_SORTED_TYPES: usize = 12;

/// The media types a client accepts, by descending quality and then by specificity; `*/*` without the header. As in
/// Kubernetes, a type with `q=0` comes last instead of being excluded.
pub(crate) fn accepted_media_types(headers: &HeaderMap) -> Vec<MediaType> {
    let given = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok()).collect::<Vec<_>>();
    if given.iter().all(|text| text.trim().is_empty()) {
        return vec![MediaType { kind: "*/*".to_owned(), quality: 1.0, ..MediaType::default() }];
    }
    let mut media: Vec<MediaType> =
        given.iter().flat_map(|text| text.split(',')).filter_map(MediaType::parse).collect();
    if media.len() > MAX_INSERTION_SORTED_TYPES {
        let stars = |media: &MediaType| media.kind.matches('*').count();
        media.sort_by(|a, b| b.quality.total_cmp(&a.quality).then(stars(a).cmp(&stars(b))));
        return media;
    }
    for sorted in 1..media.len() {
        for at in (1..=sorted).rev() {
            match media.get_mut(at - 1..=at) {
                Some([before, own]) if own.precedes(before) => std::mem::swap(before, own),
                _ => break,
            }
        }
    }
    media
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<MediaType> {
        accepted_media_types(&[(ACCEPT, text.parse().unwrap())].into_iter().collect())
    }

    #[test]
    fn media_types_are_sorted_by_quality() {
        let kinds: Vec<String> = of("text/html;q=0.5, */*;q=0.1,application/json, x;q=1, a/b;q=0")
            .into_iter()
            .map(|m| m.kind)
            .collect();
        assert_eq!(kinds, ["application/json", "text/html", "a/b", "*/*"]);
        assert!(accepted_media_types(&HeaderMap::new())[0].is_plain() && of("")[0].is_plain());
        let kinds = |text: &str| of(text).into_iter().map(|media| media.kind).collect::<Vec<_>>();
        assert_eq!(kinds("a/b;q=x,a/c;q=0.1"), ["a/c", "a/b"]);
        assert_eq!(kinds("*/*,a/b;q=0.5"), ["a/b", "*/*"]);
        assert_eq!(kinds("a/b;q=0.5,*/*"), ["*/*", "a/b"]);
        let many = format!("*/*{}", ",a/b;q=0.5".repeat(20));
        assert_eq!(kinds(&many)[0], "*/*");
    }

    #[test]
    fn types_are_compared_as_they_are_written() {
        assert!(!of("Application/JSON")[0].is_json());
        assert!(!of("application/json;v=v1")[0].is_plain());
        assert!(of("application/json; pretty=1 ;as=;g=a=b")[0].is_plain());
        assert!(of("application/json; pretty=1 ;as=;g=a=b")[0].pretty);
    }

    #[test]
    fn kubectl_requests_tables() {
        let text = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
        let media = of(text);
        assert!(media[0].is("Table", "meta.k8s.io", "v1") && media[2].is_plain() && !media[1].is_plain());
        assert!(!of("application/yaml")[0].is_json());
    }
}
