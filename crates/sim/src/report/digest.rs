//! Content-Security-Policy source expressions, which name the allowed scripts and styles by their SHA-256.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};

/// The source expression that allows exactly `text`.
pub(super) fn allow(text: &str) -> String {
    format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(text: &str) -> String {
        Sha256::digest(text).iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
    }

    #[test]
    fn a_source_expression_is_the_digest_in_base64() {
        assert_eq!(allow("abc"), "'sha256-ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0='");
    }

    #[test]
    fn vendored_files_are_those_of_the_package() {
        let readme = include_str!("vendor/README.md");
        for text in [
            include_str!("vendor/uPlot.iife.min.js"),
            include_str!("vendor/uPlot.min.css"),
            include_str!("vendor/LICENSE.uPlot"),
        ] {
            assert!(readme.contains(&hex(text)), "{}", hex(text));
        }
    }
}
