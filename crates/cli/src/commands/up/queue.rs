//! A queue that needs nothing to install: orders rush in now and then, ready pods of `orders-worker` take them, and
//! whoever asks over HTTP is told how many wait.

use std::f64::consts::PI;
use std::io;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::Request;
use kube::Client;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

/// Where it answers, if that port is free: what the example says.
const PORT: u16 = 7438;
/// Who works on it.
const WORKERS: &str = "/apis/apps/v1/namespaces/default/deployments/orders-worker";
/// From rush to rush.
const EVERY: f64 = 240.0;
/// When a rush begins, and how long it lasts.
const RUSH: (f64, f64) = (15.0, 100.0);
/// Orders per second in the middle of a rush.
const PEAK: f64 = 24.0;
/// Orders per second that one worker takes.
const EACH: f64 = 2.0;
/// How often it moves.
const TICK: Duration = Duration::from_millis(500);
/// How long a question may take, and how long it may be.
const PATIENCE: Duration = Duration::from_secs(5);
const LONGEST: usize = 8 * 1024;

/// A queue that runs; it ends with this.
pub(super) struct Queue {
    pub(super) port: u16,
    began: Instant,
    tasks: [JoinHandle<()>; 2],
}

/// Orders that wait.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Orders(f64);

impl Orders {
    /// So many seconds after the start, `seconds` after the last step, with so many workers.
    fn step(self, at: f64, seconds: f64, workers: f64) -> Self {
        Self((self.0 + arrivals(at) * seconds - workers * EACH * seconds).max(0.0))
    }

    /// Whole ones.
    fn waiting(self) -> u64 {
        // Not negative, and far from the end of the range.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let whole = self.0.floor() as u64;
        whole
    }
}

/// Orders per second, so many seconds after the start.
fn arrivals(at: f64) -> f64 {
    let (begin, length) = RUSH;
    let since = at.rem_euclid(EVERY) - begin;
    if (0.0..length).contains(&since) { PEAK * (PI * since / length).sin().powi(2) } else { 0.0 }
}

impl Queue {
    /// Opens the queue; it begins to move at once.
    pub(super) async fn open(client: Client) -> io::Result<Self> {
        let listener = match TcpListener::bind((Ipv4Addr::LOCALHOST, PORT)).await {
            Ok(listener) => listener,
            Err(_) => TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?,
        };
        let port = listener.local_addr()?.port();
        let orders = Arc::new(Mutex::new(Orders::default()));
        let began = Instant::now();
        let answering = tokio::spawn(answer(listener, orders.clone()));
        let moving = tokio::spawn(work(client, orders, began));
        Ok(Self { port, began, tasks: [answering, moving] })
    }

    /// A manifest of which the queue is this one.
    pub(super) fn placed(&self, manifest: &str) -> String {
        manifest.replace(&format!("127.0.0.1:{PORT}/"), &format!("127.0.0.1:{}/", self.port))
    }

    /// Orders per second now.
    pub(super) fn arrivals(&self) -> f64 {
        arrivals(self.began.elapsed().as_secs_f64())
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

/// Orders come and go.
async fn work(client: Client, orders: Arc<Mutex<Orders>>, began: Instant) {
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut last = began;
    loop {
        ticks.tick().await;
        let workers = ready(&client).await.unwrap_or(0.0);
        let now = Instant::now();
        let seconds = (now - last).as_secs_f64();
        last = now;
        let mut orders = orders.lock().unwrap_or_else(PoisonError::into_inner);
        *orders = orders.step((now - began).as_secs_f64(), seconds, workers);
    }
}

/// How many workers there are.
async fn ready(client: &Client) -> Option<f64> {
    let request = Request::get(WORKERS).body(Vec::new()).ok()?;
    let found: Value = client.request(request).await.ok()?;
    found.pointer("/status/readyReplicas").and_then(Value::as_f64)
}

async fn answer(listener: TcpListener, orders: Arc<Mutex<Orders>>) {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(TICK).await;
            continue;
        };
        let waiting = orders.lock().unwrap_or_else(PoisonError::into_inner).waiting();
        tokio::spawn(timeout(PATIENCE, say(stream, waiting)));
    }
}

/// Whatever is asked, it is how many wait.
async fn say(mut stream: TcpStream, waiting: u64) -> io::Result<()> {
    let mut asked = Vec::new();
    let mut part = [0; 1024];
    while !asked.windows(4).any(|end| end == b"\r\n\r\n") && asked.len() < LONGEST {
        match stream.read(&mut part).await? {
            0 => return Ok(()),
            read => asked.extend_from_slice(part.get(..read).unwrap_or_default()),
        }
    }
    let body = format!("{{\"messages\":{waiting}}}\n");
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes()).await?;
    stream.shutdown().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_rush_in_and_workers_take_them() {
        let mut orders = Orders::default();
        let (mut woken, mut most) = (None, 0);
        for second in 0..240 {
            // As many workers as there is work for, a little late.
            let workers = (orders.0 / 20.0).ceil().min(30.0);
            orders = orders.step(f64::from(second), 1.0, if orders.0 > 5.0 { workers } else { 0.0 });
            most = most.max(orders.waiting());
            if orders.waiting() > 5 {
                woken.get_or_insert(second);
            }
        }
        assert!(woken.is_some_and(|second| (16..60).contains(&second)), "{woken:?}");
        assert!((100..600).contains(&most), "{most}: several workers, and no more than there may be");
        assert!(orders.waiting() <= 5, "{orders:?}: it sleeps before the next rush");
        assert_eq!(Orders(3.0).step(0.0, 1.0, 5.0), Orders(0.0), "nobody takes what is not there");
    }
}
