//! Quoting for kubeconfigs and manifests.

/// Quotes a string so that it is valid in both JSON and YAML.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_are_escaped() {
        assert_eq!(quoted(r#"a "b" \ c"#), r#""a \"b\" \\ c""#);
        assert_eq!(quoted("a\nb"), r#""a\u000ab""#);
    }
}
