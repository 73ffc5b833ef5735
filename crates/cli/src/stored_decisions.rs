//! Serves the decision records of this process.

use api::decisions::passes::{PassList, PassQuery, UnknownCursor};
use api::decisions::{DecisionRecord, DifferenceList};
use controllers::hpa::Records;
use controllers::hpa::records::PassAt;
use futures::future::ready;
use futures::stream::{BoxStream, StreamExt as _};
use jiff::Timestamp;

/// Decisions of this process, without differences.
pub(crate) struct StoredDecisions(pub(crate) Records);

impl serve::DecisionSource for StoredDecisions {
    fn latest(&self, namespace: Option<&str>) -> Vec<DecisionRecord> {
        self.0.latest(namespace)
    }

    fn of(&self, namespace: &str, name: &str) -> Option<Vec<DecisionRecord>> {
        Some(self.0.of(namespace, name)).filter(|records| !records.is_empty())
    }

    fn at(&self, namespace: &str, name: &str, at: Timestamp) -> Option<DecisionRecord> {
        match self.0.at(namespace, name, at)? {
            PassAt::Kept(record) => Some(*record),
            PassAt::NotKept(oldest) => self.0.between(namespace, name, oldest, oldest)?.into_iter().next(),
        }
    }

    fn between(
        &self,
        namespace: &str,
        name: &str,
        since: Timestamp,
        until: Timestamp,
    ) -> Option<Vec<DecisionRecord>> {
        self.0.between(namespace, name, since, until)
    }

    fn passes(&self, query: &PassQuery) -> Result<PassList, UnknownCursor> {
        self.0.passes(query)
    }

    fn follow(&self, namespace: &str, name: &str) -> Option<BoxStream<'static, DecisionRecord>> {
        self.of(namespace, name)?;
        // A watcher that cannot keep up is disconnected and may start again.
        let records = self.0.follow(namespace, name);
        Some(
            records
                .take_while(|record| ready(record.is_ok()))
                .filter_map(|record| ready(record.ok()))
                .map(|record| (*record).clone())
                .boxed(),
        )
    }

    fn differences(&self, _: Option<&str>) -> DifferenceList {
        DifferenceList::default()
    }
}
