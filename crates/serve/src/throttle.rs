//! Limits how often each client may do something that costs others more than the client.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard};

use locks::MutexExt as _;
use tokio::time::Instant;

/// How many clients are remembered.
const MAX_THROTTLED_CLIENTS: usize = 4096;

/// A token bucket per client, by address or name.
#[derive(Debug)]
pub(crate) struct Throttle<K> {
    burst: f64,
    per_second: f64,
    buckets: Mutex<HashMap<K, Bucket>>,
}

#[derive(Clone, Copy, Debug)]
struct Bucket {
    left: f64,
    at: Instant,
}

impl<K: Clone + Eq + Hash> Throttle<K> {
    /// Each client may take `burst` tokens at once, and `per_second` more in each second.
    pub(crate) fn new(burst: u32, per_second: u32) -> Self {
        Self { burst: burst.into(), per_second: per_second.into(), buckets: Mutex::default() }
    }

    /// Takes one token of the client; false if none is left.
    pub(crate) fn take(&self, client: &K) -> bool {
        let now = Instant::now();
        let mut buckets = self.buckets();
        if buckets.len() >= MAX_THROTTLED_CLIENTS && !buckets.contains_key(client) {
            // A client whose bucket is full again need not be remembered.
            buckets.retain(|_, bucket| self.left(*bucket, now) < self.burst);
            let oldest = buckets.iter().min_by_key(|(_, bucket)| bucket.at).map(|(client, _)| client.clone());
            if let Some(oldest) = oldest.filter(|_| buckets.len() >= MAX_THROTTLED_CLIENTS) {
                buckets.remove(&oldest);
            }
        }
        let bucket = buckets.entry(client.clone()).or_insert(Bucket { left: self.burst, at: now });
        let left = self.left(*bucket, now);
        let taken = left >= 1.0;
        *bucket = Bucket { left: if taken { left - 1.0 } else { left }, at: now };
        taken
    }

    /// Returns a token that was taken for a harmless request.
    pub(crate) fn give_back(&self, client: &K) {
        if let Some(bucket) = self.buckets().get_mut(client) {
            bucket.left = (bucket.left + 1.0).min(self.burst);
        }
    }

    fn left(&self, bucket: Bucket, now: Instant) -> f64 {
        let seconds = now.saturating_duration_since(bucket.at).as_secs_f64();
        (bucket.left + seconds * self.per_second).min(self.burst)
    }

    fn buckets(&self) -> MutexGuard<'_, HashMap<K, Bucket>> {
        self.buckets.locked()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn each_client_has_a_burst_and_a_rate() {
        let throttle = Throttle::new(3, 2);
        let taken = |client: &'static str| (0..10).filter(|_| throttle.take(&client)).count();
        assert_eq!((taken("a"), taken("b")), (3, 3));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(taken("a"), 2);
        throttle.give_back(&"a");
        assert_eq!(taken("a"), 1);
        tokio::time::advance(Duration::from_mins(1)).await;
        throttle.give_back(&"a");
        assert_eq!(taken("a"), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn the_number_of_remembered_clients_is_bounded() {
        let throttle = Throttle::new(2, 1);
        assert!((0..5000).all(|client| throttle.take(&client)));
        assert_eq!(throttle.buckets().len(), MAX_THROTTLED_CLIENTS);
        tokio::time::advance(Duration::from_secs(2)).await;
        assert!(throttle.take(&5000));
        assert_eq!(throttle.buckets().len(), 1);
    }
}
