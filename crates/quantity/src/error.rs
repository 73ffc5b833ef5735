use std::fmt;

/// Why a text is not a quantity; its text is that of the Kubernetes API server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseError(Reason);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    Form,
    Number,
    Suffix,
}

impl ParseError {
    pub(crate) const FORM: Self = Self(Reason::Form);
    pub(crate) const NUMBER: Self = Self(Reason::Number);
    pub(crate) const SUFFIX: Self = Self(Reason::Suffix);
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Reason::Form => {
                "quantities must match the regular expression \
                 '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
            }
            Reason::Number => "unable to parse numeric part of quantity",
            Reason::Suffix => "unable to parse quantity's suffix",
        })
    }
}

impl std::error::Error for ParseError {}
