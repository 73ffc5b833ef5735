//! Calls to external scalers, counted for exported metrics as KEDA does since 2.21.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use locks::MutexExt as _;
use tokio::time::Instant;
use tonic::Code;

/// Upper bounds of the buckets of durations, in seconds.
pub const CALL_BUCKETS_SECONDS: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// All calls, by trigger type and method: few series, whatever triggers name.
#[derive(Debug, Default)]
pub struct ExternalCalls(Mutex<BTreeMap<CallKey, CallCounts>>);

/// What is called, and for which trigger type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CallKey {
    /// The trigger type.
    pub scaler: &'static str,
    /// The method of the protocol.
    pub method: &'static str,
    /// `unary` or `server_stream`.
    pub grpc_type: &'static str,
}

/// Counts of one kind of call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CallCounts {
    /// Calls that were started.
    pub started: u64,
    /// Messages that were sent.
    pub sent: u64,
    /// Messages that were received.
    pub received: u64,
    /// Calls that ended, by gRPC code.
    pub handled: BTreeMap<&'static str, u64>,
    /// Calls that took at most the bound of each bucket.
    pub within: [u64; CALL_BUCKETS_SECONDS.len()],
    /// The sum of all durations, in seconds.
    pub seconds: f64,
}

/// Counts the calls of one trigger.
#[derive(Clone, Debug)]
pub(super) struct CallCounter {
    pub(super) scaler: &'static str,
    pub(super) calls: Arc<ExternalCalls>,
}

/// A call under way. If it is dropped before it has ended, a unary call has timed out, and a stream is no longer needed.
#[derive(Debug)]
pub(super) struct CountedCall {
    key: CallKey,
    calls: Arc<ExternalCalls>,
    begun: Instant,
    code: Code,
}

impl ExternalCalls {
    /// The counts of all kinds of calls.
    pub fn counts(&self) -> Vec<(CallKey, CallCounts)> {
        let all = self.0.locked();
        all.iter().map(|(key, counts)| (*key, counts.clone())).collect()
    }

    fn count(&self, key: CallKey, change: impl FnOnce(&mut CallCounts)) {
        change(self.0.locked().entry(key).or_default());
    }
}

impl CallCounter {
    pub(super) fn unary(&self, method: &'static str) -> CountedCall {
        self.start(CallKey { scaler: self.scaler, method, grpc_type: "unary" }, Code::DeadlineExceeded)
    }

    pub(super) fn stream(&self, method: &'static str) -> CountedCall {
        self.start(CallKey { scaler: self.scaler, method, grpc_type: "server_stream" }, Code::Cancelled)
    }

    fn start(&self, key: CallKey, code: Code) -> CountedCall {
        self.calls.count(key, |counts| {
            counts.started += 1;
            counts.sent += 1;
        });
        CountedCall { key, calls: Arc::clone(&self.calls), begun: Instant::now(), code }
    }
}

impl CountedCall {
    pub(super) fn received(&self) {
        self.calls.count(self.key, |counts| counts.received += 1);
    }

    pub(super) fn end(mut self, code: Code) {
        self.code = code;
    }
}

impl Drop for CountedCall {
    fn drop(&mut self) {
        let seconds = self.begun.elapsed().as_secs_f64();
        self.calls.count(self.key, |counts| {
            *counts.handled.entry(code_name(self.code)).or_default() += 1;
            counts.seconds += seconds;
            let buckets = counts.within.iter_mut().zip(CALL_BUCKETS_SECONDS);
            for (count, _) in buckets.filter(|(_, bound)| seconds <= *bound) {
                *count += 1;
            }
        });
    }
}

/// The name of a code, as gRPC for Go writes it.
fn code_name(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::Cancelled => "Canceled",
        Code::Unknown => "Unknown",
        Code::InvalidArgument => "InvalidArgument",
        Code::DeadlineExceeded => "DeadlineExceeded",
        Code::NotFound => "NotFound",
        Code::AlreadyExists => "AlreadyExists",
        Code::PermissionDenied => "PermissionDenied",
        Code::ResourceExhausted => "ResourceExhausted",
        Code::FailedPrecondition => "FailedPrecondition",
        Code::Aborted => "Aborted",
        Code::OutOfRange => "OutOfRange",
        Code::Unimplemented => "Unimplemented",
        Code::Internal => "Internal",
        Code::Unavailable => "Unavailable",
        Code::DataLoss => "DataLoss",
        Code::Unauthenticated => "Unauthenticated",
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn calls_are_counted_when_they_end() {
        let counter = CallCounter { scaler: "external", calls: Arc::default() };
        let call = counter.unary("GetMetrics");
        tokio::time::sleep(Duration::from_millis(20)).await;
        call.received();
        call.end(Code::Ok);
        drop(counter.unary("GetMetrics"));
        drop(counter.stream("StreamIsActive"));
        let counts = counter.calls.counts();
        let [(unary, calls), (stream, streams)] = counts.as_slice() else { panic!("{counts:?}") };
        assert_eq!((unary.method, unary.grpc_type), ("GetMetrics", "unary"));
        assert_eq!((calls.started, calls.sent, calls.received), (2, 2, 1));
        assert_eq!(calls.handled, [("DeadlineExceeded", 1), ("OK", 1)].into());
        assert_eq!((calls.within[0], calls.within[1], calls.within[2]), (1, 1, 2), "one took 20 ms");
        assert_eq!(stream.grpc_type, "server_stream");
        assert_eq!(streams.handled, [("Canceled", 1)].into());
    }
}
