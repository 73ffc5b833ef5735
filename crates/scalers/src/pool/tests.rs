use std::sync::atomic::{AtomicUsize, Ordering};

use locks::MutexExt as _;

use super::*;
use crate::web::with_max_age_after;

/// A server whose clones share state; servers with equal names are equal.
#[derive(Clone)]
struct Play {
    name: &'static str,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    down: std::sync::atomic::AtomicBool,
    hangs: std::sync::atomic::AtomicBool,
    /// Connections of older generations are dead.
    generation: AtomicUsize,
    connected: AtomicUsize,
    requested: AtomicUsize,
    open: AtomicUsize,
    most: AtomicUsize,
}

struct Line(usize, Arc<State>);

impl Drop for Line {
    fn drop(&mut self) {
        self.1.open.fetch_sub(1, Ordering::SeqCst);
    }
}

impl PartialEq for Play {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}
impl Eq for Play {}
impl Hash for Play {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl PooledServer for Play {
    type Connection = Line;
    type Request = &'static str;
    type Response = usize;
    const MAX_CONNECTIONS: usize = 2;
    const TIMEOUT: Duration = Duration::from_secs(3);

    fn name(&self) -> String {
        self.name.to_owned()
    }

    fn sharing_key(request: &&'static str) -> String {
        (*request).to_owned()
    }

    fn connect(&self) -> PoolFuture<'_, Line, ScalerError> {
        Box::pin(async move {
            self.state.connected.fetch_add(1, Ordering::SeqCst);
            if self.state.hangs.load(Ordering::SeqCst) {
                std::future::pending::<()>().await;
            }
            if self.state.down.load(Ordering::SeqCst) {
                bail!("connection refused");
            }
            let open = self.state.open.fetch_add(1, Ordering::SeqCst) + 1;
            self.state.most.fetch_max(open, Ordering::SeqCst);
            Ok(Line(self.state.generation.load(Ordering::SeqCst), Arc::clone(&self.state)))
        })
    }

    fn query<'a>(
        &'a self,
        line: &'a mut Line,
        request: &'a &'static str,
    ) -> PoolFuture<'a, usize, PoolError> {
        Box::pin(async move {
            self.state.requested.fetch_add(1, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(10)).await;
            if line.0 != self.state.generation.load(Ordering::SeqCst) {
                return Err(PoolError::Lost(scaler_error!("broken pipe")));
            }
            match *request {
                "nonsense" => Err(PoolError::Refused(scaler_error!("no such thing"))),
                "hang" => std::future::pending().await,
                _ => Ok(line.0),
            }
        })
    }
}

fn pool() -> (Arc<Pool<Play>>, Arc<State>) {
    let state = Arc::new(State::default());
    (Pools::default().of(&Play { name: "play", state: Arc::clone(&state) }), state)
}

