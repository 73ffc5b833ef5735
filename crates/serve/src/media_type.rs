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
        self.is_json() && self.form.is_empty()
    }

    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(';').map(str::trim);
        let kind = parts.next().filter(|kind| kind.contains('/'))?.to_ascii_lowercase();
        let mut media = Self { kind, quality: 1.0, ..Self::default() };
        for (key, value) in parts.filter_map(|part| part.split_once('=')) {
            let value = value.trim().trim_matches('"');
            match key.trim() {
                "as" => value.clone_into(&mut media.form),
                "g" => value.clone_into(&mut media.group),
                "v" => value.clone_into(&mut media.version),
                "stream" => value.clone_into(&mut media.stream),
                "pretty" => media.pretty = value == "1",
                "q" => media.quality = value.parse().ok().filter(|quality| *quality >= 0.0)?,
                _ => {}
            }
        }
        Some(media)
    }

    /// The number of wildcards.
    fn stars(&self) -> usize {
        self.kind.matches('*').count()
    }
}

/// The media types a client accepts, by descending quality and then by specificity; `*/*` without the header. As in
/// Kubernetes, a type with `q=0` comes last instead of being excluded.
pub(crate) fn accepted_media_types(headers: &HeaderMap) -> Vec<MediaType> {
    let given = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok()).collect::<Vec<_>>();
    if given.iter().all(|text| text.trim().is_empty()) {
        return vec![MediaType { kind: "*/*".to_owned(), quality: 1.0, ..MediaType::default() }];
    }
    let mut media: Vec<MediaType> =
        given.iter().flat_map(|text| text.split(',')).filter_map(MediaType::parse).collect();
    media.sort_by(|a, b| b.quality.total_cmp(&a.quality).then(a.stars().cmp(&b.stars())));
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
        assert_eq!(kinds, ["application/json", "text/html", "*/*", "a/b"]);
        assert!(accepted_media_types(&HeaderMap::new())[0].is_plain() && of("")[0].is_plain());
        assert!(of("a/b;q=x").is_empty());
    }

    #[test]
    fn kubectl_asks_for_tables() {
        let text = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
        let media = of(text);
        assert!(media[0].is("Table", "meta.k8s.io", "v1") && media[2].is_plain() && !media[1].is_plain());
        assert!(!of("application/yaml")[0].is_json());
    }
}
