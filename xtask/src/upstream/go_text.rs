//! A tokenizer for the string literals of Go. Malformed input ends the list of tokens early.

/// A token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    /// An identifier, keyword or number.
    Word(String),
    /// The value of a string literal.
    Text(String),
    /// Any other character.
    Sign(char),
}

/// The tokens of a file, without comments.
pub(super) fn tokens(source: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = source;
    while let Some(first) = rest.chars().next() {
        let after = rest.get(first.len_utf8()..).unwrap_or_default();
        rest = match first {
            '/' if after.starts_with('/') => rest.split_once('\n').map_or("", |(_, next)| next),
            '/' if after.starts_with('*') => rest.split_once("*/").map_or("", |(_, next)| next),
            '"' => {
                let (text, next) = quoted(after, '"');
                tokens.push(Token::Text(text));
                next
            }
            // The value of a rune is not needed.
            '\'' => quoted(after, '\'').1,
            '`' => {
                let (text, next) = after.split_once('`').unwrap_or((after, ""));
                tokens.push(Token::Text(text.replace('\r', "")));
                next
            }
            _ if first.is_alphanumeric() || first == '_' => {
                let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
                let (word, next) = rest.split_at(end);
                tokens.push(Token::Word(word.to_owned()));
                next
            }
            _ if first.is_whitespace() => after,
            _ => {
                tokens.push(Token::Sign(first));
                after
            }
        };
    }
    tokens
}

/// The value of a literal after its first quote, and the text after it. A literal ends at the end of its line at the latest.
fn quoted(source: &str, quote: char) -> (String, &str) {
    let mut text = String::new();
    let mut letters = source.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\n' => return (text, source.get(at..).unwrap_or_default()),
            '\\' => match letters.next() {
                Some((_, 'n')) => text.push('\n'),
                Some((_, 't')) => text.push('\t'),
                Some((_, 'r')) => text.push('\r'),
                Some((_, 'x')) => text.extend(code(&mut letters, 2)),
                Some((_, 'u')) => text.extend(code(&mut letters, 4)),
                Some((_, 'U')) => text.extend(code(&mut letters, 8)),
                Some((_, other)) => text.push(other),
                None => break,
            },
            _ if letter == quote => return (text, source.get(at + 1..).unwrap_or_default()),
            _ => text.push(letter),
        }
    }
    (text, "")
}

/// The character whose code is written with so many hexadecimal digits.
fn code(letters: &mut std::str::CharIndices<'_>, digits: usize) -> Option<char> {
    let digits: String = letters.take(digits).map(|(_, digit)| digit).collect();
    u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32)
}
