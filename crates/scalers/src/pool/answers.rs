//! Recent answers of a server, which equal requests share.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use locks::MutexExt as _;
use tokio::time::Instant;

use crate::ScalerError;

/// Answers that are older may be removed: few callers accept them.
const MAX_ANSWER_AGE: Duration = Duration::from_mins(1);
/// Number of answers below which none is removed.
const MIN_SWEPT_ANSWERS: usize = 64;

/// An answer or a failure, and when its request began and ended.
pub(super) struct RecentAnswer<T> {
    pub(super) begun: Instant,
    pub(super) at: Instant,
    pub(super) answer: Result<T, ScalerError>,
}

/// The last answer to a request. It is locked while the request is under way, so that equal ones wait for its answer.
pub(super) type AnswerSlot<T> = Arc<tokio::sync::Mutex<Option<RecentAnswer<T>>>>;

/// The answers of a server, by the keys of their requests.
pub(super) struct RecentAnswers<T>(Mutex<AnswerTable<T>>);

struct AnswerTable<T> {
    slots: HashMap<String, AnswerSlot<T>>,
    /// Old answers are removed when there are so many.
    sweep_at: usize,
}

impl<T> Default for RecentAnswers<T> {
    fn default() -> Self {
        Self(Mutex::new(AnswerTable { slots: HashMap::new(), sweep_at: MIN_SWEPT_ANSWERS }))
    }
}

impl<T> RecentAnswers<T> {
    /// The slot of requests with this key.
    pub(super) fn slot(&self, key: String) -> AnswerSlot<T> {
        let mut table = self.0.locked();
        if table.slots.len() >= table.sweep_at {
            table.slots.retain(|_, slot| is_needed(slot));
            table.sweep_at = (2 * table.slots.len()).max(MIN_SWEPT_ANSWERS);
        }
        let slot = table.slots.entry(key).or_insert_with(|| Arc::new(tokio::sync::Mutex::new(None)));
        Arc::clone(slot)
    }
}

impl<T> RecentAnswer<T> {
    /// Whether a caller whose call began at this time accepts it: an answer that is not older than `max_age` or whose request began
    /// later, or a failure that the caller has waited for.
    pub(super) fn is_accepted(&self, requested: Instant, max_age: Duration) -> bool {
        match &self.answer {
            Ok(_) => self.at.elapsed() < max_age || self.begun >= requested,
            Err(_) => self.at > requested,
        }
    }
}

fn is_needed<T>(slot: &AnswerSlot<T>) -> bool {
    match slot.try_lock() {
        Ok(answer) => answer.as_ref().is_some_and(|answer| answer.at.elapsed() < MAX_ANSWER_AGE),
        // A request is under way.
        Err(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn old_answers_are_removed() {
        let answers = RecentAnswers::default();
        for number in 0..MIN_SWEPT_ANSWERS {
            let slot = answers.slot(number.to_string());
            let now = Instant::now();
            *slot.lock().await = Some(RecentAnswer { begun: now, at: now, answer: Ok(number) });
        }
        let count = || answers.0.lock().unwrap().slots.len();
        tokio::time::advance(MAX_ANSWER_AGE).await;
        let under_way = answers.slot("0".to_owned());
        // All were old, and this one was made again.
        assert_eq!(count(), 1);
        let locked = under_way.lock().await;
        for number in 1..MIN_SWEPT_ANSWERS {
            answers.slot(number.to_string());
        }
        answers.slot("last".to_owned());
        assert_eq!(count(), 2);
        drop(locked);
    }
}
