//! Journal of the scrapes of this replica: the last encoded scrape of every node.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::codec;
use crate::kubelet::Scrape;

/// A page is closed once it has this many bytes.
const MIN_PAGE_BYTES: usize = 4 << 20;

/// Last scrapes by generation.
#[derive(Debug)]
pub(crate) struct Journal {
    incarnation: u64,
    generation: u64,
    by_generation: BTreeMap<u64, JournalRecord>,
    by_node: HashMap<Arc<str>, u64>,
}

#[derive(Debug)]
struct JournalRecord {
    node: Arc<str>,
    at: Instant,
    scrape: Box<[u8]>,
}

impl Journal {
    /// An empty journal. Every process run needs another `incarnation`.
    pub(crate) fn new(incarnation: u64) -> Self {
        Self { incarnation, generation: 0, by_generation: BTreeMap::new(), by_node: HashMap::new() }
    }

    /// Replaces the scrape of a node. A scrape above the size limit is dropped.
    pub(crate) fn record(&mut self, node: &str, scrape: &Scrape, now: Instant) {
        let written = codec::scrape(scrape);
        let node: Arc<str> = match self.by_node.remove_entry(node) {
            Some((node, old)) => {
                self.by_generation.remove(&old);
                node
            }
            None => node.into(),
        };
        if written.len() > codec::MAX_SCRAPE_BYTES {
            return;
        }
        self.generation += 1;
        self.by_node.insert(Arc::clone(&node), self.generation);
        let record = JournalRecord { node, at: now, scrape: written.into_boxed_slice() };
        self.by_generation.insert(self.generation, record);
    }

    /// Drops scrapes older than `keep`; the current owner of those nodes delivers newer ones.
    pub(crate) fn prune(&mut self, now: Instant, keep: Duration) {
        while let Some(first) = self.by_generation.first_entry() {
            if now.saturating_duration_since(first.get().at) <= keep {
                break;
            }
            self.by_node.remove(&first.remove().node);
        }
    }

    /// Drops everything, when there are no peers.
    pub(crate) fn clear(&mut self) {
        self.by_generation.clear();
        self.by_node.clear();
    }

    /// Page of the changes after a generation of this run; of everything if the generation is of another run.
    pub(crate) fn page(&self, since: u64, of: u64, now: Instant) -> Vec<u8> {
        let since = if of == self.incarnation && since <= self.generation { since } else { 0 };
        let mut entries = Vec::new();
        let (mut last, mut count, mut more) = (since, 0, false);
        for (generation, record) in self.by_generation.range(since.saturating_add(1)..) {
            if entries.len() >= MIN_PAGE_BYTES {
                more = true;
                break;
            }
            let age = now.saturating_duration_since(record.at).as_millis();
            codec::entry(&mut entries, &record.node, u64::try_from(age).unwrap_or(u64::MAX), &record.scrape);
            (last, count) = (*generation, count + 1);
        }
        let mut page = codec::head(self.incarnation, last, more, count);
        page.extend_from_slice(&entries);
        page
    }

    /// Number of this process run.
    pub(crate) fn incarnation(&self) -> u64 {
        self.incarnation
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kubelet::{MetricsPoint, PodPoints};

    fn scrape(cpu: u64) -> Scrape {
        Scrape { node: Some(MetricsPoint { start: None, time: 1, cpu, memory: 1 }), ..Scrape::default() }
    }

    fn nodes(page: &[u8]) -> (Vec<String>, u64) {
        let page = codec::read(page).unwrap();
        (page.entries.iter().map(|entry| entry.node.to_string()).collect(), page.generation)
    }

    #[test]
    fn page_contains_only_changes() {
        let start = Instant::now();
        let mut journal = Journal::new(42);
        journal.record("a", &scrape(1), start);
        journal.record("b", &scrape(1), start);
        journal.record("a", &scrape(2), start + Duration::from_secs(1));
        let now = start + Duration::from_secs(3);
        let all = journal.page(0, 0, now);
        assert_eq!(nodes(&all), (vec!["b".into(), "a".into()], 3));
        let page = codec::read(&all).unwrap();
        assert_eq!((page.incarnation, page.more), (42, false));
        assert_eq!(page.entries.iter().map(|entry| entry.age).collect::<Vec<_>>(), [3000, 2000]);
        assert_eq!(nodes(&journal.page(2, 42, now)), (vec!["a".into()], 3));
        assert_eq!(nodes(&journal.page(3, 42, now)), (vec![], 3));
        // Another run or an unknown generation returns everything.
        assert_eq!(nodes(&journal.page(3, 41, now)).0.len(), 2);
        assert_eq!(nodes(&journal.page(u64::MAX, 42, now)).0.len(), 2);
        journal.prune(start + Duration::from_secs(11), Duration::from_secs(10));
        assert_eq!(nodes(&journal.page(0, 0, now)), (vec!["a".into()], 3));
        journal.clear();
        assert_eq!(nodes(&journal.page(0, 0, now)).0.len(), 0);
    }

    #[test]
    fn large_journals_are_paged() {
        let now = Instant::now();
        let pod = |n: usize| PodPoints {
            namespace: "namespace".into(),
            name: format!("{n:0200}").into(),
            containers: vec![("c".into(), MetricsPoint { start: None, time: 1, cpu: 1, memory: 1 })],
        };
        let large = Scrape { pods: (0..5000).map(pod).collect(), ..Scrape::default() };
        let mut journal = Journal::new(1);
        (0..10).for_each(|n| journal.record(&format!("n{n}"), &large, now));
        let (mut since, mut seen, mut pages) = (0, Vec::new(), 0);
        loop {
            let page = codec::read(&journal.page(since, 1, now)).unwrap();
            seen.extend(page.entries.into_iter().map(|entry| entry.node));
            (since, pages) = (page.generation, pages + 1);
            if !page.more {
                break;
            }
        }
        assert_eq!((seen.len(), since), (10, 10));
        assert!((2..=5).contains(&pages), "{pages}");
        // A scrape above the size limit is not delivered.
        let huge = Scrape { pods: (0..30_000).map(pod).collect(), ..Scrape::default() };
        journal.record("n0", &huge, now);
        assert_eq!(nodes(&journal.page(0, 1, now)).0.iter().filter(|node| *node == "n0").count(), 0);
    }
}
