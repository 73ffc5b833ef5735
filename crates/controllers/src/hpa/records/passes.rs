//! Passes of all autoscalers in the order in which they were made, with a cursor.

#[cfg(test)]
mod tests;

use api::decisions::passes::{MAX_PASSES, PassItem, PassList, PassListMeta, PassQuery, UnknownCursor};
use jiff::Timestamp;

use super::Records;
use super::kept::{HistorySnapshot, record};

impl Records {
    /// Passes in the order in which they were made.
    pub fn passes(&self, query: &PassQuery) -> Result<PassList, UnknownCursor> {
        let after = query.after.as_deref().map(|cursor| self.number(cursor)).transpose()?;
        let limit = query.limit.unwrap_or(MAX_PASSES).min(MAX_PASSES);
        let named = query.name.as_deref();
        let (histories, newest, lost) = {
            let table = self.lock();
            let of_namespace =
                |namespace: &str| query.namespace.as_deref().is_none_or(|given| given == namespace);
            let wanted = table.kept.iter().filter(|(key, history)| {
                history.newest_number() > after.unwrap_or(0)
                    && of_namespace(&key.namespace)
                    && named.is_none_or(|name| super::name_of(key) == name)
            });
            let histories: Vec<HistorySnapshot> =
                wanted.map(|(key, history)| history.snapshot(key, after.unwrap_or(0))).collect();
            (histories, table.number, after.is_some_and(|after| after < table.evicted))
        };
        let numbers = numbers(&histories, query, after.unwrap_or(0));
        let end = numbers.get(limit.wrapping_sub(1)).copied();
        let remaining = numbers.len() > limit;
        let last = if remaining { end.unwrap_or(newest) } else { newest };
        Ok(PassList {
            metadata: PassListMeta { cursor: format!("{:x}-{last}", self.epoch), remaining, lost },
            items: items(&histories, query, after.unwrap_or(0), last),
            ..PassList::default()
        })
    }

    /// The number in a cursor.
    fn number(&self, cursor: &str) -> Result<u64, UnknownCursor> {
        let (epoch, number) = cursor.split_once('-').ok_or(UnknownCursor)?;
        let epoch = u64::from_str_radix(epoch, 16).map_err(|_| UnknownCursor)?;
        let number = number.parse().map_err(|_| UnknownCursor)?;
        if epoch == self.epoch { Ok(number) } else { Err(UnknownCursor) }
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
                if query.full {
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
