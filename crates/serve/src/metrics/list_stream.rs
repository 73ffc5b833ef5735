//! Long lists, encoded chunk by chunk while earlier chunks are sent.
//!
//! A JSON list is never in memory as a whole. A protobuf list begins with its length, so two threads encode it before
//! the first byte is sent; the objects are dropped as they are encoded.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use api::provider::{ObjectChunk, ObjectChunks};
use bytes::Bytes;
use http::Response;
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt as _;
use locks::MutexExt as _;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;

use super::usage::{JsonWriter, Measured, ProtobufWriter, ResponseContext, UsageList, head};
use super::{Freshness, sent_many};
use crate::encode::{Choice, Encoding, protobuf};
use crate::response::{self, Body, BodyError};
use crate::status::Status;

/// The size of a chunk.
const CHUNK_BYTES: usize = 128 * 1024;

/// Extra capacity, because a chunk ends with the object that fills it.
const CHUNK_MARGIN_BYTES: usize = 4096;

/// How many chunks may wait to be sent.
const MAX_WAITING_CHUNKS: usize = 4;

/// How many objects are taken from the source at once.
const BATCH_OBJECTS: usize = 512;

/// How many threads encode a protobuf list.
const PROTOBUF_WRITERS: usize = 2;

/// The objects of a list, in batches.
pub(super) struct ListSource<T> {
    parts: ObjectChunks<T>,
    part: std::vec::IntoIter<T>,
    context: ResponseContext,
    freshness: Arc<Freshness>,
}

impl<T: Measured> ListSource<T> {
    pub(super) fn new(parts: ObjectChunks<T>, context: ResponseContext, freshness: Arc<Freshness>) -> Self {
        Self { parts, part: Vec::new().into_iter(), context, freshness }
    }

    /// Whether no objects are left.
    fn is_empty(&mut self) -> bool {
        while self.part.len() == 0 {
            let Some(part) = self.parts.next() else { return true };
            self.part = part().into_iter();
        }
        false
    }

    /// The whole list, after the objects that were taken before.
    pub(super) async fn whole(mut self, first: Vec<T>) -> UsageList<T> {
        let mut items = first;
        for some in self.by_ref() {
            items.extend(some);
            // Lets other tasks run.
            tokio::task::yield_now().await;
        }
        UsageList { context: self.context, items }
    }
}

impl<T: Measured> Iterator for ListSource<T> {
    type Item = Vec<T>;

    /// The next batch.
    fn next(&mut self) -> Option<Vec<T>> {
        let mut some = Vec::new();
        while some.len() < BATCH_OBJECTS && !self.is_empty() {
            some.extend(self.part.by_ref().take(BATCH_OBJECTS - some.len()));
        }
        self.freshness.note(self.context.now, some.iter().map(Measured::timestamp));
        (!some.is_empty()).then_some(some)
    }
}

/// A response with a list of any length.
pub(super) async fn sent<T: Measured>(
    mut source: ListSource<T>,
    choice: Choice,
) -> Result<Response<Body>, Status> {
    let first = source.next().unwrap_or_default();
    if source.is_empty() || choice.pretty || choice.encoding == Encoding::Yaml {
        let list = source.whole(first).await;
        let count = list.items.len();
        return sent_many(list, count, choice).await;
    }
    let body = match choice.encoding {
        Encoding::Protobuf => measured(first, source).await?,
        Encoding::Json | Encoding::Yaml => streamed(JsonChunks::new(first, source)),
    };
    Ok(response::with_type(200, choice.encoding.content_type(), body))
}

/// The JSON text of a list in chunks.
struct JsonChunks<T> {
    writer: JsonWriter,
    /// The next objects; none if the end has been written.
    some: Option<std::vec::IntoIter<T>>,
    source: ListSource<T>,
    out: Vec<u8>,
    behind_another: bool,
}

impl<T: Measured> JsonChunks<T> {
    fn new(first: Vec<T>, source: ListSource<T>) -> Self {
        let mut out = Vec::with_capacity(CHUNK_BYTES + CHUNK_MARGIN_BYTES);
        head(&mut out, &UsageList::<T>::kind_of(&source.context));
        let writer = JsonWriter::new(source.context.now);
        Self { writer, some: Some(first.into_iter()), source, out, behind_another: false }
    }

    fn is_last(&self) -> bool {
        self.some.is_none()
    }

