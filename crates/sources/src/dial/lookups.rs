//! Limits of name resolutions under way. Each holds a thread until its name server answers, which a server of a tenant may not do, and
//! the threads are those of all tenants. Namespaces share no limit but that of all, so that one of them makes no domain slow for others.

use std::collections::HashMap;
use std::io;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use locks::MutexExt as _;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};

use crate::tenant::{NamespaceParts, namespace};

/// Resolutions under way: half of the threads for blocking work, which files and large responses need, too.
const MAX_LOOKUPS: usize = 256;
/// Resolutions under way for one namespace, whose triggers may name any number of domains that do not resolve.
const MAX_NAMESPACE_LOOKUPS: usize = 64;
/// Resolutions under way in one domain for one namespace.
const MAX_DOMAIN_LOOKUPS: usize = 32;
/// The same in a domain whose names were slow lately.
const MAX_SLOW_DOMAIN_LOOKUPS: usize = 2;
/// A resolution that takes longer makes its domain slow.
const SLOW_LOOKUP: Duration = Duration::from_secs(1);
/// How long a domain stays slow, unless one of its names is resolved quickly before.
const SLOW_DOMAIN_TTL: Duration = Duration::from_mins(1);
/// Number of domains below which none is forgotten.
const MIN_SWEPT_DOMAINS: usize = 256;

/// The resolutions of this process.
pub(super) static LOOKUPS: LazyLock<NameLookups> = LazyLock::new(NameLookups::default);

/// Resolutions under way.
pub(super) struct NameLookups {
    permits: Arc<Semaphore>,
    parts: NamespaceParts<Semaphore>,
    domains: Mutex<DomainTable>,
}

/// The domains whose names are resolved, or were slow lately.
struct DomainTable {
    /// By namespace, if there is one, and name.
    by_name: HashMap<(Option<Arc<str>>, String), Arc<DomainLookups>>,
    /// Unused domains are removed when there are so many.
    sweep_at: usize,
}

/// Resolutions under way in one domain.
struct DomainLookups {
    permits: Arc<Semaphore>,
    slow_permits: Arc<Semaphore>,
    /// When a resolution was slow; none since a quick one.
    slow: Mutex<Option<Instant>>,
    /// Wakes those who wait for a place of a slow domain.
    recovered: Notify,
}

impl Default for NameLookups {
    fn default() -> Self {
        let domains = DomainTable { by_name: HashMap::new(), sweep_at: MIN_SWEPT_DOMAINS };
        let parts = NamespaceParts::new(|| Semaphore::new(MAX_NAMESPACE_LOOKUPS));
        Self { permits: Arc::new(Semaphore::new(MAX_LOOKUPS)), parts, domains: Mutex::new(domains) }
    }
}

impl NameLookups {
    /// Runs the resolution of a host, when there is a place for it. It keeps its place until it ends, also if this future is dropped:
    /// its thread cannot be stopped.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        host: &str,
        lookup: impl Future<Output = io::Result<T>> + Send + 'static,
    ) -> io::Result<T> {
        let domain = self.domain(host);
        let place = domain.place().await?;
        // In this order nobody waits for others while holding what still others wait for.
        let part = match self.parts.current() {
            Some(part) => Some(part.acquire_owned().await.map_err(io::Error::other)?),
            None => None,
        };
        let permit = Arc::clone(&self.permits).acquire_owned().await.map_err(io::Error::other)?;
        let running = tokio::spawn(async move {
            let found = domain.watch(lookup).await;
            drop((place, part, permit));
            found
        });
        running.await.map_err(io::Error::other)?
    }

    /// As [`NameLookups::run`]; none if the name servers do not answer within this time. It is an error if they were not asked because
    /// others wait for theirs, except in a domain that is slow.
    pub(super) async fn run_within<T: Send + 'static>(
        &self,
        host: &str,
        within: Duration,
        lookup: impl Future<Output = io::Result<T>> + Send + 'static,
    ) -> io::Result<Option<T>> {
        let is_begun = Arc::new(AtomicBool::new(false));
        let begun = Arc::clone(&is_begun);
        let noted = async move {
            begun.store(true, Ordering::Relaxed);
            lookup.await
        };
        match timeout(within, self.run(host, noted)).await {
            Ok(found) => found.map(Some),
            Err(_) if is_begun.load(Ordering::Relaxed) || self.domain(host).is_slow() => Ok(None),
            Err(_) => {
                Err(io::Error::new(io::ErrorKind::ResourceBusy, "too many other names are being resolved"))
            }
        }
    }

    fn domain(&self, host: &str) -> Arc<DomainLookups> {
        let mut domains = self.domains.locked();
        if domains.by_name.len() >= domains.sweep_at {
            domains.by_name.retain(|_, domain| Arc::strong_count(domain) > 1 || domain.is_slow());
            domains.sweep_at = (2 * domains.by_name.len()).max(MIN_SWEPT_DOMAINS);
        }
        Arc::clone(domains.by_name.entry((namespace(), domain_of(host))).or_default())
    }
}

