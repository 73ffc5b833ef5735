//! Traces: spans are made and sent by a task of their own. Nobody waits for it: traces that do not fit into its queue are dropped
//! and counted.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::mpsc;
use tokio::time::sleep;

use crate::exporter::ExportLog;
use crate::metrics::nanoseconds;
use crate::transport::Collector;
use crate::wire::{
    INTERNAL, KeyValue, Resource, ResourceSpans, STATUS_ERROR, Scope, ScopeSpans, Span, SpanStatus,
    TracesRequest,
};

/// Traces that wait to be sent.
const MAX_QUEUED_TRACES: usize = 2048;
/// Traces whose spans are made at once.
const MAX_TRACES_PER_BATCH: usize = 128;
/// Size of the spans of one request, in bytes: collectors refuse messages of more than 4 MiB by default.
const MAX_REQUEST_BYTES: usize = 3 << 20;

/// Makes the spans of a trace, on a thread of its own.
type MakeSpans = Box<dyn FnOnce() -> Vec<Span> + Send>;

/// Queues traces. Cheap to clone; all clones are the same.
#[derive(Clone, Debug)]
pub struct TraceSender {
    queue: mpsc::Sender<MakeSpans>,
    dropped: Arc<AtomicU64>,
}

impl TraceSender {
    /// Queues a trace, whose spans are made later. It is dropped if the queue is full.
    pub fn send(&self, spans: impl FnOnce() -> Vec<Span> + Send + 'static) {
        if self.queue.try_send(Box::new(spans)).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How many traces were not exported, because the queue was full or a request failed.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

/// Spans that are sent together.
#[derive(Default)]
struct SpanBatch {
    spans: Vec<Span>,
    bytes: usize,
    /// Number of traces whose first span is one of them.
    traces: u64,
}

/// Exports queued traces.
pub struct TraceExport {
    collector: Collector,
    resource: Resource,
    scope: Scope,
    /// How long a trace waits for others that are sent with it.
    delay: Duration,
    queued: mpsc::Receiver<MakeSpans>,
    dropped: Arc<AtomicU64>,
}

impl TraceExport {
    /// An exporter and its queue. `resource` are the attributes of this process, `tracer` names the scope.
    pub fn new(
        collector: Collector,
        resource: Vec<KeyValue>,
        tracer: &str,
        delay: Duration,
    ) -> (TraceSender, Self) {
        let (queue, queued) = mpsc::channel(MAX_QUEUED_TRACES);
        let dropped = Arc::<AtomicU64>::default();
        let export = Self {
            collector,
            resource: Resource { attributes: resource },
            scope: Scope { name: tracer.to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() },
            delay,
            queued,
            dropped: Arc::clone(&dropped),
        };
        (TraceSender { queue, dropped }, export)
    }

    /// Exports until the future is dropped.
    pub async fn run(mut self) {
        let mut log = ExportLog::new("traces");
        while let Some(first) = self.queued.recv().await {
            sleep(self.delay).await;
            let mut next = Some(first);
            while let Some(first) = next {
                let mut batch = vec![first];
                while batch.len() < MAX_TRACES_PER_BATCH
                    && let Ok(more) = self.queued.try_recv()
                {
                    batch.push(more);
                }
                let count = batch.len() as u64;
                let make = move || batches(batch.into_iter().map(|make| make()));
                match tokio::task::spawn_blocking(make).await {
                    Ok(batches) => {
                        for batch in batches {
                            self.export(batch, &mut log).await;
                        }
                    }
                    Err(error) => {
                        self.dropped.fetch_add(count, Ordering::Relaxed);
                        log.note(&Err(error.into()));
                    }
                }
                next = self.queued.try_recv().ok();
            }
        }
    }

    async fn export(&self, batch: SpanBatch, log: &mut ExportLog) {
        let scope_spans = vec![ScopeSpans { scope: Some(self.scope.clone()), spans: batch.spans }];
        let of_process = ResourceSpans { resource: Some(self.resource.clone()), scope_spans };
        let result = self.collector.send(TracesRequest { resource_spans: vec![of_process] }).await;
        if result.is_err() {
            self.dropped.fetch_add(batch.traces, Ordering::Relaxed);
        }
        log.note(&result);
    }
}

/// The spans of traces in batches of bounded size, so that one large trace does not lose the others. None is empty.
fn batches(traces: impl Iterator<Item = Vec<Span>>) -> Vec<SpanBatch> {
    let (mut full, mut batch) = (Vec::new(), SpanBatch::default());
    for trace in traces {
        for (at, span) in trace.into_iter().enumerate() {
            let bytes = prost::Message::encoded_len(&span);
            if !batch.spans.is_empty() && batch.bytes + bytes > MAX_REQUEST_BYTES {
                full.push(std::mem::take(&mut batch));
            }
            batch.bytes += bytes;
            batch.traces += u64::from(at == 0);
            batch.spans.push(span);
        }
    }
    if !batch.spans.is_empty() {
        full.push(batch);
    }
    full
}

/// The spans of one trace.
#[derive(Clone, Debug)]
pub struct TraceSpans {
    trace_id: Vec<u8>,
    first_id: u64,
    spans: Vec<Span>,
}

/// When a span began and ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpanTimes {
    /// When it began.
    pub start: Timestamp,
    /// When it ended.
    pub end: Timestamp,
}

/// A span of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpanIndex(usize);

impl TraceSpans {
    /// A trace with a random id; `seed` is mixed into it.
    pub fn new(seed: u64) -> Self {
        let random = RandomState::new();
        let (high, low) = (random.hash_one((seed, 0)), random.hash_one((seed, 1)));
        // An id of zeros is invalid.
        let trace_id = [high.to_be_bytes(), (low | 1).to_be_bytes()].concat();
        Self { trace_id, first_id: random.hash_one((seed, 2)) | 1, spans: Vec::new() }
    }

