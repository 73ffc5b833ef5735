//! `GET /plimsoll/samples?since=GENERATION&of=INCARNATION`: what this replica scraped. Whoever may ask is `serve`'s matter.

use http::header::{ALLOW, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use tower::util::BoxCloneSyncService;

use super::{PATH, Shares};
use crate::federation::{Body, Route, full};

const SAMPLES: HeaderValue = HeaderValue::from_static("application/vnd.plimsoll.samples");
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");

impl Shares {
    /// What answers the other replicas, for the path [`PATH`].
    pub fn route(&self) -> Route {
        let shares = self.clone();
        BoxCloneSyncService::new(tower::service_fn(move |request: Request<Body>| {
            let answer = shares.answer(&request);
            async move { Ok(answer) }
        }))
    }

    fn answer(&self, request: &Request<Body>) -> Response<Body> {
        if request.uri().path().trim_end_matches('/') != PATH {
            return plain(StatusCode::NOT_FOUND, "404 page not found\n");
        }
        if request.method() != Method::GET {
            let mut answer = plain(StatusCode::METHOD_NOT_ALLOWED, "only GET is allowed\n");
            answer.headers_mut().insert(ALLOW, HeaderValue::from_static("GET"));
            return answer;
        }
        let query = request.uri().query().unwrap_or_default();
        let (Some(since), Some(of)) = (number(query, "since"), number(query, "of")) else {
            return plain(StatusCode::BAD_REQUEST, "since and of must be numbers\n");
        };
        let mut answer = Response::new(full(self.page(since, of)));
        answer.headers_mut().insert(CONTENT_TYPE, SAMPLES);
        answer
    }
}

/// A number of the query; 0 if it is not given, none if it is something else.
fn number(query: &str, name: &str) -> Option<u64> {
    let given = query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
    given.map_or(Some(0), |text| text.parse().ok())
}

fn plain(status: StatusCode, text: &'static str) -> Response<Body> {
    let mut answer = Response::new(full(text));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, TEXT);
    answer
}
