//! Feature gates with their stages and defaults, from the table of a release.

use std::collections::BTreeSet;

use super::go_text::Token;

/// Each gate with its newest stage, such as `HPAScaleToZero: Beta since 1.37, Default true`.
pub(super) fn gates(tokens: &[Token]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    // The name of the gate whose stages follow.
    let mut gate: Option<&str> = None;
    for (at, token) in tokens.iter().enumerate() {
        let Token::Word(word) = token else { continue };
        let rest = tokens.get(at + 1..).unwrap_or_default();
        match rest {
            [Token::Sign(':'), Token::Sign('{'), Token::Sign('{'), ..] => gate = Some(word),
            // The words of the last stage; those before it are of older versions.
            _ if word == "Version" && is_last(rest) => {
                found.extend(gate.take().map(|gate| format!("{gate}: {}", stage(rest))));
            }
            _ => {}
        }
    }
    found
}

/// Whether the list of stages ends with the one that begins here.
fn is_last(rest: &[Token]) -> bool {
    let mut signs = rest.iter().skip_while(|token| **token != Token::Sign('}')).skip(1);
    let next = signs.find(|token| **token != Token::Sign(','));
    next == Some(&Token::Sign('}'))
}

fn stage(rest: &[Token]) -> String {
    let own = rest.iter().take_while(|token| **token != Token::Sign('}'));
    let (mut since, mut name, mut settings) = (String::new(), String::new(), Vec::new());
    let mut key = "";
    for token in own {
        match token {
            // Only the first version counts, because a compatible version may follow.
            Token::Text(version) if since.is_empty() => since.clone_from(version),
            Token::Word(word) => match (key, word.as_str()) {
                (_, "Default" | "PreRelease" | "LockToDefault" | "MinCompatibilityVersion") => key = word,
                ("PreRelease", word) => word.clone_into(&mut name),
                ("Default" | "LockToDefault", word) => settings.push(format!("{key} {word}")),
                _ => {}
            },
            Token::Text(_) | Token::Sign(_) => {}
        }
    }
    settings.sort();
    format!("{name} since {since}, {}", settings.join(", "))
}
