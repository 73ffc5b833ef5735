//! watch: what changes, as it changes.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures::Stream;
use futures::stream;
use serde_json::{Value, json};
use tokio::sync::watch::Receiver;
use tokio::time::Instant;

use super::Call;
use super::read::{Choice, bad_revision, check_options, integer};
use crate::object::set;
use crate::present::Form;
use crate::status::Status;
use crate::store::{Change, Object, Revision};

/// How often a watch that wants them is sent bookmarks.
const BOOKMARKS: Duration = Duration::from_mins(1);
/// How long a watch lasts that does not say.
const LASTS: Duration = Duration::from_mins(45);
/// How many changes are taken from the store in one go.
const BATCH: usize = 256;
/// How many bytes are sent in one go.
const CHUNK: usize = 64 * 1024;

/// A watch under way.
pub(crate) struct Watch {
    call: Call,
    choice: Choice,
    form: Form,
    /// Everything up to here was told.
    told: Revision,
    /// Frames that are ready to be sent.
    ready: VecDeque<Bytes>,
    revisions: Receiver<Revision>,
    ends: Instant,
    bookmark: Option<Instant>,
    /// Whether nothing was shown yet.
    first: bool,
    over: bool,
}

/// Starts a watch.
pub(crate) fn start(call: Call, form: Form) -> Result<impl Stream<Item = Bytes>, Status> {
    let choice = Choice::of(&call)?;
    let initial = call.query.is_set("sendInitialEvents");
    let bookmarks = call.query.is_set("allowWatchBookmarks");
    check_options(&call, true)?;
    let since = match call.query.get("resourceVersion").unwrap_or_default() {
        "" | "0" => None,
        text => Some(text.parse::<Revision>().map_err(|_| Status::internal(bad_revision(text)))?),
    };
    let lasts = match integer(&call, "timeoutSeconds")? {
        Some(seconds) if seconds > 0 => Duration::from_secs(seconds.unsigned_abs()),
        _ => LASTS,
    };
    let now = Instant::now();
    let mut watch = Watch {
        revisions: call.cluster.revisions(),
        call,
        choice,
        form,
        told: since.unwrap_or_default(),
        ready: VecDeque::new(),
        ends: now + lasts,
        bookmark: bookmarks.then_some(now + BOOKMARKS),
        first: true,
        over: false,
    };
    if since.is_none() || initial {
        watch.tell_what_is_there();
        if initial && bookmarks {
            let bookmark = watch.bookmark(true);
            watch.ready.push_back(bookmark);
        }
    }
    Ok(stream::unfold(watch, |mut watch| async move { watch.next().await.map(|chunk| (chunk, watch)) }))
}