    /// The next chunk; all but the last are large enough to be compressed.
    fn piece(&mut self) -> Bytes {
        while let Some(some) = &mut self.some {
            for item in some {
                if std::mem::replace(&mut self.behind_another, true) {
                    self.out.push(b',');
                }
                self.out.push(b'{');
                self.writer.fields(&mut self.out, &item);
                if self.out.len() >= CHUNK_BYTES {
                    return std::mem::replace(
                        &mut self.out,
                        Vec::with_capacity(CHUNK_BYTES + CHUNK_MARGIN_BYTES),
                    )
                    .into();
                }
            }
            self.some = self.source.next().map(Vec::into_iter);
        }
        self.out.extend_from_slice(b"]}\n");
        std::mem::take(&mut self.out).into()
    }
}

/// A body that is encoded while it is sent.
fn streamed<T: Measured>(mut pieces: JsonChunks<T>) -> Body {
    let first = pieces.piece();
    if pieces.is_last() {
        return response::full(first);
    }
    let (sender, rest) = mpsc::channel(MAX_WAITING_CHUNKS);
    tokio::spawn(async move {
        loop {
            // No thread waits for a client that reads slowly.
            let pass = sender.clone();
            let written = tokio::task::spawn_blocking(move || {
                let more = fill(&mut pieces, &pass);
                (pieces, more)
            });
            let Ok((back, Some(piece))) = written.await else { return };
            pieces = back;
            let last = piece.last;
            if sender.send(piece).await.is_err() || last {
                return;
            }
        }
    });
    StreamedBody { first: Some(first), rest, done: false }.boxed_unsync()
}

/// Encodes until the channel is full and returns the chunk that did not fit; none at the end, or if the client is gone.
fn fill<T: Measured>(pieces: &mut JsonChunks<T>, sender: &mpsc::Sender<Chunk>) -> Option<Chunk> {
    while !pieces.is_last() {
        let bytes = pieces.piece();
        match sender.try_send(Chunk { bytes, last: pieces.is_last() }) {
            Ok(()) => {}
            Err(TrySendError::Full(piece)) => return Some(piece),
            Err(TrySendError::Closed(_)) => return None,
        }
    }
    None
}

struct Chunk {
    bytes: Bytes,
    last: bool,
}

/// Ends without an error only after the last chunk, so that a truncated list is not taken for a whole one.
struct StreamedBody {
    first: Option<Bytes>,
    rest: mpsc::Receiver<Chunk>,
    done: bool,
}

impl http_body::Body for StreamedBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(Ok(Frame::data(first))));
        }
        if self.done {
            return Poll::Ready(None);
        }
        self.rest.poll_recv(context).map(|piece| {
            self.done = piece.as_ref().is_none_or(|piece| piece.last);
            let piece = piece.ok_or_else(|| BodyError::from("the response could not be encoded"));
            Some(piece.map(|piece| Frame::data(piece.bytes)))
        })
    }

    fn is_end_stream(&self) -> bool {
        self.done
    }

    /// More follows what is written.
    fn size_hint(&self) -> SizeHint {
        let mut hint = SizeHint::new();
        hint.set_lower(self.first.as_ref().map_or(0, |first| first.len() as u64 + 1));
        hint
    }
}

/// A protobuf list: several threads encode parts, which are joined in order.
async fn measured<T: Measured>(first: Vec<T>, source: ListSource<T>) -> Result<Body, Status> {
    let ListSource { parts, part, context, freshness } = source;
    let kind = UsageList::<T>::kind_of(&context);
    // The ages of the first batch are recorded already.
    let begun: [ObjectChunk<T>; 2] = [Box::new(move || first), Box::new(move || part.collect())];
    let all = Arc::new(Mutex::new(begun.into_iter().chain(parts).enumerate()));
    let writers: Vec<_> = (0..PROTOBUF_WRITERS)
        .map(|_| {
            let (all, now, freshness) = (Arc::clone(&all), context.now, Arc::clone(&freshness));
            tokio::task::spawn_blocking(move || {
                let (mut writer, mut written) = (ProtobufWriter::new(now), Vec::new());
                loop {
                    let next = all.locked().next();
                    let Some((index, part)) = next else { return written };
                    let some = part();
                    if index > 0 {
                        freshness.note(now, some.iter().map(Measured::timestamp));
                    }
                    let mut out = Vec::with_capacity(some.iter().map(Measured::size).sum());
                    for item in some {
                        protobuf::message(&mut out, 2, |out| writer.fields(out, &item));
                    }
                    written.push((index, Bytes::from(out)));
                }
            })
        })
        .collect();
    let mut pieces = Vec::new();
    for writer in writers {
        pieces.extend(writer.await.map_err(|_| Status::internal("the response could not be encoded"))?);
    }
    pieces.sort_unstable_by_key(|(index, _)| *index);
    let mut meta = Vec::new();
    protobuf::list_meta(&mut meta);
    let size = meta.len() + pieces.iter().map(|(_, bytes)| bytes.len()).sum::<usize>();
    let (mut before, behind) = protobuf::around(&kind.0, &kind.1, size);
    before.extend_from_slice(&meta);
    let pieces = pieces.into_iter().map(|(_, bytes)| bytes);
    let all: VecDeque<Bytes> = std::iter::once(before.into()).chain(pieces).chain([behind.into()]).collect();
    let left = all.iter().map(|bytes| bytes.len() as u64).sum();
    Ok(WrittenBody { all, left }.boxed_unsync())
}

