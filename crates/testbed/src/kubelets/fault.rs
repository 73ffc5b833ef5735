//! Faulty responses of a kubelet.

use std::time::Duration;

use bytes::Bytes;
use futures::stream;
use http::{Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::Frame;

/// How a kubelet responds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Behaviour {
    /// The kubelet returns its metrics.
    #[default]
    Normal,
    /// The kubelet returns its metrics after this time.
    Slow(Duration),
    /// The kubelet returns lines without end.
    Endless,
    /// The kubelet returns a body that is not in the exposition format.
    Garbage,
    /// The kubelet returns one line of this length in bytes.
    LongLine(usize),
    /// The kubelet returns metrics with timestamps of the year 1.
    WrongTimes,
    /// The kubelet returns half of the body and closes the connection.
    Truncated,
    /// The kubelet returns the body of a kubelet without statistics.
    ScrapeError,
    /// The kubelet returns this status code.
    Status(u16),
    /// The kubelet returns this body.
    Page(String),
}

pub(super) type KubeletBody = UnsyncBoxBody<Bytes, std::io::Error>;

const NO_STATISTICS: &str = "# TYPE resource_scrape_error gauge\nresource_scrape_error 1\nscrape_error 1\n";

impl Behaviour {
    /// The response for the correct page. The caller waits in the case of `Slow`.
    pub(super) fn respond(&self, page: Bytes) -> Response<KubeletBody> {
        match self {
            Self::Normal | Self::Slow(_) => ok(page),
            Self::Endless => Response::new(endless()),
            Self::Garbage => ok(Bytes::from_static(b"<html>\x00\xff{{{ not metrics }}}</html>\n")),
            Self::LongLine(length) => ok(long_line(*length)),
            Self::WrongTimes => ok(with_wrong_times(&page)),
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

/// The page with the timestamps of a container runtime that reports Go's zero time.
fn with_wrong_times(page: &[u8]) -> Bytes {
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
        let bad = with_wrong_times(page.as_bytes());
        let expected = "# TYPE a counter\na{b=\"c\"} 1.5 -62135596800000\nresource_scrape_error 0\n";
        assert_eq!(std::str::from_utf8(&bad).unwrap(), expected);
    }

    #[test]
    fn error_codes_are_returned() {
        assert_eq!(Behaviour::Status(403).respond(Bytes::new()).status().as_u16(), 403);
        assert_eq!(Behaviour::Normal.respond(Bytes::new()).status().as_u16(), 200);
    }
}