impl Default for DomainLookups {
    fn default() -> Self {
        Self {
            permits: Arc::new(Semaphore::new(MAX_DOMAIN_LOOKUPS)),
            slow_permits: Arc::new(Semaphore::new(MAX_SLOW_DOMAIN_LOOKUPS)),
            slow: Mutex::default(),
            recovered: Notify::new(),
        }
    }
}

impl DomainLookups {
    fn is_slow(&self) -> bool {
        self.slow.locked().is_some_and(|since| since.elapsed() < SLOW_DOMAIN_TTL)
    }

    /// A place for one resolution.
    async fn place(&self) -> io::Result<OwnedSemaphorePermit> {
        loop {
            let recovered = self.recovered.notified();
            if self.is_slow() {
                tokio::select! {
                    place = Arc::clone(&self.slow_permits).acquire_owned() => {
                        return place.map_err(io::Error::other);
                    }
                    () = recovered => {}
                }
            } else {
                let place = Arc::clone(&self.permits).acquire_owned().await.map_err(io::Error::other)?;
                // The domain may have become slow meanwhile.
                if !self.is_slow() {
                    return Ok(place);
                }
            }
        }
    }

    /// Runs a resolution, and notes if it is slow before it ends. A quick one shows that the name servers answer: a lost packet delays
    /// one name by seconds, and must not slow down thousands of others.
    async fn watch<T>(&self, lookup: impl Future<Output = T>) -> T {
        let mut lookup = pin!(lookup);
        if let Ok(found) = timeout(SLOW_LOOKUP, &mut lookup).await {
            if self.slow.locked().take().is_some() {
                self.recovered.notify_waiters();
            }
            return found;
        }
        *self.slow.locked() = Some(Instant::now());
        lookup.await
    }
}

