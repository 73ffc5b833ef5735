//! The list of autoscalers as it is now, and its changes. Each publication has a revision; a client that has seen one gets
//! what changed after it, and a client of another process or from too long ago gets everything.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures::{Stream, stream};
use serde_json::{Value, json};
use tokio::sync::{Notify, watch};

use crate::row_names::RowNames;

/// How long the counts of a row are kept: the last hour, in seconds.
const KEPT_STEPS_SECONDS: f64 = 3600.0;
/// How many changes of a row's count are kept.
const MAX_STEPS: usize = 240;
/// How many removed rows are remembered for clients that resume.
const MAX_REMOVED_ROWS: usize = 10_000;
/// The interval of comments that keep an idle stream alive.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(15);
/// How much memory an event needs besides its rows, as a rule.
const FRAME_BYTES: usize = 16 * 1024;
/// How much the names of a row and few steps need, as a rule.
const MAX_NAMES_BYTES: usize = 256;
/// How soon a browser reconnects.
const RECONNECT_MILLISECONDS: u32 = 1000;

/// One autoscaler of a publication.
#[derive(Clone, Debug)]
pub struct FeedRow {
    /// What identifies it, and what it shows of the object besides values.
    pub names: Arc<RowNames>,
    /// What changes with decisions: a JSON object.
    pub values: String,
    /// The replica count, if it is known.
    pub replicas: Option<i32>,
}

impl FeedRow {
    /// The whole row as a JSON object.
    pub fn json(&self) -> String {
        let mut text = self.names.json.clone();
        close(&mut text, &self.values);
        text
    }
}

/// The current list and its changes.
#[derive(Debug)]
pub struct Feed {
    state: Mutex<FeedState>,
    revision: watch::Sender<u64>,
    opened: Notify,
}

#[derive(Debug)]
struct FeedState {
    /// Distinguishes the revisions of this process from those of another.
    process: String,
    revision: u64,
    at: f64,
    rows: HashMap<Arc<str>, StoredRow>,
    /// The ids of the rows that changed with this revision, which are all that most clients have not seen.
    newest: Vec<Arc<str>>,
    removed: VecDeque<(u64, String)>,
    /// Removals up to this revision are forgotten.
    forgotten: u64,
    /// What surrounds the list, as JSON.
    frame: BTreeMap<&'static str, (u64, String)>,
    /// Earlier counts of rows that were not published yet.
    earlier: HashMap<String, Vec<(f64, i32)>>,
}

#[derive(Debug)]
struct StoredRow {
    revision: u64,
    names: Arc<RowNames>,
    /// The revision with which the names became known.
    names_revision: u64,
    values: String,
    steps: VecDeque<(f64, i32)>,
    /// The revision with which earlier steps became known; else 0, because the frontend follows later counts itself.
    steps_revision: u64,
}

impl Feed {
    /// An empty feed of this process.
    pub fn new(process: &str) -> Self {
        let state = FeedState {
            process: process.to_owned(),
            revision: 0,
            at: 0.0,
            rows: HashMap::new(),
            newest: Vec::new(),
            removed: VecDeque::new(),
            forgotten: 0,
            frame: BTreeMap::new(),
            earlier: HashMap::new(),
        };
        Self { state: Mutex::new(state), revision: watch::Sender::new(0), opened: Notify::new() }
    }

