//! Counts of requests and their durations, for the exported metrics.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time;

use locks::MutexExt as _;

use crate::access::{RequestAttributes, RequestTarget};
use crate::api_group::ApiGroupVersion;

/// Counts and durations by labels. Labels have only names that this server knows, so that clients cannot create many.
#[derive(Debug, Default)]
pub struct RequestMetrics {
    counts: Mutex<BTreeMap<(RequestLabels, u16), u64>>,
    durations: Mutex<BTreeMap<RequestLabels, DurationSum>>,
    running: AtomicUsize,
}

/// The labels of `apiserver_request_total`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RequestLabels {
    verb: &'static str,
    group: String,
    version: String,
    resource: String,
    subresource: &'static str,
    scope: &'static str,
}

#[derive(Clone, Debug, Default)]
struct DurationSum {
    seconds: f64,
    within: [u64; RequestDurations::BOUNDS.len()],
    count: u64,
}

/// The number of requests with equal labels and status code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestCount {
    /// `GET`, `LIST`, … in capitals.
    pub verb: &'static str,
    /// API group; empty for other paths.
    pub group: String,
    /// Its version.
    pub version: String,
    /// Resource, `*` where metrics are resources, empty for other paths.
    pub resource: String,
    /// Subresource.
    pub subresource: &'static str,
    /// `cluster`, `namespace`, `resource` or empty.
    pub scope: &'static str,
    /// HTTP code.
    pub code: u16,
    /// The number of requests.
    pub count: u64,
}

/// The durations of requests with equal labels.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestDurations {
    /// `GET`, `LIST`, … in capitals.
    pub verb: &'static str,
    /// API group; empty for other paths.
    pub group: String,
    /// Its version.
    pub version: String,
    /// Resource, `*` where metrics are resources, empty for other paths.
    pub resource: String,
    /// Subresource.
    pub subresource: &'static str,
    /// `cluster`, `namespace`, `resource` or empty.
    pub scope: &'static str,
    /// The sum, in seconds.
    pub seconds: f64,
    /// The cumulative counts of the buckets.
    pub within: [u64; Self::BOUNDS.len()],
    /// The number of requests.
    pub count: u64,
}

impl RequestDurations {
    /// The upper bounds of the buckets, in seconds.
    pub const BOUNDS: [f64; 14] =
        [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0];
}

/// A request that runs until this is dropped.
#[derive(Debug)]
pub(crate) struct RunningRequest<'a>(&'a RequestMetrics);

impl Drop for RunningRequest<'_> {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::Relaxed);
    }
}

impl RequestMetrics {
    /// The counts of all requests.
    pub fn counts(&self) -> Vec<RequestCount> {
        let counts = self.counts.locked();
        let each = counts.iter().map(|((requested, code), count)| {
            let RequestLabels { verb, group, version, resource, subresource, scope } = requested.clone();
            RequestCount { verb, group, version, resource, subresource, scope, code: *code, count: *count }
        });
        each.collect()
    }

    /// The durations of all requests.
    pub fn durations(&self) -> Vec<RequestDurations> {
        let durations = self.durations.locked();
        let each = durations.iter().map(|(requested, sum)| {
            let RequestLabels { verb, group, version, resource, subresource, scope } = requested.clone();
            let DurationSum { seconds, within, count } = sum.clone();
            RequestDurations { verb, group, version, resource, subresource, scope, seconds, within, count }
        });
        each.collect()
    }

    /// The number of requests under way.
    pub fn running(&self) -> usize {
        self.running.load(Ordering::Relaxed)
    }

    pub(crate) fn begin(&self) -> RunningRequest<'_> {
        self.running.fetch_add(1, Ordering::Relaxed);
        RunningRequest(self)
    }

    pub(crate) fn count(&self, requested: RequestLabels, code: u16, took: time::Duration) {
        let seconds = took.as_secs_f64();
        let mut durations = self.durations.locked();
        let sum = durations.entry(requested.clone()).or_default();
        sum.seconds += seconds;
        sum.count += 1;
        for (count, _) in
            sum.within.iter_mut().zip(RequestDurations::BOUNDS).filter(|(_, bound)| seconds <= *bound)
        {
            *count += 1;
        }
        drop(durations);
        let mut counts = self.counts.locked();
        *counts.entry((requested, code)).or_default() += 1;
    }
}

impl RequestLabels {
    /// The labels of a request to these groups.
    pub(crate) fn of(wanted: &RequestAttributes, groups: &[ApiGroupVersion]) -> Self {
        let verb = verb(&wanted.verb);
        let RequestTarget::Resource(of) = &wanted.target else { return Self { verb, ..Self::default() } };
        let Some(group) = groups.iter().find(|it| it.name == of.group && it.version == of.version) else {
            return Self { verb, ..Self::default() };
        };
        let (name, version) = (group.name.clone(), group.version.clone());
        let scope = match (of.namespace.is_empty(), of.name.is_empty()) {
            (_, false) => "resource",
            (false, true) => "namespace",
            (true, true) => "cluster",
        };
        if group.listing.is_some() {
            // Every metric is a resource; all are counted together, as lists.
            let verb = if verb == "GET" { "LIST" } else { verb };
            return Self { verb, group: name, version, resource: "*".to_owned(), subresource: "*", scope };
        }
        let known = group.resources.iter().any(|own| own.name == of.resource);
        let resource = if known { of.resource.clone() } else { String::new() };
        Self { verb, group: name, version, resource, subresource: "", scope }
    }
}

fn verb(verb: &str) -> &'static str {
    match verb {
        "get" => "GET",
        "list" => "LIST",
        "watch" => "WATCH",
        "create" | "post" => "POST",
        "update" | "put" => "PUT",
        "patch" => "PATCH",
        "delete" => "DELETE",
        "deletecollection" => "DELETECOLLECTION",
        "head" => "HEAD",
        "options" => "OPTIONS",
        _ => "other",
    }
}
