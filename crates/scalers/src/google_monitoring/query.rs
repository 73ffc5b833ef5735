//! Requests to Cloud Monitoring and their responses, without IO.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::ScalerError;
use crate::google_client::google_answer;
use crate::responses::excerpt;
use crate::web::{escaped, path_escaped};

const SERVER: &str = "https://monitoring.googleapis.com/v3/projects";
const PRODUCT: &str = "Cloud Monitoring";
/// Maximum number of points per page; only the first one is used.
const PAGE_SIZE: usize = 100;
/// How many minutes back points count by default.
const DEFAULT_MINUTES: i64 = 2;

/// How points become one per period, and several time series one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Alignment {
    /// Period in seconds.
    pub(crate) period: i64,
    /// In lower case and without `ALIGN_`, e.g. `mean`; `none` if empty.
    pub(crate) aligner: String,
    /// In lower case and without `REDUCE_`, e.g. `sum`; `none` if empty.
    pub(crate) reducer: String,
}

/// A filter of time series.
pub(crate) struct SeriesFilter<'a> {
    pub(crate) project: &'a str,
    pub(crate) filter: &'a str,
    /// How many minutes back points count; the default if it is not positive.
    pub(crate) minutes: i64,
    pub(crate) alignment: Option<&'a Alignment>,
}

impl SeriesFilter<'_> {
    /// The URL of a page of time series, newest points first.
    pub(super) fn url(&self, now: Timestamp, token: &str) -> Result<String, ScalerError> {
        if !is_project(self.project) {
            bail!("{:?} is not the id of a project of Google Cloud", self.project);
        }
        let end = now.as_second();
        let start = end.saturating_sub(self.minutes().saturating_mul(60)).max(0);
        let time = |second| Timestamp::from_second(second).unwrap_or(now).to_string();
        Ok(format!(
            "{}&interval.startTime={}&interval.endTime={}",
            self.url_without_times(token),
            escaped(&time(start)),
            escaped(&time(end))
        ))
    }

    /// What equal requests have in common; their times differ.
    pub(super) fn same_as(&self, token: &str) -> String {
        format!("{} {}", self.minutes(), self.url_without_times(token))
    }

    fn minutes(&self) -> i64 {
        if self.minutes > 0 { self.minutes } else { DEFAULT_MINUTES }
    }

    fn url_without_times(&self, token: &str) -> String {
        let project = self.project;
        let filter = format!(r#"{} AND resource.labels.project_id="{project}""#, self.filter);
        let mut url = format!(
            "{SERVER}/{}/timeSeries?filter={}&pageSize={PAGE_SIZE}",
            path_escaped(project),
            escaped(&filter)
        );
        if let Some(Alignment { period, aligner, reducer }) = self.alignment {
            let name = |prefix: &str, text: &str| {
                let text = if text.is_empty() { "none" } else { text };
                escaped(&format!("{prefix}{}", text.to_uppercase()))
            };
            url.push_str(&format!(
                "&aggregation.alignmentPeriod={period}s&aggregation.perSeriesAligner={}\
                 &aggregation.crossSeriesReducer={}",
                name("ALIGN_", aligner),
                name("REDUCE_", reducer)
            ));
        }
        if !token.is_empty() {
            url.push_str(&format!("&pageToken={}", escaped(token)));
        }
        url
    }
}

/// Whether a text can be the id of a project, such as `shop-1` or `example.com:shop`.
pub(super) fn is_project(text: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | ':' | '_');
    (1..=128).contains(&text.len()) && text.chars().all(allowed)
}

/// Where queries are sent.
pub(super) fn query_url(project: &str) -> Result<String, ScalerError> {
    if !is_project(project) {
        bail!("{project:?} is not the id of a project of Google Cloud");
    }
    Ok(format!("{SERVER}/{}/timeSeries:query", path_escaped(project)))
}

/// The body of a query, for a page with one time series.
pub(super) fn query_body(query: &str, token: &str) -> String {
    match token {
        "" => json!({"query": query, "pageSize": 1}).to_string(),
        token => json!({"query": query, "pageSize": 1, "pageToken": token}).to_string(),
    }
}

/// What a page has.
#[derive(Debug, PartialEq)]
pub(super) enum MonitoringPage {
    /// The newest point of the first time series.
    Value(f64),
    /// No time series yet, and the token of the next page.
    Next(String),
    /// No time series, or one without points.
    Nothing,
}

/// Reads a page of time series.
pub(super) fn listed(status: u16, body: &[u8]) -> Result<MonitoringPage, ScalerError> {
    let answer = google_answer(PRODUCT, status, body)?;
    page(&answer, "timeSeries", "/points/0", "/value", "executionErrors")
}

/// Reads a page of the answer of a query.
pub(super) fn queried(status: u16, body: &[u8]) -> Result<MonitoringPage, ScalerError> {
    let answer = google_answer(PRODUCT, status, body)?;
    page(&answer, "timeSeriesData", "/pointData/0", "/values/0", "partialErrors")
}

fn page(
    answer: &Value,
    list: &str,
    point: &str,
    value: &str,
    errors: &str,
) -> Result<MonitoringPage, ScalerError> {
    let first = match answer.get(list) {
        None | Some(Value::Null) => None,
        Some(Value::Array(all)) => all.first(),
        Some(_) => bail!("the answer of {PRODUCT} has no list in {list}"),
    };
    if let Some(point) = first.and_then(|series| series.pointer(point)) {
        return number(point.pointer(value)).map(MonitoringPage::Value);
    }
    // Without data an error of a part is an error: the value may be there, but could not be read.
    if let Some(failed) = answer.get(errors).and_then(Value::as_array).and_then(|all| all.first()) {
        let message = failed.get("message").and_then(Value::as_str).unwrap_or_default();
        bail!("{PRODUCT} could not read the time series: {}", excerpt(message));
    }
    match answer.get("nextPageToken").and_then(Value::as_str) {
        Some(token) if !token.is_empty() && first.is_none() => Ok(MonitoringPage::Next(token.to_owned())),
        _ => Ok(MonitoringPage::Nothing),
    }
}

/// A number; integers are strings in JSON, because they have 64 bits.
fn number(value: Option<&Value>) -> Result<f64, ScalerError> {
    let field = |name: &str| value.and_then(|value| value.get(name));
    let double = field("doubleValue").and_then(Value::as_f64);
    let integer = || match field("int64Value") {
        Some(Value::String(text)) => text.parse::<i64>().ok(),
        Some(number) => number.as_i64(),
        None => None,
    };
    let found = double.or_else(|| integer().map(|number| number as f64));
    found.filter(|number| number.is_finite()).ok_or_else(|| {
        scaler_error!("the point of the time series is not a number (neither doubleValue nor int64Value)")
    })
}