    /// Replaces the list at a time (seconds since 1970) and what surrounds it.
    pub fn publish(&self, at: f64, rows: Vec<FeedRow>, frame: Vec<(&'static str, Value)>) {
        let revision = self.state().replace(at, rows, frame);
        self.revision.send_replace(revision);
    }

    /// Changes some rows of the list, removes others, and replaces what surrounds the list.
    pub fn change(
        &self,
        at: f64,
        rows: Vec<FeedRow>,
        removed: Vec<String>,
        frame: Vec<(&'static str, Value)>,
    ) {
        let revision = self.state().change(at, rows, removed, frame);
        self.revision.send_replace(revision);
    }

    /// Replaces what surrounds the list, which stays.
    pub fn publish_frame(&self, at: f64, frame: Vec<(&'static str, Value)>) {
        let mut state = self.state();
        state.begin_revision();
        state.at = at;
        state.replace_frame(frame);
        let revision = state.revision;
        drop(state);
        self.revision.send_replace(revision);
    }

    /// Adds replica counts from before this process, oldest first, also to rows that were published already.
    pub fn set_earlier_steps(&self, earlier: HashMap<String, Vec<(f64, i32)>>) {
        let revision = self.state().set_earlier(earlier);
        self.revision.send_replace(revision);
    }

    /// Whether a page is open.
    pub fn is_watched(&self) -> bool {
        self.revision.receiver_count() > 0
    }

    /// Waits until a page is open.
    pub async fn watched(&self) {
        loop {
            let mut opened = std::pin::pin!(self.opened.notified());
            // Registered before the check, so that a page that opens in between is noticed.
            opened.as_mut().enable();
            if self.is_watched() {
                return;
            }
            opened.await;
        }
    }

    /// Server-sent events: what is new since the event of that id, then every change.
    pub(crate) fn events(self: Arc<Self>, last_id: Option<&str>) -> impl Stream<Item = Bytes> + Send + use<> {
        let seen = last_id.and_then(|id| self.state().seen(id));
        let receiver = self.revision.subscribe();
        self.opened.notify_waiters();
        stream::unfold((self, receiver, seen, true), |(feed, mut receiver, seen, is_first)| async move {
            if !is_first {
                // Without a change this time, a comment keeps the connection alive.
                let _ = tokio::time::timeout(KEEP_ALIVE_INTERVAL, receiver.changed()).await;
            }
            let (now, event) = feed.state().event(seen);
            let text = match event {
                Some(text) if is_first => format!("retry: {RECONNECT_MILLISECONDS}\n{text}"),
                Some(text) => text,
                None => ": nothing new\n\n".to_owned(),
            };
            Some((Bytes::from(text), (feed, receiver, now, false)))
        })
    }

    fn state(&self) -> MutexGuard<'_, FeedState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FeedState {
    fn replace(&mut self, at: f64, rows: Vec<FeedRow>, frame: Vec<(&'static str, Value)>) -> u64 {
        let new: HashSet<&str> = rows.iter().map(|row| &*row.names.id).collect();
        let gone = self.rows.keys().filter(|id| !new.contains(&***id)).map(ToString::to_string).collect();
        self.change(at, rows, gone, frame)
    }

    fn change(
        &mut self,
        at: f64,
        rows: Vec<FeedRow>,
        removed: Vec<String>,
        frame: Vec<(&'static str, Value)>,
    ) -> u64 {
        self.begin_revision();
        self.at = at;
        for row in rows {
            self.change_row(at, row);
        }
        for id in removed {
            if self.rows.remove(id.as_str()).is_some() {
                self.removed.push_back((self.revision, id));
            }
        }
        while self.removed.len() > MAX_REMOVED_ROWS {
            self.forgotten = self.removed.pop_front().map_or(self.forgotten, |(revision, _)| revision);
        }
        self.replace_frame(frame);
        self.revision
    }

    fn set_earlier(&mut self, mut earlier: HashMap<String, Vec<(f64, i32)>>) -> u64 {
        if !self.rows.is_empty() {
            self.begin_revision();
        }
        for (id, row) in &mut self.rows {
            let Some(steps) = earlier.remove(&**id) else { continue };
            let known = std::mem::take(&mut row.steps);
            let first = known.front().map_or(f64::INFINITY, |(at, _)| *at);
            for (at, count) in steps.into_iter().filter(|(at, _)| *at < first).chain(known) {
                row.step(at, count);
            }
            (row.revision, row.steps_revision) = (self.revision, self.revision);
            self.newest.push(Arc::clone(id));
        }
        self.earlier = earlier;
        self.revision
    }

    fn change_row(&mut self, at: f64, FeedRow { names, values, replicas }: FeedRow) {
        let revision = self.revision;
        let earlier = &mut self.earlier;
        let row = self.rows.entry(Arc::clone(&names.id)).or_insert_with_key(|id| {
            let earlier = earlier.remove(&**id);
            let steps_revision = if earlier.is_some() { revision } else { 0 };
            let names = Arc::clone(&names);
            let (values, steps) = (String::new(), VecDeque::new());
            let mut row =
                StoredRow { revision, names, names_revision: revision, values, steps, steps_revision };
            for (at, count) in earlier.into_iter().flatten() {
                row.step(at, count);
            }
            row
        });
        let has_other_names = row.names != names;
        if has_other_names || row.values != values {
            self.newest.push(Arc::clone(&names.id));
            (row.revision, row.values) = (revision, values);
        }
        if has_other_names {
            (row.names, row.names_revision) = (names, revision);
        }
        if let Some(count) = replicas {
            row.step(at, count);
        }
    }

    fn begin_revision(&mut self) {
        self.revision += 1;
        self.newest.clear();
    }

    fn replace_frame(&mut self, frame: Vec<(&'static str, Value)>) {
        for (name, value) in frame {
            let text = value.to_string();
            if self.frame.get(name).is_none_or(|(_, known)| *known != text) {
                self.frame.insert(name, (self.revision, text));
            }
        }
    }

    /// The revision of an event's id, if what followed it is still known.
    fn seen(&self, id: &str) -> Option<u64> {
        let (process, revision) = id.rsplit_once('.')?;
        let revision: u64 = revision.parse().ok()?;
        (process == self.process && revision <= self.revision && revision >= self.forgotten)
            .then_some(revision)
    }

    /// The event for a client that has seen a revision, and the revision that it then has seen. None if nothing is new.
    fn event(&self, seen: Option<u64>) -> (Option<u64>, Option<String>) {
        if self.revision == 0 || seen == Some(self.revision) {
            return (seen, None);
        }
        let since = seen.filter(|seen| *seen >= self.forgotten);
        let is_new = |revision: u64| since.is_none_or(|since| revision > since);
        let kind = if since.is_some() { "change" } else { "reset" };
        // For a client that has seen the revision before this one, only the rows of the newest revision are compared.
        let rows: Vec<&StoredRow> = if since.is_some_and(|since| since + 1 == self.revision) {
            self.newest.iter().filter_map(|id| self.rows.get(id)).collect()
        } else {
            let mut rows: Vec<_> = self.rows.iter().filter(|(_, row)| is_new(row.revision)).collect();
            rows.sort_unstable_by_key(|(id, _)| *id);
            rows.into_iter().map(|(_, row)| row).collect()
        };
        let length: usize = rows.iter().map(|row| row.values.len() + MAX_NAMES_BYTES).sum();
        let mut data = String::with_capacity(length + FRAME_BYTES);
        // Writing to a string cannot fail.
        let _ = write!(data, "id: {}.{}\nevent: {kind}\n", self.process, self.revision);
        let _ = write!(data, "data: {{\"at\":{},\"rows\":", json!(self.at));
        write_list(&mut data, rows.iter(), |row, text| row.write(is_new, text));
        if since.is_some() {
            let removed = self
                .removed
                .iter()
                .filter(|(revision, id)| is_new(*revision) && !self.rows.contains_key(id.as_str()));
            data.push_str(",\"removed\":");
            write_list(&mut data, removed, |(_, id), text| text.push_str(&json!(id).to_string()));
        }
        for (name, (_, value)) in self.frame.iter().filter(|(_, (revision, _))| is_new(*revision)) {
            let _ = write!(data, ",\"{name}\":{value}");
        }
        data.push_str("}\n\n");
        (Some(self.revision), Some(data))
    }
}

impl StoredRow {
    /// Adds a count if it is another; the one in force an hour ago is kept.
    fn step(&mut self, at: f64, count: i32) {
        if self.steps.back().is_none_or(|last| last.1 != count) {
            self.steps.push_back((at, count));
        }
        while self.steps.len() > MAX_STEPS
            || self.steps.get(1).is_some_and(|second| second.0 < at - KEPT_STEPS_SECONDS)
        {
            self.steps.pop_front();
        }
    }

    /// Writes what is new of the row.
    fn write(&self, is_new: impl Fn(u64) -> bool, out: &mut String) {
        out.push_str(if is_new(self.names_revision) { &self.names.json } else { &self.names.id_json });
        if is_new(self.steps_revision) {
            // Writing to a string cannot fail.
            let _ = write!(out, ",\"steps\":{}", json!(self.steps));
        }
        close(out, &self.values);
    }
}

/// Adds values, which are a JSON object, to an object that has no last brace yet.
fn close(out: &mut String, values: &str) {
    match values.strip_prefix('{') {
        None | Some("}") => out.push('}'),
        Some(fields) => out.extend([",", fields]),
    }
}

/// Writes a list of JSON.
fn write_list<T>(out: &mut String, items: impl Iterator<Item = T>, write: impl Fn(T, &mut String)) {
    out.push('[');
    for (place, item) in items.enumerate() {
        if place > 0 {
            out.push(',');
        }
        write(item, out);
    }
    out.push(']');
}

#[cfg(test)]
mod tests;
