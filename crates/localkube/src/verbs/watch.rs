//! The verb `watch`.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures::Stream;
use futures::stream;
use serde_json::{Value, json};
use tokio::sync::watch::Receiver;
use tokio::time::Instant;

use super::ApiCall;
use super::present::Representation;
use super::read::{ObjectFilter, bad_revision, check_options, integer};
use crate::object::set;
use crate::status::Status;
use crate::store::{ChangeRecord, Revision, StoredObject};

/// The interval of bookmarks.
const BOOKMARK_INTERVAL: Duration = Duration::from_mins(1);
/// The duration of a watch without a timeout.
const DEFAULT_WATCH_TIMEOUT: Duration = Duration::from_mins(45);
/// The maximum number of changes that are read from the store in one batch.
const MAX_CHANGES_PER_BATCH: usize = 256;
/// The maximum size of a chunk.
const MAX_CHUNK_BYTES: usize = 64 * 1024;

/// A running watch.
pub(crate) struct WatchStream {
    call: ApiCall,
    choice: ObjectFilter,
    form: Representation,
    /// All changes up to this revision were sent.
    sent_up_to: Revision,
    /// Frames that are ready to be sent.
    ready: VecDeque<Bytes>,
    revisions: Receiver<Revision>,
    deadline: Instant,
    bookmark: Option<Instant>,
    /// Whether no object was sent yet.
    first: bool,
    ended: bool,
}

/// Starts a watch.
pub(crate) fn start(call: ApiCall, form: Representation) -> Result<impl Stream<Item = Bytes>, Status> {
    let choice = ObjectFilter::of(&call)?;
    let initial = call.query.is_set("sendInitialEvents");
    let bookmarks = call.query.is_set("allowWatchBookmarks");
    check_options(&call, true)?;
    let since = match call.query.get("resourceVersion").unwrap_or_default() {
        "" | "0" => None,
        text => Some(text.parse::<Revision>().map_err(|_| Status::internal(bad_revision(text)))?),
    };
    let lasts = match integer(&call, "timeoutSeconds")? {
        Some(seconds) if seconds > 0 => Duration::from_secs(seconds.unsigned_abs()),
        _ => DEFAULT_WATCH_TIMEOUT,
    };
    let now = Instant::now();
    let mut watch = WatchStream {
        revisions: call.cluster.revisions(),
        call,
        choice,
        form,
        sent_up_to: since.unwrap_or_default(),
        ready: VecDeque::new(),
        deadline: now + lasts,
        bookmark: bookmarks.then_some(now + BOOKMARK_INTERVAL),
        first: true,
        ended: false,
    };
    if since.is_none() || initial {
        watch.push_initial_events();
        if initial && bookmarks {
            let bookmark = watch.bookmark(true);
            watch.ready.push_back(bookmark);
        }
    }
    Ok(stream::unfold(watch, |mut watch| async move { watch.next().await.map(|chunk| (chunk, watch)) }))
}

