//! The version of an object or of a whole collection.

/// A `resourceVersion`. Kubernetes guarantees that versions can be compared as numbers; other texts are only passed back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Version(String);

impl Version {
    /// None if the text is not a version.
    pub(super) fn new(text: &str) -> Option<Self> {
        (!matches!(text, "" | "0")).then(|| Self(text.to_owned()))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it is certainly older than another.
    pub(super) fn is_before(&self, other: &Self) -> bool {
        let number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0');
        let (a, b) = (&self.0, &other.0);
        // A longer number is greater; numbers of the same length compare like text.
        number(a) && number(b) && (a.len(), a) < (b.len(), b)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_compare_as_numbers_of_any_length() {
        let before =
            |a: &str, b: &str| Version::new(a).zip(Version::new(b)).is_some_and(|(a, b)| a.is_before(&b));
        assert!(before("9", "10"));
        assert!(before("99999999999999999999999999998", "99999999999999999999999999999"));
        assert!(!before("10", "10"));
        assert!(!before("10", "9"));
        assert!(!before("x9", "10"), "what is no number is never older");
        assert_eq!(Version::new("0"), None);
        assert_eq!(Version::new(""), None);
    }
}
