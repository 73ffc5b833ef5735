//! `GET /plimsoll/samples?since=GENERATION&of=INCARNATION`: scrapes of this replica. `serve` authorizes the request.

use http::header::{ALLOW, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use tower::util::BoxCloneSyncService;

use super::{PATH, Sharding};
use crate::federation::{Body, Route, full};

const SAMPLES_CONTENT_TYPE: HeaderValue = HeaderValue::from_static("application/vnd.plimsoll.samples");
const TEXT_CONTENT_TYPE: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");

impl Sharding {
    /// HTTP handler for the path [`PATH`].
    pub fn route(&self) -> Route {
        let sharding = self.clone();
        BoxCloneSyncService::new(tower::service_fn(move |request: Request<Body>| {
            let answer = sharding.answer(&request);
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
        answer.headers_mut().insert(CONTENT_TYPE, SAMPLES_CONTENT_TYPE);
        answer
    }
}

/// A numeric query parameter; 0 if it is missing, `None` if it is malformed.
fn number(query: &str, name: &str) -> Option<u64> {
    let given = query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
    given.map_or(Some(0), |text| text.parse().ok())
}

fn plain(status: StatusCode, text: &'static str) -> Response<Body> {
    let mut answer = Response::new(full(text));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, TEXT_CONTENT_TYPE);
    answer
}
