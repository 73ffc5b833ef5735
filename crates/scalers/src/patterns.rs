//! Patterns that tenants choose: their length and their compiled size are limited.

use regex::{Regex, RegexBuilder};

use crate::ParseError;
use crate::parameters::{Parameter, ParameterGroup, ParameterReader};

/// Maximum length of a pattern, in bytes. The limit of the compiled size is not enough, because a parsed pattern can be a thousand times
/// as large as its text: the class `\w` has hundreds of ranges.
const MAX_PATTERN_BYTES: usize = 1 << 10;
/// Maximum size of a compiled pattern, in bytes.
const MAX_COMPILED_BYTES: usize = 1 << 20;

/// A pattern beside the parameter that it is compiled from: a check of the parameters sets it, so that it is compiled once.
impl ParameterGroup for Option<Regex> {
    const PARAMETERS: &'static [Parameter] = &[];

    fn fill(_: &mut ParameterReader<'_>) -> Self {
        None
    }
}

/// Refuses the pattern of a parameter that is too long to be compiled.
pub(crate) fn check_length(parameter: &'static str, pattern: &str) -> Result<(), ParseError> {
    if pattern.len() > MAX_PATTERN_BYTES {
        let why = format!("{parameter} has more than {MAX_PATTERN_BYTES} bytes, the maximum of a pattern");
        return Err(ParseError::of(parameter, why));
    }
    Ok(())
}

/// Compiles a regular expression that was made from a pattern of limited length.
pub(crate) fn compiled(expression: &str) -> Result<Regex, regex::Error> {
    RegexBuilder::new(expression).size_limit(MAX_COMPILED_BYTES).build()
}

/// A regular expression that must match a whole text.
pub(crate) fn whole_text(parameter: &'static str, pattern: &str) -> Result<Regex, ParseError> {
    check_length(parameter, pattern)?;
    let invalid = || ParseError::from(format!("{parameter} is not a valid regular expression"));
    // It is parsed alone first, so that an unbalanced parenthesis cannot close the group around it. With this limit it is not compiled.
    if let Err(regex::Error::Syntax(_)) = RegexBuilder::new(pattern).size_limit(0).build() {
        return Err(invalid());
    }
    compiled(&format!("^(?:{pattern})$")).map_err(|_| invalid())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_patterns_are_not_compiled() {
        let error = |pattern: &str| whole_text("queueName", pattern).unwrap_err().to_string();
        let too_long = "queueName has more than 1024 bytes, the maximum of a pattern";
        assert_eq!(error(&r"\w".repeat(513)), too_long);
        // Whether it is valid is not examined.
        assert_eq!(error(&"(".repeat(1025)), too_long);
        assert!(whole_text("queueName", &"a".repeat(1024)).is_ok());
    }

    #[test]
    fn whole_texts_match() {
        let pattern = whole_text("queueName", "a|ab").unwrap();
        assert_eq!(["a", "ab", "abc", "xa"].map(|text| pattern.is_match(text)), [true, true, false, false]);
        for bad in ["(", "a)(?:b", "[", r"(\w{100}){100}"] {
            let error = whole_text("queueName", bad).unwrap_err();
            assert_eq!(error.to_string(), "queueName is not a valid regular expression", "{bad}");
        }
    }
}