/// A body of known chunks.
struct WrittenBody {
    all: VecDeque<Bytes>,
    left: u64,
}

impl http_body::Body for WrittenBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let next = self.all.pop_front();
        self.left -= next.as_ref().map_or(0, |bytes| bytes.len() as u64);
        Poll::Ready(next.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.all.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

#[cfg(test)]
mod tests {
    use api::provider::NodeUsage;
    use jiff::Timestamp;

    use super::*;
    use crate::encode;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn context() -> ResponseContext {
        ResponseContext { api_version: "metrics.k8s.io/v1beta1".into(), now: NOW }
    }

    fn node(number: usize) -> NodeUsage {
        let labels = Arc::new([("number", (number / 3).to_string())].into_iter().collect());
        let name = format!("node-{number}").into();
        NodeUsage { name, labels, timestamp: Some(NOW), window: number as i64, usage: Vec::new() }
    }

    fn source(parts: impl Iterator<Item = Vec<NodeUsage>> + Send + 'static) -> ListSource<NodeUsage> {
        let parts = parts.map(|part| Box::new(move || part) as ObjectChunk<NodeUsage>);
        ListSource::new(Box::new(parts), context(), Arc::default())
    }

    async fn bytes(source: ListSource<NodeUsage>, choice: Choice) -> Option<Bytes> {
        let body = sent(source, choice).await.ok()?.into_body();
        body.collect().await.ok().map(http_body_util::Collected::to_bytes)
    }

    #[tokio::test]
    async fn lists_are_the_same_in_pieces() {
        for encoding in [Encoding::Json, Encoding::Protobuf] {
            let choice = Choice { encoding, pretty: false, form: None };
            // None, one part, some parts, many pieces; parts of any size, some of them empty.
            for count in [0, 1, 512, 513, 1300, 9000] {
                let nodes: Vec<NodeUsage> = (0..count).map(node).collect();
                let parts: Vec<_> =
                    nodes.chunks(700).flat_map(|part| [Vec::new(), part.to_vec(), Vec::new()]).collect();
                let expected = encode::encode(&UsageList { context: context(), items: nodes }, choice);
                let found = bytes(source(parts.into_iter()), choice).await;
                assert!(found == Some(expected), "{count} in {encoding:?}");
            }
        }
    }

    #[tokio::test]
    async fn a_list_that_breaks_off_is_an_error() {
        for encoding in [Encoding::Json, Encoding::Protobuf] {
            let parts = (0..).map(|part| {
                assert!(part < 20, "nothing more is known");
                (0..500).map(node).collect()
            });
            let choice = Choice { encoding, pretty: false, form: None };
            assert_eq!(bytes(source(parts), choice).await, None, "{encoding:?}");
        }
    }

    #[tokio::test]
    async fn nothing_is_written_after_the_client_disconnected() {
        let (sender, mut ended) = mpsc::channel::<()>(1);
        let parts = std::iter::repeat_with(move || {
            let _held = &sender;
            (0..500).map(node).collect()
        });
        let choice = Choice { encoding: Encoding::Json, pretty: false, form: None };
        let mut body = sent(source(parts), choice).await.unwrap().into_body();
        for _ in 0..10 {
            assert!(body.frame().await.is_some_and(|frame| frame.is_ok()));
        }
        drop(body);
        // The source is dropped, though it never ends.
        assert_eq!(ended.recv().await, None);
    }
}