/// The part of a host name that the names of one owner have in common: the namespace of a Service, and otherwise the last two labels.
/// An owner of many names must not have many domains.
fn domain_of(host: &str) -> String {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    let labels: Vec<&str> = host.split('.').collect();
    let length = match labels.as_slice() {
        // `NAME.NAMESPACE` is a Service, too.
        [_, _] => 1,
        [.., "svc", "cluster", "local"] => 4,
        _ => 2,
    };
    labels.get(labels.len().saturating_sub(length)..).unwrap_or_default().join(".")
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;
    use crate::tenant::in_namespace;

    #[test]
    fn names_of_one_owner_are_of_one_domain() {
        for (host, domain) in [
            ("redis", "redis"),
            ("redis.shop", "shop"),
            ("redis.shop.svc", "shop.svc"),
            ("redis.shop.svc.cluster.local", "shop.svc.cluster.local"),
            ("redis-0.redis.shop.svc.cluster.local.", "shop.svc.cluster.local"),
            ("a.b.Evil.example", "evil.example"),
            ("a.b1.svc.evil.example", "evil.example"),
            ("", ""),
        ] {
            assert_eq!(domain_of(host), domain, "{host}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn names_that_do_not_resolve_leave_room_for_others() {
        let lookups = Arc::new(NameLookups::default());
        let hang = |host: String| {
            let lookups = Arc::clone(&lookups);
            async move { timeout(Duration::from_secs(5), lookups.run(&host, pending::<io::Result<()>>())).await }
        };
        // The callers give up, but their threads still wait for the name server.
        let waiting = (0..1000).map(|number| hang(format!("h{number}.slow.example")));
        for ended in futures::future::join_all(waiting).await {
            assert!(ended.is_err());
        }
        assert_eq!(lookups.permits.available_permits(), MAX_LOOKUPS - MAX_DOMAIN_LOOKUPS);
        let other = lookups.run("h.other.example", ready(Ok(7)));
        assert_eq!(timeout(Duration::from_millis(1), other).await.unwrap().unwrap(), 7);
        // A domain that is known to be slow holds few places.
        let lookups = NameLookups::default();
        lookups.domain("slow.example.com").slow.locked().replace(Instant::now());
        for number in 0..10 {
            let host = format!("h{number}.example.com");
            let hanging = lookups.run(&host, pending::<io::Result<()>>());
            assert!(timeout(Duration::from_millis(1), hanging).await.is_err());
        }
        assert_eq!(lookups.permits.available_permits(), MAX_LOOKUPS - MAX_SLOW_DOMAIN_LOOKUPS);
    }

    #[tokio::test(start_paused = true)]
    async fn lookups_of_one_namespace_leave_room_for_others() {
        let hang = |lookups: &Arc<NameLookups>, host: String| {
            let lookups = Arc::clone(lookups);
            let lookup = async move { lookups.run(&host, pending::<io::Result<()>>()).await };
            in_namespace("slow", timeout(Duration::from_secs(5), lookup))
        };
        let lookups = Arc::new(NameLookups::default());
        // Each in a domain of its own.
        let waiting = (0..1000).map(|number| hang(&lookups, format!("h.slow{number}.example")));
        for ended in futures::future::join_all(waiting).await {
            assert!(ended.is_err());
        }
        assert_eq!(lookups.permits.available_permits(), MAX_LOOKUPS - MAX_NAMESPACE_LOOKUPS);
        // Names of a domain that is slow for one namespace are resolved for others.
        let lookups = Arc::new(NameLookups::default());
        for _ in 0..2 {
            let hanging = (0..40).map(|_| hang(&lookups, "h.both.example".to_owned()));
            futures::future::join_all(hanging).await;
        }
        let held = MAX_DOMAIN_LOOKUPS + MAX_SLOW_DOMAIN_LOOKUPS;
        assert_eq!(lookups.permits.available_permits(), MAX_LOOKUPS - held);
        let other = in_namespace("other", lookups.run("h.both.example", ready(Ok(7))));
        assert_eq!(timeout(Duration::from_millis(1), other).await.unwrap().unwrap(), 7);
    }

    #[tokio::test(start_paused = true)]
    async fn domain_is_slow_until_a_name_is_resolved_quickly() {
        let lookups = NameLookups::default();
        let domain = lookups.domain("h.example.com");
        let delayed = async {
            tokio::time::sleep(2 * SLOW_LOOKUP).await;
            io::Result::Ok(())
        };
        lookups.run("lost-packet.example.com", delayed).await.unwrap();
        assert!(domain.is_slow());
        let _held = Arc::clone(&domain.slow_permits).acquire_many_owned(2).await.unwrap();
        let mut waiting = pin!(lookups.run("h.example.com", ready(Ok(()))));
        assert!(futures::poll!(&mut waiting).is_pending());
        domain.watch(ready(())).await;
        assert!(!domain.is_slow());
        timeout(Duration::from_millis(1), waiting).await.unwrap().unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn wait_for_other_names_is_no_answer_of_a_name_server() {
        let lookups = NameLookups::default();
        let found = lookups.run_within("h.example.com", SLOW_LOOKUP, ready(Ok(7))).await;
        assert_eq!(found.unwrap(), Some(7));
        let silent = lookups.run_within("h.silent.example", SLOW_LOOKUP, pending::<io::Result<()>>()).await;
        assert_eq!(silent.unwrap(), None);
        let left = lookups.permits.available_permits();
        let _held = Arc::clone(&lookups.permits).acquire_many_owned(left as u32).await.unwrap();
        let error = lookups.run_within("h.example.com", SLOW_LOOKUP, ready(Ok(7))).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ResourceBusy);
    }

    #[tokio::test]
    async fn domains_without_lookups_are_forgotten() {
        let lookups = NameLookups::default();
        for number in 0..2 * MIN_SWEPT_DOMAINS {
            lookups.run(&format!("h.d{number}.example"), ready(Ok(()))).await.unwrap();
        }
        let count = lookups.domains.locked().by_name.len();
        assert!(count <= MIN_SWEPT_DOMAINS, "{count}");
    }
}
