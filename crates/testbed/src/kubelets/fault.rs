//! The ways in which a kubelet can be bad.

use std::time::Duration;

use bytes::Bytes;
use futures::stream;
use http::{Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::Frame;

/// How a kubelet answers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Behaviour {
    /// As it should.
    #[default]
    Well,
    /// As it should, but after some time.
    Slow(Duration),
    /// With lines that never end to come.
    Endless,
    /// With something that is no metric.
    Garbage,
    /// With one line of so many bytes.
    LongLine(usize),
    /// With a page whose times were a thousand years ago.
    WrongTimes,
    /// With half a page, and the connection is cut.
    Truncated,
    /// With the page of a kubelet that has no statistics.
    ScrapeError,
    /// With this code.
    Status(u16),
    /// With this page, whatever is in it.
    Page(String),
}

pub(super) type KubeletBody = UnsyncBoxBody<Bytes, std::io::Error>;

const NO_STATISTICS: &str = "# TYPE resource_scrape_error gauge\nresource_scrape_error 1\nscrape_error 1\n";

impl Behaviour {
    /// The answer, for a page that is right; how long to wait for it is up to the caller.
    pub(super) fn answer(&self, page: Bytes) -> Response<KubeletBody> {
        match self {
            Self::Well | Self::Slow(_) => ok(page),
            Self::Endless => Response::new(endless()),
            Self::Garbage => ok(Bytes::from_static(b"<html>\x00\xff{{{ not metrics }}}</html>\n")),
            Self::LongLine(length) => ok(long_line(*length)),
            Self::WrongTimes => ok(long_ago(&page)),
            Self::Truncated => Response::new(truncated(&page)),
            Self::ScrapeError => ok(Bytes::from_static(NO_STATISTICS.as_bytes())),
            Self::Status(code) => {
                let mut response = ok(Bytes::from_static(b"no\n"));
                *response.status_mut() = StatusCode::from_u16(*code).unwrap_or(StatusCode::BAD_GATEWAY);
                response
            }
            Self::Page(text) => ok(Bytes::from(text.clone())),
        }
    }
}

pub(super) fn ok(page: Bytes) -> Response<KubeletBody> {
    Response::new(Full::new(page).map_err(|never| match never {}).boxed_unsync())
}

fn endless() -> KubeletBody {
    let line = "container_cpu_usage_seconds_total{container=\"a\",namespace=\"b\",pod=\"c\"} 1\n";
    let chunk = Bytes::from(line.repeat(200));
    let frames = stream::repeat_with(move || Ok(Frame::data(chunk.clone())));
    StreamBody::new(frames).boxed_unsync()
}

fn truncated(page: &Bytes) -> KubeletBody {
    let half = page.slice(..page.len() / 2);
    let cut = Err(std::io::Error::from(std::io::ErrorKind::ConnectionReset));
    StreamBody::new(stream::iter([Ok(Frame::data(half)), cut])).boxed_unsync()
}

fn long_line(length: usize) -> Bytes {
    let mut line = String::with_capacity(length + 64);
    line.push_str("container_cpu_usage_seconds_total{container=\"");
    line.extend(std::iter::repeat_n('a', length));
    line.push_str("\",namespace=\"b\",pod=\"c\"} 1\n");
    Bytes::from(line)
}

/// The same page with the times of a runtime that has forgotten the time.
fn long_ago(page: &[u8]) -> Bytes {
    let text = String::from_utf8_lossy(page);
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        match line.rsplit_once(' ') {
            Some((rest, last)) if !line.starts_with('#') && rest.contains(' ') && last.len() == 13 => {
                out.push_str(rest);
                out.push_str(" -62135596800000");
            }
            _ => out.push_str(line),
        }
        out.push('\n');
    }
    Bytes::from(out)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn stale_page_changes_only_timestamps() {
        let page = "# TYPE a counter\na{b=\"c\"} 1.5 1633253812125\nresource_scrape_error 0\n";
        let bad = long_ago(page.as_bytes());
        let expected = "# TYPE a counter\na{b=\"c\"} 1.5 -62135596800000\nresource_scrape_error 0\n";
        assert_eq!(std::str::from_utf8(&bad).unwrap(), expected);
    }

    #[test]
    fn error_codes_are_returned() {
        assert_eq!(Behaviour::Status(403).answer(Bytes::new()).status().as_u16(), 403);
        assert_eq!(Behaviour::Well.answer(Bytes::new()).status().as_u16(), 200);
    }
}
