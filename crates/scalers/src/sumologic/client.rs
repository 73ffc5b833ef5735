//! Sends metric queries, and creates, follows and deletes search jobs.

use std::sync::Arc;
use std::time::Duration;

use http::header::SET_COOKIE;
use http::{HeaderMap, Method};
use sources::http::HttpResponse;

use super::query::{self, QueryRange, SearchJob};
use crate::ScalerError;
use crate::parameters::Secret;
use crate::web::{HttpCall, SharedHttpClient, path_escaped};

/// Maximum number of records of a search job; an aggregate query has few.
const MAX_RECORDS: u64 = 10_000;
/// How long the records of a search job are waited for.
const MAX_JOB_TIME: Duration = Duration::from_mins(2);
/// The shortest time between two requests for the state of a search job.
const MIN_POLLING_INTERVAL: Duration = Duration::from_millis(100);
/// Maximum number of attempts of a request.
const MAX_ATTEMPTS: usize = 5;
/// Number of attempts if the trigger has no positive one, as in KEDA.
const DEFAULT_ATTEMPTS: usize = 3;
/// Pause after the first failed attempt; it doubles after each further one.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// Maximum number of cookies that are sent back.
const MAX_COOKIES: usize = 16;

/// The API of Sumo Logic with credentials.
pub(super) struct SumoLogicClient {
    pub(super) host: String,
    pub(super) access_id: String,
    pub(super) access_key: Secret,
    pub(super) unsafe_ssl: bool,
    pub(super) attempts: isize,
    pub(super) polling_interval: Duration,
    pub(super) within: Duration,
    pub(super) web: Arc<SharedHttpClient>,
}

impl SumoLogicClient {
    /// Sends a metric query; returns status and body of the response.
    pub(super) async fn metrics(&self, request_body: String) -> Result<HttpResponse, ScalerError> {
        self.send(Method::POST, query::metrics_url(&self.host), request_body, "").await
    }

    /// Runs a search job; returns the numbers in a field of its records, none without records.
    pub(super) async fn logs(
        &self,
        (search, zone): (&str, &str),
        range: &QueryRange,
        field: &str,
    ) -> Result<Option<Vec<f64>>, ScalerError> {
        let jobs = query::jobs_url(&self.host);
        let request_body = query::job_body(search, range, zone);
        let answer = self.send(Method::POST, jobs.clone(), request_body, "").await?;
        let id = query::job_id(answer.status.as_u16(), &answer.body)?;
        let job = format!("{jobs}/{}", path_escaped(&id));
        // The node that runs the job is in a cookie.
        let cookies = cookies(&answer.headers);
        let numbers = self.finished(&job, &cookies, field).await;
        // A job that cannot be deleted ends by itself when its state is not requested any more.
        let _ = self.send(Method::DELETE, job, String::new(), &cookies).await;
        numbers
    }

    async fn finished(&self, job: &str, cookies: &str, field: &str) -> Result<Option<Vec<f64>>, ScalerError> {
        let interval = self.polling_interval.clamp(MIN_POLLING_INTERVAL, MAX_JOB_TIME);
        let polls = MAX_JOB_TIME.as_millis() / interval.as_millis().max(1);
        for _ in 0..=polls {
            let answer = self.send(Method::GET, job.to_owned(), String::new(), cookies).await?;
            match query::job(answer.status.as_u16(), &answer.body)? {
                SearchJob::Gathering => tokio::time::sleep(interval).await,
                SearchJob::Done(0) => return Ok(None),
                SearchJob::Done(count) if count > MAX_RECORDS => {
                    bail!(
                        "the search job has {count} records, at most {MAX_RECORDS} are read: aggregate more"
                    );
                }
                SearchJob::Done(count) => {
                    let url = format!("{job}/records?offset=0&limit={count}");
                    let answer = self.send(Method::GET, url, String::new(), cookies).await?;
                    return query::records(answer.status.as_u16(), &answer.body, field).map(Some);
                }
            }
        }
        Err(scaler_error!("the search job is not done after {} s", MAX_JOB_TIME.as_secs()))
    }

    /// Sends a request, again if it failed for a reason that may pass.
    async fn send(
        &self,
        method: Method,
        url: String,
        body: String,
        cookies: &str,
    ) -> Result<HttpResponse, ScalerError> {
        let given = usize::try_from(self.attempts).ok().filter(|attempts| *attempts > 0);
        let attempts = given.unwrap_or(DEFAULT_ATTEMPTS).min(MAX_ATTEMPTS);
        let mut call = HttpCall::post(url, body, self.within)
            .basic(&self.access_id, &self.access_key)
            .unsafe_ssl(self.unsafe_ssl)
            // The state of a job changes, so that responses are not shared.
            .alone()
            .header("accept", "application/json")?;
        if !call.body.is_empty() {
            call = call.header("content-type", "application/json")?;
        }
        if !cookies.is_empty() {
            call = call.header("cookie", cookies)?;
        }
        let call = HttpCall { method, ..call };
        let mut pause = FIRST_PAUSE;
        for _ in 1..attempts {
            let answer = self.web.send(call.clone()).await?;
            if !query::is_transient(answer.status.as_u16()) {
                return Ok(answer);
            }
            tokio::time::sleep(pause).await;
            pause = pause.saturating_mul(2);
        }
        Ok(self.web.send(call).await?)
    }
}

/// The header `Cookie` for the cookies that a response sets.
fn cookies(headers: &HeaderMap) -> String {
    let set = headers.get_all(SET_COOKIE).iter().filter_map(|cookie| cookie.to_str().ok());
    let pairs = set.filter_map(|cookie| cookie.split(';').next()).map(str::trim);
    let pairs: Vec<&str> = pairs.filter(|pair| pair.contains('=')).take(MAX_COOKIES).collect();
    pairs.join("; ")
}
