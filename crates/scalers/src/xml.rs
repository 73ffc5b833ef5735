//! Elements of small XML documents that clouds answer with, without namespaces or attributes of interest.
//!
//! This is not an XML parser: it finds an element by its exact start tag and replaces the five named entities. Its callers read one or a
//! few elements of known responses, so that a crate such as `quick-xml` would be a dependency for these lines only. Documents
//! that users choose are parsed by `metrics_api::query::xml`.

/// The text of the first element with this name, if it is not empty.
pub(crate) fn element(xml: &str, name: &str) -> Option<String> {
    inner(xml, name).map(|(text, _)| unescaped(text)).filter(|text| !text.is_empty())
}

/// The content of the first element with this name, and what follows it.
pub(crate) fn inner<'a>(xml: &'a str, name: &str) -> Option<(&'a str, &'a str)> {
    let (_, rest) = xml.split_once(&format!("<{name}>"))?;
    rest.split_once(&format!("</{name}>"))
}

/// Text with its XML entities replaced, trimmed.
pub(crate) fn unescaped(text: &str) -> String {
    let text = text.trim().replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"");
    text.replace("&apos;", "'").replace("&amp;", "&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_complete_element_is_found() {
        let xml = "<a><b> 1 &amp;lt; </b><c></c><d>x<d>";
        assert_eq!(element(xml, "b").as_deref(), Some("1 &lt;"));
        assert_eq!(element(xml, "c"), None);
        assert_eq!(element(xml, "d"), None);
        assert_eq!(inner("<b>1</b><b>2</b>", "b"), Some(("1", "<b>2</b>")));
    }
}