impl Watch {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if !self.ready.is_empty() {
                return Some(self.chunk());
            }
            if self.over {
                return None;
            }
            self.revisions.mark_unchanged();
            self.take_changes();
            if self.ready.is_empty() && !self.over {
                self.wait().await;
            }
        }
    }

    /// Waits until there may be something to tell.
    async fn wait(&mut self) {
        let until = self.bookmark.map_or(self.ends, |bookmark| bookmark.min(self.ends));
        tokio::select! {
            changed = self.revisions.changed() => self.over |= changed.is_err(),
            () = tokio::time::sleep_until(until) => {
                let now = Instant::now();
                if now >= self.ends {
                    self.over = true;
                } else {
                    self.bookmark = Some(now + BOOKMARKS);
                    let bookmark = self.bookmark(false);
                    self.ready.push_back(bookmark);
                }
            }
        }
    }

    /// As many ready frames as fit.
    fn chunk(&mut self) -> Bytes {
        let first = self.ready.pop_front().unwrap_or_default();
        if self.ready.is_empty() {
            return first;
        }
        let mut chunk = BytesMut::from(&first[..]);
        while let Some(next) = self.ready.front().filter(|next| chunk.len() + next.len() <= CHUNK) {
            chunk.extend_from_slice(next);
            self.ready.pop_front();
        }
        chunk.freeze()
    }

    /// Everything that is there, as if it were new.
    fn tell_what_is_there(&mut self) {
        let (revision, objects) = {
            let store = self.call.cluster.store();
            let all = store.list(self.call.served.id, None, None);
            let chosen = all.filter(|(key, object)| self.choice.includes(key, object));
            (store.revision(), chosen.map(|(_, object)| Arc::clone(object)).collect::<Vec<_>>())
        };
        self.told = revision;
        for object in objects {
            let frame = self.frame("ADDED", &object);
            self.ready.push_back(frame);
        }
    }

    fn take_changes(&mut self) {
        let served = &self.call.served;
        let custom = served.row().is_none();
        if custom && self.call.cluster.catalog().resource(&served.group, &served.plural).is_none() {
            self.over = true;
            return;
        }
        let taken = {
            let store = self.call.cluster.store();
            let changes = store.changes(served.id, self.told);
            let taken = changes.map(|changes| changes.take(BATCH).map(Arc::clone).collect::<Vec<_>>());
            let all = taken.as_ref().is_ok_and(|taken| taken.len() < BATCH);
            taken.map(|taken| (taken, if all { Some(store.revision()) } else { None }))
        };
        match taken {
            Ok((changes, up_to)) => {
                for change in &changes {
                    self.tell(change);
                }
                let last = changes.last().map_or(self.told, |change| change.revision);
                self.told = self.told.max(up_to.unwrap_or(last));
            }
            Err(forgotten) => {
                let status = Status::expired(self.told, forgotten.oldest).to_json();
                self.ready.push_back(frame_of("ERROR", status.to_string().as_bytes()));
                self.over = true;
            }
        }
    }

    fn tell(&mut self, change: &Change) {
        let chosen = |object: &Option<Arc<Object>>| {
            object.as_ref().is_some_and(|object| self.choice.includes(&change.key, object))
        };
        let (before, after) = (chosen(&change.before), chosen(&change.after));
        let (kind, object) = match (before, after, &change.after, &change.gone) {
            (false, true, Some(object), _) => ("ADDED", object),
            (true, true, Some(object), _) => ("MODIFIED", object),
            (true, false, None, Some(gone)) => ("DELETED", gone),
            // It is still there, but no longer what was asked for: shown as it was, with the revision of the change.
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

    fn frame(&mut self, kind: &str, object: &Object) -> Bytes {
        if self.form.is_stored(&self.call) {
            return frame_of(kind, &object.text);
        }
        let shown = self.form.event(&self.call, object, self.first);
        self.first = false;
        frame_of(kind, shown.to_string().as_bytes())
    }

    /// Tells how far the watch is.
    fn bookmark(&self, initial_end: bool) -> Bytes {
        let mut metadata = json!({"resourceVersion": self.told.to_string()});
        if initial_end {
            set(&mut metadata, &["annotations"], json!({"k8s.io/initial-events-end": "true"}));
        }
        let object = self.form.bookmark(&self.call, &metadata);
        frame_of("BOOKMARK", object.to_string().as_bytes())
    }
}

/// An object as it was, with a later revision.
fn as_of(before: &Object, revision: Revision) -> Object {
    let mut value = crate::object::unpack(before);
    if let Some(Value::Object(metadata)) = value.get_mut("metadata") {
        metadata.insert("resourceVersion".to_owned(), revision.to_string().into());
    }
    Object {
        text: Bytes::from(value.to_string()),
        revision,
        uid: before.uid.clone(),
        labels: before.labels.clone(),
        fields: before.fields.clone(),
        owners: before.owners.clone(),
        going: before.going,
    }
}

fn frame_of(kind: &str, object: &[u8]) -> Bytes {
    let mut frame = BytesMut::with_capacity(object.len() + 40);
    for part in [b"{\"type\":\"", kind.as_bytes(), b"\",\"object\":", object, b"}\n"] {
        frame.extend_from_slice(part);
    }
    frame.freeze()
}