#[tokio::test(start_paused = true)]
async fn connections_are_made_on_first_use_and_reused() {
    let (pool, state) = pool();
    assert_eq!(state.connected.load(Ordering::SeqCst), 0);
    for _ in 0..3 {
        assert_eq!(pool.query(&"value").await, Ok(0));
    }
    assert_eq!(pool.query(&"nonsense").await.unwrap_err().message, "no such thing");
    assert_eq!(state.connected.load(Ordering::SeqCst), 1);
    tokio::time::advance(IDLE_TIMEOUT).await;
    assert_eq!(pool.query(&"value").await, Ok(0));
    assert_eq!((state.connected.load(Ordering::SeqCst), state.open.load(Ordering::SeqCst)), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn restarted_server_is_reconnected_at_once() {
    let (pool, state) = pool();
    assert_eq!(pool.query(&"value").await, Ok(0));
    state.generation.store(1, Ordering::SeqCst);
    assert_eq!(pool.query(&"value").await, Ok(1));
}

#[tokio::test(start_paused = true)]
async fn connection_backoff_grows() {
    let (pool, state) = pool();
    state.down.store(true, Ordering::SeqCst);
    for _ in 0..50 {
        assert_eq!(pool.query(&"value").await.unwrap_err().message, "connection refused");
    }
    assert_eq!(state.connected.load(Ordering::SeqCst), 1);
    for tried in 2..20 {
        tokio::time::advance(MAX_BACKOFF).await;
        assert!(pool.query(&"value").await.is_err());
        assert!(pool.query(&"value").await.is_err());
        assert_eq!(state.connected.load(Ordering::SeqCst), tried);
    }
    state.down.store(false, Ordering::SeqCst);
    tokio::time::advance(MAX_BACKOFF).await;
    assert_eq!(pool.query(&"value").await, Ok(0));
}

#[tokio::test(start_paused = true)]
async fn timed_out_connection_is_not_reused() {
    let (pool, state) = pool();
    assert_eq!(pool.query(&"hang").await.unwrap_err().message, "play: no answer within 3s");
    assert_eq!(state.open.load(Ordering::SeqCst), 0);
    assert_eq!(pool.query(&"value").await, Ok(0));
    assert_eq!(state.connected.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn hanging_connect_is_subject_to_backoff() {
    let (pool, state) = pool();
    state.hangs.store(true, Ordering::SeqCst);
    assert_eq!(pool.query(&"value").await.unwrap_err().message, "play: no answer within 3s");
    let begun = Instant::now();
    assert_eq!(pool.query(&"value").await.unwrap_err().message, "play: did not accept a connection in time");
    assert_eq!(begun.elapsed(), Duration::ZERO);
    assert_eq!(state.connected.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn number_of_connections_is_limited() {
    let (pool, state) = pool();
    let requested = futures::future::join_all((0..20).map(|_| pool.query(&"value"))).await;
    assert!(requested.iter().all(Result::is_ok));
    assert_eq!(state.most.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn equal_servers_share_a_pool_until_it_is_dropped() {
    let pools = Pools::default();
    let server = |name| Play { name, state: Arc::default() };
    let first = pools.of(&server("a"));
    assert!(Arc::ptr_eq(&first, &pools.of(&server("a"))));
    assert!(!Arc::ptr_eq(&first, &pools.of(&server("b"))));
    let weak = Arc::downgrade(&first);
    drop(first);
    assert!(weak.upgrade().is_none());
    let _ = pools.of(&server("c"));
    assert_eq!(pools.0.locked().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn namespaces_share_neither_sessions_nor_places() {
    let pools = Pools::default();
    let server = Play { name: "play", state: Arc::default() };
    let (one, other) = (pools.of_namespace("one", &server), pools.of_namespace("other", &server));
    assert!(Arc::ptr_eq(&one, &pools.of_namespace("one", &server)));
    assert!(!Arc::ptr_eq(&one, &other) && !Arc::ptr_eq(&one, &pools.of(&server)));
    let hanging = futures::future::join_all((0..10).map(|_| one.query(&"hang")));
    let answer = tokio::select! {
        biased;
        _ = hanging => panic!("queries that hang must not end first"),
        answer = other.query(&"value") => answer,
    };
    assert!(answer.is_ok(), "slow queries of another namespace hold places of their own");
}

#[tokio::test(start_paused = true)]
async fn equal_requests_share_a_response_of_accepted_age() {
    const MAX_AGE: Duration = Duration::from_secs(5);
    let (pool, state) = pool();
    let query = |request: &'static str, age| {
        let pool = Arc::clone(&pool);
        async move { with_max_age_after(age, None, pool.query(&request)).await.0 }
    };
    let requested = || state.requested.load(Ordering::SeqCst);
    let both = futures::future::join(query("value", MAX_AGE), query("value", MAX_AGE)).await;
    assert_eq!((both, requested()), ((Ok(0), Ok(0)), 1));
    assert_eq!((query("other", MAX_AGE).await, requested()), (Ok(0), 2));
    assert_eq!((query("value", MAX_AGE).await, requested()), (Ok(0), 2));
    tokio::time::advance(MAX_AGE).await;
    assert_eq!((query("value", MAX_AGE).await, requested()), (Ok(0), 3));
    // A caller that accepts no age is answered anew, and others share that answer.
    assert_eq!((query("value", Duration::ZERO).await, requested()), (Ok(0), 4));
    assert_eq!((query("value", MAX_AGE).await, requested()), (Ok(0), 4));
    // A failure is shared by those who wait for it only.
    let both = futures::future::join(query("nonsense", MAX_AGE), query("nonsense", MAX_AGE)).await;
    assert!(both.0.is_err() && both.1.is_err());
    assert_eq!(requested(), 5);
    assert!(query("nonsense", MAX_AGE).await.is_err());
    assert_eq!(requested(), 6);
    // Without an age nothing is shared.
    assert_eq!((pool.query(&"value").await, requested()), (Ok(0), 7));
}
