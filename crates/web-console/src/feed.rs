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

/// How long the counts of a row are kept: the last hour, in seconds.
const KEPT_STEPS_SECONDS: f64 = 3600.0;
/// How many changes of a row's count are kept.
const MAX_STEPS: usize = 240;
/// How many removed rows are remembered for clients that resume.
const MAX_REMOVED: usize = 10_000;
/// The interval of comments that keep an idle stream alive.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(15);
/// How much memory an event needs besides its rows, as a rule.
const FRAME_BYTES: usize = 16 * 1024;
/// How much a row with few steps needs for them.
const MAX_SHORT_STEPS_BYTES: usize = 16;
/// How soon a browser reconnects.
const RECONNECT_MILLISECONDS: u32 = 1000;

/// One autoscaler of a publication.
#[derive(Clone, Debug)]
pub struct FeedRow {
    /// `namespace/kind/name`.
    pub id: String,
    /// What the frontend shows: a JSON object.
    pub json: String,
    /// The replica count, if it is known.
    pub replicas: Option<i32>,
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
    rows: HashMap<String, StoredRow>,
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
    /// The row as JSON: it is written once for all clients.
    text: String,
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
        state.revision += 1;
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

    /// Whether somebody looks.
    pub fn is_watched(&self) -> bool {
        self.revision.receiver_count() > 0
    }

