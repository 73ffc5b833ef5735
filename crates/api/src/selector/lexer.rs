//! The tokens of a label selector text.

/// One token with the text it was read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token<'a> {
    pub(super) kind: TokenKind,
    pub(super) text: &'a str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenKind {
    Word,
    In,
    NotIn,
    Not,
    Equals,
    DoubleEquals,
    NotEquals,
    Greater,
    Less,
    Open,
    Close,
    Comma,
    End,
}

impl Token<'_> {
    /// `in` and `notin` are ordinary words wherever no operator can stand.
    pub(super) fn is_word(self) -> bool {
        matches!(self.kind, TokenKind::Word | TokenKind::In | TokenKind::NotIn)
    }
}

/// Cuts a text into tokens; the last one is always `End`.
pub(super) fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches([' ', '\t', '\r', '\n']);
        let token = next(rest);
        tokens.push(token);
        if token.kind == TokenKind::End {
            return tokens;
        }
        rest = rest.get(token.text.len()..).unwrap_or_default();
        // Kubernetes reads a NUL as the end of a token, and as the end of everything where a token starts.
        rest = rest.strip_prefix('\0').unwrap_or(rest);
    }
}

fn next(rest: &str) -> Token<'_> {
    let symbols = [
        ("==", TokenKind::DoubleEquals),
        ("!=", TokenKind::NotEquals),
        ("=", TokenKind::Equals),
        ("!", TokenKind::Not),
        (">", TokenKind::Greater),
        ("<", TokenKind::Less),
        ("(", TokenKind::Open),
        (")", TokenKind::Close),
        (",", TokenKind::Comma),
    ];
    for (symbol, kind) in symbols {
        if let Some(text) = rest.get(..symbol.len()).filter(|text| *text == symbol) {
            return Token { kind, text };
        }
    }
    let end = rest.find(|c| " \t\r\n=!()<>,\0".contains(c)).unwrap_or(rest.len());
    let text = rest.get(..end).unwrap_or_default();
    let kind = match text {
        "" => TokenKind::End,
        "in" => TokenKind::In,
        "notin" => TokenKind::NotIn,
        _ => TokenKind::Word,
    };
    Token { kind, text }
}
