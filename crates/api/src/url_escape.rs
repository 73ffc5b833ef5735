//! Decoding of `%XX` in URLs, like Go's `net/url`.

/// Decodes a path segment like `url.PathUnescape`; none if it is malformed or not UTF-8.
pub fn path_unescaped(text: &str) -> Option<String> {
    String::from_utf8(unescaped_bytes(text, false)?).ok()
}

/// Decodes a query value like `url.QueryUnescape`, in which `+` is a space; none if it is malformed or not UTF-8.
pub fn query_unescaped(text: &str) -> Option<String> {
    String::from_utf8(unescaped_bytes(text, true)?).ok()
}

/// Decodes to bytes; none if a `%` is not followed by two hexadecimal digits.
pub fn unescaped_bytes(text: &str, plus_is_space: bool) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        out.push(match byte {
            b'%' => digit(rest.next()?)? << 4 | digit(rest.next()?)?,
            b'+' if plus_is_space => b' ',
            byte => byte,
        });
    }
    Some(out)
}

fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).map(|digit| digit as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_queries_have_plus_for_a_space() {
        assert_eq!(query_unescaped("a+b%26%C3%A9%2b").as_deref(), Some("a b&é+"));
        assert_eq!(path_unescaped("a+b%26%C3%A9").as_deref(), Some("a+b&é"));
    }

    #[test]
    fn malformed_escapes_and_other_encodings_are_none() {
        for text in ["%", "%2", "%zz", "%+1", "%ff"] {
            assert_eq!((path_unescaped(text), query_unescaped(text)), (None, None), "{text}");
        }
        assert_eq!(unescaped_bytes("%ff", false), Some(vec![0xff]));
    }
}