    /// Waits until somebody looks.
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
        let new: HashSet<&str> = rows.iter().map(|row| row.id.as_str()).collect();
        let gone = self.rows.keys().filter(|id| !new.contains(id.as_str())).cloned().collect();
        self.change(at, rows, gone, frame)
    }

    fn change(
        &mut self,
        at: f64,
        rows: Vec<FeedRow>,
        removed: Vec<String>,
        frame: Vec<(&'static str, Value)>,
    ) -> u64 {
        self.revision += 1;
        self.at = at;
        for row in rows {
            self.change_row(at, row);
        }
        for id in removed {
            if self.rows.remove(&id).is_some() {
                self.removed.push_back((self.revision, id));
            }
        }
        while self.removed.len() > MAX_REMOVED {
            self.forgotten = self.removed.pop_front().map_or(self.forgotten, |(revision, _)| revision);
        }
        self.replace_frame(frame);
        self.revision
    }

    fn set_earlier(&mut self, mut earlier: HashMap<String, Vec<(f64, i32)>>) -> u64 {
        if !self.rows.is_empty() {
            self.revision += 1;
        }
        for (id, row) in &mut self.rows {
            let Some(steps) = earlier.remove(id) else { continue };
            let known = std::mem::take(&mut row.steps);
            let first = known.front().map_or(f64::INFINITY, |(at, _)| *at);
            for (at, count) in steps.into_iter().filter(|(at, _)| *at < first).chain(known) {
                row.step(at, count);
            }
            (row.revision, row.steps_revision) = (self.revision, self.revision);
        }
        self.earlier = earlier;
        self.revision
    }

    fn change_row(&mut self, at: f64, FeedRow { id, json: text, replicas }: FeedRow) {
        let revision = self.revision;
        let earlier = &mut self.earlier;
        let row = self.rows.entry(id).or_insert_with_key(|id| {
            let earlier = earlier.remove(id);
            let steps_revision = if earlier.is_some() { revision } else { 0 };
            let mut row = StoredRow { revision, text: String::new(), steps: VecDeque::new(), steps_revision };
            for (at, count) in earlier.into_iter().flatten() {
                row.step(at, count);
            }
            row
        });
        if row.text != text {
            (row.revision, row.text) = (revision, text);
        }
        if let Some(count) = replicas {
            row.step(at, count);
        }
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
        let mut rows: Vec<(&String, &StoredRow)> =
            self.rows.iter().filter(|(_, row)| is_new(row.revision)).collect();
        rows.sort_unstable_by_key(|(id, _)| *id);
        let length: usize = rows.iter().map(|(_, row)| row.text.len() + MAX_SHORT_STEPS_BYTES).sum();
        let mut data = String::with_capacity(length + FRAME_BYTES);
        // Writing to a string cannot fail.
        let _ = write!(data, "id: {}.{}\nevent: {kind}\n", self.process, self.revision);
        let _ = write!(data, "data: {{\"at\":{},\"rows\":", json!(self.at));
        write_list(&mut data, rows.iter(), |(_, row), text| row.write(is_new(row.steps_revision), text));
        if since.is_some() {
            let removed =
                self.removed.iter().filter(|(revision, id)| is_new(*revision) && !self.rows.contains_key(id));
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

    /// Writes the row.
    fn write(&self, with_steps: bool, out: &mut String) {
        match self.text.strip_suffix('}').filter(|_| with_steps) {
            Some(fields) => out.push_str(&format!("{fields},\"steps\":{}}}", json!(self.steps))),
            None => out.push_str(&self.text),
        }
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
mod tests {
    use futures::{FutureExt as _, StreamExt as _};

    use super::*;

    fn row(id: &str, replicas: i32) -> FeedRow {
        let json = json!({"id": id, "replicas": replicas}).to_string();
        FeedRow { id: id.to_owned(), json, replicas: Some(replicas) }
    }

    /// Kind, id and data of an event.
    fn parsed(text: &[u8]) -> (String, String, Value) {
        let text = std::str::from_utf8(text).unwrap();
        let field = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(&format!("{name}: ")));
            line.unwrap_or_else(|| panic!("{name} in {text}")).to_owned()
        };
        (field("event"), field("id"), serde_json::from_str(&field("data")).unwrap())
    }

    #[tokio::test]
    async fn client_gets_everything_once_and_then_changes() {
        let feed = Arc::new(Feed::new("p"));
        let mut events = Box::pin(Arc::clone(&feed).events(None));
        assert_eq!(events.next().await.unwrap(), ": nothing new\n\n", "nothing is published yet");
        feed.publish(10.0, vec![row("a", 1), row("b", 2)], vec![("problems", json!([]))]);
        let (kind, id, data) = parsed(&events.next().await.unwrap());
        assert_eq!((kind.as_str(), id.as_str()), ("reset", "p.1"));
        assert_eq!(
            data,
            json!({"at": 10.0, "rows": [{"id": "a", "replicas": 1, "steps": [[10.0, 1]]},
            {"id": "b", "replicas": 2, "steps": [[10.0, 2]]}], "problems": []})
        );
        feed.publish(12.0, vec![row("a", 3)], vec![("problems", json!([]))]);
        let (kind, id, data) = parsed(&events.next().await.unwrap());
        assert_eq!((kind.as_str(), id.as_str()), ("change", "p.2"));
        assert_eq!(data, json!({"at": 12.0, "rows": [{"id": "a", "replicas": 3}], "removed": ["b"]}));
        assert!(events.next().now_or_never().is_none(), "it waits");
    }

    #[tokio::test]
    async fn client_resumes_after_its_last_event() {
        let feed = Arc::new(Feed::new("p"));
        feed.publish(1.0, vec![row("a", 1), row("b", 1)], vec![("notes", json!(["x"]))]);
        feed.publish(2.0, vec![row("a", 2)], vec![("notes", json!(["x"]))]);
        feed.publish(3.0, vec![row("a", 2), row("c", 1)], vec![("notes", json!(["y"]))]);
        let first = async |id: Option<&str>| {
            let mut events = Box::pin(Arc::clone(&feed).events(id));
            parsed(&events.next().await.unwrap())
        };
        let (kind, id, data) = first(Some("p.1")).await;
        assert_eq!((kind.as_str(), id.as_str()), ("change", "p.3"));
        assert_eq!(data["rows"], json!([{"id": "a", "replicas": 2}, {"id": "c", "replicas": 1}]));
        assert_eq!((&data["removed"], &data["notes"]), (&json!(["b"]), &json!(["y"])));
        let (_, _, data) = first(Some("p.2")).await;
        assert_eq!(data["rows"], json!([{"id": "c", "replicas": 1}]));
        for unknown in ["q.1", "p.9", "p.x", "", "1"] {
            assert_eq!(first(Some(unknown)).await.0, "reset", "{unknown}");
        }
        let mut events = Box::pin(Arc::clone(&feed).events(Some("p.3")));
        assert_eq!(events.next().await.unwrap(), ": nothing new\n\n");
    }

    #[tokio::test]
    async fn only_changed_rows_are_sent() {
        let feed = Arc::new(Feed::new("p"));
        feed.publish(1.0, vec![row("a", 1), row("b", 1), row("c", 1)], vec![("notes", json!([]))]);
        feed.change(2.0, vec![row("a", 1), row("b", 2)], vec!["c".into(), "unknown".into()], Vec::new());
        let mut events = Box::pin(Arc::clone(&feed).events(Some("p.1")));
        let (kind, id, data) = parsed(&events.next().await.unwrap());
        assert_eq!((kind.as_str(), id.as_str()), ("change", "p.2"));
        assert_eq!(data, json!({"at": 2.0, "rows": [{"id": "b", "replicas": 2}], "removed": ["c"]}));
        let mut everything = Box::pin(Arc::clone(&feed).events(None));
        let (_, _, data) = parsed(&everything.next().await.unwrap());
        assert_eq!(data["rows"][1], json!({"id": "b", "replicas": 2, "steps": [[1.0, 1], [2.0, 2]]}));
    }

    #[test]
    fn counts_of_the_last_hour_are_kept() {
        let feed = Feed::new("p");
        let earlier = vec![(4_000.0, 1), (5_000.0, 2), (6_000.0, 2), (9_000.0, 4)];
        feed.set_earlier_steps(HashMap::from([("a".to_owned(), earlier)]));
        feed.publish(10_000.0, vec![row("a", 5)], Vec::new());
        let steps = |feed: &Feed| feed.state().rows["a"].steps.clone();
        assert_eq!(steps(&feed), [(5_000.0, 2), (9_000.0, 4), (10_000.0, 5)]);
        feed.publish(13_000.0, vec![row("a", 6)], Vec::new());
        assert_eq!(steps(&feed), [(9_000.0, 4), (10_000.0, 5), (13_000.0, 6)]);
    }

    #[tokio::test]
    async fn earlier_counts_may_come_after_the_first_list() {
        let feed = Arc::new(Feed::new("p"));
        feed.publish(10.0, vec![row("a", 5), row("b", 5)], Vec::new());
        feed.set_earlier_steps(HashMap::from([("a".to_owned(), vec![(4.0, 1), (11.0, 2)])]));
        let mut events = Box::pin(Arc::clone(&feed).events(Some("p.1")));
        let (kind, _, data) = parsed(&events.next().await.unwrap());
        let rows = json!([{"id": "a", "replicas": 5, "steps": [[4.0, 1], [10.0, 5]]}]);
        assert_eq!((kind.as_str(), &data["rows"]), ("change", &rows));
    }

    #[tokio::test(start_paused = true)]
    async fn publisher_waits_until_somebody_looks() {
        let feed = Arc::new(Feed::new("p"));
        assert!(feed.watched().now_or_never().is_none());
        let events = Arc::clone(&feed).events(None);
        assert!(feed.watched().now_or_never().is_some());
        drop(events);
        assert!(feed.watched().now_or_never().is_none());
    }
}
