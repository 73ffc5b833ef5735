//! The built frontend. `make console` builds it from `console/`, and `make console-check` compares.

use bytes::Bytes;
use flate2::Compression;
use http::header::HeaderMap;
use http::{Response, StatusCode};

use crate::response::{self, ResponseBody};

/// Name, content type and bytes of each file.
const FILES: [(&str, &str, &[u8]); 4] = [
    ("index.html", "text/html; charset=utf-8", include_bytes!("../assets/index.html")),
    ("app.js", "text/javascript; charset=utf-8", include_bytes!("../assets/app.js")),
    ("app.css", "text/css; charset=utf-8", include_bytes!("../assets/app.css")),
    ("icon.svg", "image/svg+xml", include_bytes!("../assets/icon.svg")),
];

/// The files, compressed once.
#[derive(Debug)]
pub(crate) struct Assets(Vec<Asset>);

#[derive(Debug)]
struct Asset {
    name: &'static str,
    content_type: &'static str,
    plain: &'static [u8],
    packed: Bytes,
}

impl Assets {
    pub(crate) fn new() -> Self {
        let asset = |(name, content_type, plain): (&'static str, &'static str, &'static [u8])| Asset {
            name,
            content_type,
            plain,
            packed: response::gzip(plain, Compression::best()).into(),
        };
        Self(FILES.into_iter().map(asset).collect())
    }

    /// The response for a file; none if there is no such file.
    pub(crate) fn answer(&self, name: &str, accepts: &HeaderMap) -> Option<Response<ResponseBody>> {
        let asset = self.0.iter().find(|asset| asset.name == name)?;
        let is_packed = response::accepts_gzip(accepts);
        let bytes = if is_packed { asset.packed.clone() } else { Bytes::from_static(asset.plain) };
        let mut response = response::with_type(StatusCode::OK, asset.content_type, response::full(bytes));
        if is_packed {
            response::mark_compressed(&mut response);
        }
        Some(response)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_has_no_inline_code_and_names_no_other_host() {
        for (name, _, bytes) in FILES {
            let text = std::str::from_utf8(bytes).unwrap();
            assert!(!text.is_empty(), "{name}");
            if name == "index.html" {
                assert!(
                    !text.contains("onload=") && !text.contains("style=") && !text.contains("://"),
                    "{text}"
                );
                assert_eq!(
                    text.matches("<script").count(),
                    text.matches("<script type=\"module\" src=").count()
                );
            }
            if name == "app.js" {
                assert!(!text.contains("innerHTML=") && !text.contains("eval("), "{name}");
            }
        }
    }

    #[test]
    fn files_are_small() {
        let packed: usize = Assets::new().0.iter().map(|asset| asset.packed.len()).sum();
        assert!(packed < 100 * 1024, "{packed} bytes");
    }
}