impl WatchStream {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if !self.ready.is_empty() {
                return Some(self.chunk());
            }
            if self.ended {
                return None;
            }
            self.revisions.mark_unchanged();
            self.push_changes();
            if self.ready.is_empty() && !self.ended {
                self.wait().await;
            }
        }
    }

    /// Waits for a change, a bookmark or the end.
    async fn wait(&mut self) {
        let until = self.bookmark.map_or(self.deadline, |bookmark| bookmark.min(self.deadline));
        tokio::select! {
            changed = self.revisions.changed() => self.ended |= changed.is_err(),
            () = tokio::time::sleep_until(until) => {
                let now = Instant::now();
                if now >= self.deadline {
                    self.ended = true;
                } else {
                    self.bookmark = Some(now + BOOKMARK_INTERVAL);
                    let bookmark = self.bookmark(false);
                    self.ready.push_back(bookmark);
                }
            }
        }
    }

    /// Joins ready frames up to the chunk size.
    fn chunk(&mut self) -> Bytes {
        let first = self.ready.pop_front().unwrap_or_default();
        if self.ready.is_empty() {
            return first;
        }
        let mut chunk = BytesMut::from(&first[..]);
        while let Some(next) = self.ready.front().filter(|next| chunk.len() + next.len() <= MAX_CHUNK_BYTES) {
            chunk.extend_from_slice(next);
            self.ready.pop_front();
        }
        chunk.freeze()
    }

    /// Sends all existing objects as `ADDED` events.
    fn push_initial_events(&mut self) {
        let (revision, objects) = {
            let store = self.call.cluster.store();
            let all = store.list(self.call.served.id, None, None);
            let chosen = all.filter(|(key, object)| self.choice.includes(key, object));
            (store.revision(), chosen.map(|(_, object)| Arc::clone(object)).collect::<Vec<_>>())
        };
        self.sent_up_to = revision;
        for object in objects {
            let frame = self.frame("ADDED", &object);
            self.ready.push_back(frame);
        }
    }

    fn push_changes(&mut self) {
        let served = &self.call.served;
        let custom = served.row().is_none();
        if custom && self.call.cluster.catalog().resource(&served.group, &served.plural).is_none() {
            self.ended = true;
            return;
        }
        let taken = {
            let store = self.call.cluster.store();
            let changes = store.changes(served.id, self.sent_up_to);
            let taken = changes
                .map(|changes| changes.take(MAX_CHANGES_PER_BATCH).map(Arc::clone).collect::<Vec<_>>());
            let all = taken.as_ref().is_ok_and(|taken| taken.len() < MAX_CHANGES_PER_BATCH);
            taken.map(|taken| (taken, if all { Some(store.revision()) } else { None }))
        };
        match taken {
            Ok((changes, up_to)) => {
                for change in &changes {
                    self.push_change(change);
                }
                let last = changes.last().map_or(self.sent_up_to, |change| change.revision);
                self.sent_up_to = self.sent_up_to.max(up_to.unwrap_or(last));
            }
            Err(forgotten) => {
                let status = Status::expired(self.sent_up_to, forgotten.oldest).to_json();
                self.ready.push_back(frame_of("ERROR", status.to_string().as_bytes()));
                self.ended = true;
            }
        }
    }

    fn push_change(&mut self, change: &ChangeRecord) {
        let chosen = |object: &Option<Arc<StoredObject>>| {
            object.as_ref().is_some_and(|object| self.choice.includes(&change.key, object))
        };
        let (before, after) = (chosen(&change.before), chosen(&change.after));
        let (kind, object) = match (before, after, &change.after, &change.gone) {
            (false, true, Some(object), _) => ("ADDED", object),
            (true, true, Some(object), _) => ("MODIFIED", object),
            (true, false, None, Some(gone)) => ("DELETED", gone),
            // The object no longer matches the selector: it is sent as it was, with the revision of the change.
            (true, false, Some(_), _) => {
                if let Some(left) = change.before.as_ref().map(|before| as_of(before, change.revision)) {
                    let frame = self.frame("DELETED", &left);
                    self.ready.push_back(frame);
                }
                return;
            }
            _ => return,
        };
        let natural = change.before.is_some() == before;
        let frame = if natural && self.form.is_stored(&self.call) {
            change.event.get_or_init(|| frame_of(kind, &object.text)).clone()
        } else {
            self.frame(kind, object)
        };
        self.ready.push_back(frame);
    }

    fn frame(&mut self, kind: &str, object: &StoredObject) -> Bytes {
        if self.form.is_stored(&self.call) {
            return frame_of(kind, &object.text);
        }
        let shown = self.form.event(&self.call, object, self.first);
        self.first = false;
        frame_of(kind, shown.to_string().as_bytes())
    }

    /// A bookmark with the current revision.
    fn bookmark(&self, initial_end: bool) -> Bytes {
        let mut metadata = json!({"resourceVersion": self.sent_up_to.to_string()});
        if initial_end {
            set(&mut metadata, &["annotations"], json!({"k8s.io/initial-events-end": "true"}));
        }
        let object = self.form.bookmark(&self.call, &metadata);
        frame_of("BOOKMARK", object.to_string().as_bytes())
    }
}

/// An object with a later revision.
fn as_of(before: &StoredObject, revision: Revision) -> StoredObject {
    let mut value = crate::object::unpack(before);
    if let Some(Value::Object(metadata)) = value.get_mut("metadata") {
        metadata.insert("resourceVersion".to_owned(), revision.to_string().into());
    }
    StoredObject {
        text: Bytes::from(value.to_string()),
        revision,
        uid: before.uid.clone(),
        labels: before.labels.clone(),
        fields: before.fields.clone(),
        owners: before.owners.clone(),
        deleting: before.deleting,
    }
}

fn frame_of(kind: &str, object: &[u8]) -> Bytes {
    let mut frame = BytesMut::with_capacity(object.len() + 40);
    for part in [b"{\"type\":\"", kind.as_bytes(), b"\",\"object\":", object, b"}\n"] {
        frame.extend_from_slice(part);
    }
    frame.freeze()
}
