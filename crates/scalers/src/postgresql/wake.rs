//! Waits for notifications of a channel (`LISTEN`).

use std::time::Duration;

use tokio::time::timeout;

use super::client::PostgresServer;
use crate::pool::PooledServer as _;
use crate::wake::{WakeSignal, WakeSource};
use crate::{ScalerError, ScalerFuture};

/// How often a connection without notifications is checked.
const CHECK_INTERVAL: Duration = Duration::from_mins(1);

/// The notifications of a channel.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Notifications {
    pub(super) server: PostgresServer,
    pub(super) channel: String,
}

impl Notifications {
    async fn signal_all(&self, signal: &WakeSignal) -> Result<(), ScalerError> {
        let within = PostgresServer::TIMEOUT;
        let opened = timeout(within, self.server.open(Some(signal))).await;
        let mut connection =
            opened.unwrap_or_else(|_| Err(scaler_error!("no connection within {within:?}")))?;
        connection.execute(&listen(&self.channel)).await?;
        // Because of notifications before.
        signal.query_now();
        while timeout(CHECK_INTERVAL, connection.closed()).await.is_err() {
            connection.execute("").await?;
        }
        Err(scaler_error!("the connection was closed"))
    }
}

/// The statement with the quoted name of the channel.
fn listen(channel: &str) -> String {
    format!("LISTEN \"{}\"", channel.replace('"', "\"\""))
}

impl WakeSource for Notifications {
    const TYPE: &'static str = "postgresql";

    fn name(&self) -> String {
        self.server.name()
    }

    fn follow<'a>(&'a self, signal: &'a WakeSignal) -> ScalerFuture<'a, ()> {
        Box::pin(self.signal_all(signal))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::sync::Semaphore;

    use super::*;
    use crate::test_support;

    /// A server that knows no password and notifies after `LISTEN`, once for each permit; returns its port.
    async fn server(notifications: Arc<Semaphore>) -> u16 {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let notifications = Arc::clone(&notifications);
                tokio::spawn(async move {
                    let length = stream.read_u32().await.unwrap() as usize;
                    stream.read_exact(&mut vec![0; length - 4]).await.unwrap();
                    let ready = b"Z\0\0\0\x05I";
                    let accepted = [&b"R\0\0\0\x08\0\0\0\0"[..], ready].concat();
                    stream.write_all(&accepted).await.unwrap();
                    while let Ok(b'Q') = stream.read_u8().await {
                        let length = stream.read_u32().await.unwrap() as usize;
                        let mut statement = vec![0; length - 4];
                        stream.read_exact(&mut statement).await.unwrap();
                        let done = [&b"C\0\0\0\x08SET\0"[..], ready].concat();
                        stream.write_all(&done).await.unwrap();
                        if statement == b"LISTEN \"jo\"\"bs\"\0" {
                            notifications.acquire().await.unwrap().forget();
                            let notification = b"A\0\0\0\x10\0\0\0\x01jo\"bs\0x\0";
                            stream.write_all(notification).await.unwrap();
                        }
                    }
                });
            }
        });
        port
    }

    #[tokio::test]
    async fn notifications_of_the_channel_wake() {
        let notifications = Arc::new(Semaphore::new(0));
        let port = server(Arc::clone(&notifications)).await.to_string();
        let metadata = |channel| {
            [
                ("query", "SELECT 1"),
                ("targetQueryValue", "5"),
                ("host", "127.0.0.1"),
                ("port", &*port),
                ("userName", "u"),
                ("dbName", "d"),
                ("sslmode", "disable"),
                ("wakeChannel", channel),
            ]
        };
        let built = |channel| test_support::build(&test_support::trigger("postgresql", &metadata(channel)));
        let (sender, mut signals) = tokio::sync::mpsc::channel(1);
        assert!(built("").unwrap().wake(sender.clone()).is_none(), "no channel is given");
        let waking = tokio::spawn(built("jo\"bs").unwrap().wake(sender).unwrap());
        // Once because of notifications before, and once because of one.
        for _ in 0..2 {
            let woken = timeout(Duration::from_mins(1), signals.recv()).await;
            assert_eq!(woken.unwrap(), Some(()));
            notifications.add_permits(1);
        }
        waking.abort();
    }

    #[test]
    fn names_of_channels_are_quoted() {
        assert_eq!(listen("jobs"), "LISTEN \"jobs\"");
        assert_eq!(listen("a\"; DROP TABLE x; --"), "LISTEN \"a\"\"; DROP TABLE x; --\"");
    }
}