    /// Adds a span; without a parent it is the first one.
    pub fn add(&mut self, parent: Option<SpanIndex>, name: &str, times: SpanTimes) -> SpanIndex {
        let index = self.spans.len();
        let parent = parent.and_then(|SpanIndex(parent)| self.spans.get(parent));
        let span = Span {
            trace_id: self.trace_id.clone(),
            // Odd numbers are not zero.
            span_id: self.first_id.wrapping_add(2 * index as u64).to_be_bytes().to_vec(),
            parent_span_id: parent.map(|parent| parent.span_id.clone()).unwrap_or_default(),
            name: name.to_owned(),
            kind: INTERNAL,
            start_time_unix_nano: nanoseconds(times.start),
            end_time_unix_nano: nanoseconds(times.end),
            attributes: Vec::new(),
            status: None,
        };
        self.spans.push(span);
        SpanIndex(index)
    }

    /// Sets the attributes of a span.
    pub fn set_attributes(&mut self, SpanIndex(index): SpanIndex, attributes: Vec<KeyValue>) {
        if let Some(span) = self.spans.get_mut(index) {
            span.attributes = attributes;
        }
    }

    /// Marks a span as failed.
    pub fn set_error(&mut self, SpanIndex(index): SpanIndex, message: impl Into<String>) {
        if let Some(span) = self.spans.get_mut(index) {
            span.status = Some(SpanStatus { message: message.into(), code: STATUS_ERROR });
        }
    }

    /// The spans.
    pub fn into_spans(self) -> Vec<Span> {
        self.spans
    }
}

#[cfg(test)]
mod tests {
    use prost::Message as _;

    use super::*;

    /// The bytes were put together by hand from the field numbers and wire types of opentelemetry-proto.
    #[test]
    fn span_has_the_bytes_of_the_protocol() {
        let span = Span {
            trace_id: vec![1, 2],
            span_id: vec![3],
            parent_span_id: vec![4],
            name: "w".to_owned(),
            kind: INTERNAL,
            start_time_unix_nano: 1,
            end_time_unix_nano: 2,
            attributes: vec![KeyValue::integer("k", 5)],
            status: Some(SpanStatus { message: "e".to_owned(), code: STATUS_ERROR }),
        };
        #[rustfmt::skip]
        let expected = [
            0x0a, 0x02, 1, 2,                                     // trace_id (1)
            0x12, 0x01, 3,                                        // span_id (2)
            0x22, 0x01, 4,                                        // parent_span_id (4)
            0x2a, 0x01, b'w',                                     // name (5)
            0x30, 0x01,                                           // kind (6): internal
            0x39, 1, 0, 0, 0, 0, 0, 0, 0,                         // start_time_unix_nano (7), fixed64
            0x41, 2, 0, 0, 0, 0, 0, 0, 0,                         // end_time_unix_nano (8), fixed64
            0x4a, 0x07, 0x0a, 0x01, b'k', 0x12, 0x02, 0x18, 0x05, // attributes (9): key (1), value (2): int_value (3)
            0x7a, 0x05, 0x12, 0x01, b'e', 0x18, 0x02,             // status (15): message (2), code (3): error
        ];
        assert_eq!(span.encode_to_vec(), expected);
    }

    #[test]
    fn batches_are_bounded_by_bytes() {
        let times = SpanTimes { start: Timestamp::UNIX_EPOCH, end: Timestamp::UNIX_EPOCH };
        let mib = 1 << 20;
        let trace = |sizes: &[usize]| {
            let mut trace = TraceSpans::new(1);
            for size in sizes {
                let span = trace.add(None, "s", times);
                trace.set_attributes(span, vec![KeyValue::text("k", "x".repeat(*size))]);
            }
            trace.into_spans()
        };
        let traces = [
            trace(&[]),
            trace(&[mib, mib]),
            trace(&[mib, 10]),
            trace(&[10]),
            // One span is never divided.
            trace(&[4 * mib]),
            trace(&[10]),
        ];
        let sent = batches(traces.into_iter());
        let sent: Vec<_> = sent.iter().map(|batch| (batch.spans.len(), batch.traces)).collect();
        assert_eq!(sent, [(2, 1), (3, 2), (1, 1), (1, 1)]);
        assert!(batches(std::iter::empty()).is_empty());
    }

    #[test]
    fn full_queue_drops_traces() {
        let (queue, queued) = mpsc::channel(1);
        let sender = TraceSender { queue, dropped: Arc::default() };
        sender.send(Vec::new);
        assert_eq!(sender.dropped(), 0);
        sender.send(Vec::new);
        sender.send(Vec::new);
        assert_eq!(sender.dropped(), 2);
        drop(queued);
    }
}
