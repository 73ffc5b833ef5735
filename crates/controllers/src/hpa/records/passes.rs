//! Passes of all autoscalers in the order in which they were made, with a cursor.

#[cfg(test)]
mod tests;

use api::decisions::passes::{
    MAX_PASSES, PassDetail, PassItem, PassList, PassListMeta, PassQuery, UnknownCursor,
};
use jiff::Timestamp;

use super::Records;
use super::kept::{HistorySnapshot, record};
use super::spans::{CopiedSpans, OwnPlace, PassPlace};

impl Records {
    /// Passes in the order in which they were made.
    pub fn passes(&self, query: &PassQuery) -> Result<PassList, UnknownCursor> {
        let limit = query.limit.unwrap_or(MAX_PASSES).min(MAX_PASSES);
        let named = query.name.as_deref();
        let (place, histories, newest, lost, spans) = {
            let table = self.lock();
            let place = query.after.as_deref().map(|cursor| self.place(&table.spans, cursor)).transpose()?;
            let after = place.map(|place| place.number);
            let of_namespace =
                |namespace: &str| query.namespace.as_deref().is_none_or(|given| given == namespace);
            let wanted = table.kept.iter().filter(|(key, history)| {
                history.newest_number() > after.unwrap_or(0)
                    && of_namespace(&key.namespace)
                    && named.is_none_or(|name| super::name_of(key) == name)
            });
            let histories: Vec<HistorySnapshot> =
                wanted.map(|(key, history)| history.snapshot(key, after.unwrap_or(0))).collect();
            let lost = after.is_some_and(|after| after < table.evicted);
            (place, histories, table.number, lost, table.spans.clone())
        };
        let after = place.map(|place| place.number);
        let numbers = numbers(&histories, query, after.unwrap_or(0));
        let end = numbers.get(limit.wrapping_sub(1)).copied();
        let remaining = numbers.len() > limit;
        let last = if remaining { end.unwrap_or(newest) } else { newest };
        let items = items(&histories, query, after.unwrap_or(0), last);
        let cursor = match &query.after {
            // The client has seen more passes than this replica has, so its cursor must not go back.
            Some(given) if items.is_empty() && place.is_some_and(|place| place.is_ahead) => given.clone(),
            _ => {
                let own = PassPlace { epoch: self.epoch, number: last };
                spans.origin(last).unwrap_or(own).cursor()
            }
        };
        let metadata = PassListMeta { cursor, remaining, lost };
        Ok(PassList { metadata, items, ..PassList::default() })
    }

    /// The place that a cursor of this process or of one whose passes were copied means.
    fn place(&self, spans: &CopiedSpans, cursor: &str) -> Result<OwnPlace, UnknownCursor> {
        let place = PassPlace::parse(cursor).ok_or(UnknownCursor)?;
        if place.epoch == self.epoch {
            return Ok(OwnPlace { number: place.number, is_ahead: false });
        }
        spans.own(place).ok_or(UnknownCursor)
    }
}

fn in_time(query: &PassQuery, at: Timestamp) -> bool {
    query.since.is_none_or(|since| at >= since) && query.until.is_none_or(|until| at <= until)
}

/// The numbers of the wanted passes, in order. Reading a number is much cheaper than reading a pass.
fn numbers(histories: &[HistorySnapshot], query: &PassQuery, after: u64) -> Vec<u64> {
    let mut numbers = Vec::new();
    for history in histories {
        history.each(|time, _| {
            if time.number > after && in_time(query, time.at) {
                numbers.push(time.number);
            }
            true
        });
    }
    numbers.sort_unstable();
    numbers
}

/// The wanted passes with a number up to `last`, in order.
fn items(histories: &[HistorySnapshot], query: &PassQuery, after: u64, last: u64) -> Vec<PassItem> {
    let mut items: Vec<(u64, PassItem)> = Vec::new();
    for history in histories {
        history.each(|time, pass| {
            if time.number > after
                && time.number <= last
                && in_time(query, time.at)
                && let Some(document) = pass()
            {
                let record = record(history.key(), document);
                let mut item = PassItem::of(&record);
                let is_whole = match query.detail {
                    PassDetail::Short => false,
                    PassDetail::Changed => !time.continues,
                    PassDetail::Full => true,
                };
                if is_whole {
                    item.record = Some(Box::new(record));
                }
                items.push((time.number, item));
            }
            time.number <= last
        });
    }
    items.sort_unstable_by_key(|(number, _)| *number);
    items.into_iter().map(|(_, item)| item).collect()
}
