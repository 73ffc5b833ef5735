//! Text for people: shortened, or escaped for HTML.

use std::fmt;

/// The first characters of a text, with an ellipsis if there are more.
pub fn truncated(text: &str, max_chars: usize) -> String {
    match text.char_indices().nth(max_chars) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// Bytes as lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    let digit = |nibble: u8| char::from_digit(u32::from(nibble), 16).unwrap_or_default();
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 0xf)]).collect()
}

/// Text, escaped for elements and quoted attributes of HTML.
pub struct HtmlText<'a>(pub &'a str);

impl fmt::Display for HtmlText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                // HTML cannot represent these characters.
                _ if c.is_control() && c != '\n' && c != '\t' => f.write_str("\u{FFFD}")?,
                _ => write!(f, "{c}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_longer_texts_get_an_ellipsis() {
        assert_eq!((truncated("", 0), truncated("é", 0)), (String::new(), "…".to_owned()));
        assert_eq!((truncated("éa", 2), truncated("éab", 2)), ("éa".to_owned(), "éa…".to_owned()));
    }

    #[test]
    fn each_byte_is_two_lower_case_digits() {
        assert_eq!((hex(&[]), hex(&[0x00, 0x0f, 0xa5, 0xff])), (String::new(), "000fa5ff".to_owned()));
    }

    #[test]
    fn markup_and_control_characters_are_escaped() {
        let text = HtmlText("<a b='1' c=\"2\">&\n\u{1}").to_string();
        assert_eq!(text, "&lt;a b=&#39;1&#39; c=&quot;2&quot;&gt;&amp;\n\u{FFFD}");
    }
}
