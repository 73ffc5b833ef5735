//! A thread of its own for the renewal of the lease and for probes, so that work on the main thread delays neither.

use cluster::connect::{ConnectTarget, Connection, connect};
use kube::Client;

use crate::failure::Failure;
use crate::probe_thread::{ProbeRuntime, ProbeThread};

/// Where the lease is renewed and probes are answered.
#[derive(Clone)]
pub(crate) struct LeaseRuntime {
    /// The thread.
    pub(crate) thread: ProbeRuntime,
    /// A client whose connections belong to that thread.
    pub(crate) client: Client,
}

impl LeaseRuntime {
    /// Starts the thread and connects it to the cluster. The calling runtime beats from now on.
    pub(crate) async fn start(target: &ConnectTarget) -> Result<(ProbeThread, Self), Failure> {
        let (owner, thread) = ProbeThread::start("lease")?;
        let target = target.clone();
        let connection =
            async move { connect(&target).await.map_err(|error| Failure::Outside(error.to_string())) };
        let client = thread.run(connection).await?.client;
        Ok((owner, Self { thread, client }))
    }

    /// The thread of the caller: for `plimsoll up`, where all roles share a process.
    #[cfg_attr(not(feature = "desk"), allow(dead_code))]
    pub(crate) fn same_thread(connection: &Connection) -> Self {
        Self { thread: ProbeRuntime::same_thread(), client: connection.client.clone() }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::io::{Read as _, Write as _};
    use std::net::{SocketAddr, TcpStream};
    use std::sync::mpsc;
    use std::time::Duration;

    use cluster::Clock;
    use cluster::lease::{Election, LeaseSettings};
    use localkube::{Cluster, Options};
    use serve::{ExtraListener, HealthChecks};
    use tokio::runtime::Builder;
    use tokio::sync::oneshot;

    use super::*;

    const TEST_TIMEOUT: Duration = Duration::from_mins(1);

    /// A cluster on a thread of its own, until the returned sender is dropped; and its kubeconfig.
    fn cluster() -> (oneshot::Sender<()>, String) {
        let (stop, stopped) = oneshot::channel::<()>();
        let (started, kubeconfig) = mpsc::channel();
        std::thread::spawn(move || {
            Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
                let running = Cluster::start(Options::default()).await.unwrap();
                let server = running.serve().await.unwrap();
                started.send(server.kubeconfig.clone()).unwrap();
                let _ = stopped.await;
            });
        });
        (stop, kubeconfig.recv_timeout(TEST_TIMEOUT).unwrap())
    }

    fn get(address: SocketAddr, path: &str) -> String {
        let mut stream = TcpStream::connect_timeout(&address, TEST_TIMEOUT).unwrap();
        stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    #[tokio::test]
    async fn probes_answer_and_the_lease_is_taken_while_the_main_thread_is_stuck() {
        let (_cluster, kubeconfig) = cluster();
        let file = std::env::temp_dir().join(format!("plimsoll-lease-thread-{}", std::process::id()));
        std::fs::write(&file, kubeconfig).unwrap();
        let target = ConnectTarget { kubeconfig: Some(file.clone()), context: None };
        let (_thread, lease_runtime) = LeaseRuntime::start(&target).await.unwrap();
        std::fs::remove_file(&file).unwrap();
        let mut checks = HealthChecks::new();
        let main = lease_runtime.clone();
        checks.add_live("loop", move || {
            if main.thread.is_beating() { Ok(()) } else { Err("the loop is stuck".into()) }
        });
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        let listener =
            lease_runtime.thread.run(async move { Ok(ExtraListener::health(address, checks).await) });
        let listener = listener.await.unwrap().unwrap();
        let address = listener.address();
        let LeaseRuntime { thread: ProbeRuntime { handle, heartbeat }, client } = lease_runtime.clone();
        let settings = LeaseSettings::new("default", "test", "one");
        let (_election, leadership) =
            Election::start_on(&handle, client, settings, Clock::system(), heartbeat);

        // Blocks this thread, and with it the main runtime, until another thread has seen both.
        let outside = std::thread::spawn(move || {
            let answer = get(address, "/healthz");
            let waiting = Builder::new_current_thread().enable_all().build().unwrap();
            waiting
                .block_on(async { tokio::time::timeout(TEST_TIMEOUT, leadership.acquired()).await.unwrap() });
            answer
        });
        let answer = outside.join().unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        listener.stop().await;
    }

    /// The answer over TLS.
    fn get_securely(address: SocketAddr, authority: &str, path: &str) -> String {
        use rustls::pki_types::ServerName;
        let provider = std::sync::Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider);
        let roots = localkube::access::roots(authority.as_bytes()).unwrap();
        let config = config.with_safe_default_protocol_versions().unwrap().with_root_certificates(roots);
        let config = std::sync::Arc::new(config.with_no_client_auth());
        let name = ServerName::try_from("localhost").unwrap();
        let session = rustls::ClientConnection::new(config, name).unwrap();
        let stream = TcpStream::connect_timeout(&address, TEST_TIMEOUT).unwrap();
        stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
        let mut stream = rustls::StreamOwned::new(session, stream);
        write!(stream, "GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").unwrap();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8(answer).unwrap()
    }

    #[tokio::test]
    async fn secure_port_answers_probes_while_the_main_thread_is_stuck_and_works_there() {
        let (_cluster, kubeconfig) = cluster();
        let file = std::env::temp_dir().join(format!("plimsoll-secure-port-{}", std::process::id()));
        std::fs::write(&file, kubeconfig).unwrap();
        let target = ConnectTarget { kubeconfig: Some(file.clone()), context: None };
        let (_thread, LeaseRuntime { thread, client }) = LeaseRuntime::start(&target).await.unwrap();
        std::fs::remove_file(&file).unwrap();
        // A route that says on which thread it works.
        let route = serve::Route::new(tower::service_fn(|_: http::Request<serve::Body>| async {
            let id = format!("{:?}", std::thread::current().id());
            Ok::<_, std::convert::Infallible>(serve::response::text(200, id))
        }));
        let main = tokio::runtime::Handle::current();
        let app = serve::App {
            routes: vec![("/work".to_owned(), crate::probe_thread::on_runtime(route, &main))],
            ..serve::App::default()
        };
        let options = serve::ServerOptions {
            address: SocketAddr::from(([127, 0, 0, 1], 0)),
            access: serve::Access::Anyone,
            ..serve::ServerOptions::default()
        };
        let server = thread.run(crate::serving::start(options, client, app)).await.unwrap();
        let (address, authority) = (server.address(), server.ca_pem().unwrap().to_owned());
        // Blocks this thread, and with it the main runtime, until a probe was answered.
        let probed = std::thread::spawn({
            let authority = authority.clone();
            move || get_securely(address, &authority, "/healthz")
        });
        let answer = probed.join().unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        let worked = tokio::task::spawn_blocking(move || get_securely(address, &authority, "/work"));
        let (answer, own) = (worked.await.unwrap(), format!("{:?}", std::thread::current().id()));
        assert!(answer.ends_with(&own), "{answer} does not end with {own}");
        server.stop().await;
    }
}
