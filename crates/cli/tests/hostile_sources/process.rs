//! The binary as a process: its log, probes and memory.

use std::io::{BufRead as _, BufReader, Read};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use localkube::access::{Authority, roots};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use serde_json::Value;

use super::test_cluster::TestCluster;
use super::{WAIT_TIMEOUT, probe_bound};

/// The pause between two probes of a listener.
const PROBE_PAUSE: Duration = Duration::from_millis(50);
/// The unit of the times in /proc/stat.
const TICK: Duration = Duration::from_millis(10);
/// A probe that takes longer has failed.
const PROBE_TIMEOUT: Duration = Duration::from_secs(30);
/// Lines of the log that a failed test shows.
const SHOWN_LINES: usize = 30;

/// A running process. It is killed when this is dropped.
pub(crate) struct Process {
    child: Child,
    name: String,
    log: Arc<Mutex<Vec<String>>>,
    authority: Authority,
}

/// Threads that send probes.
pub(crate) struct Prober {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Probes>>,
}

/// Results of probes.
#[derive(Default)]
pub(crate) struct Probes {
    pub(crate) count: usize,
    pub(crate) slowest: Duration,
    /// Those that took longer than the bound, with the steal time meanwhile.
    pub(crate) slow: Vec<String>,
    pub(crate) failures: Vec<String>,
}

impl Process {
    /// Starts a role on loopback, on any ports, with a certificate that probes verify.
    pub(crate) fn start(cluster: &TestCluster, role: &str, flags: &[&str]) -> Self {
        let authority = Authority::new("hostile sources").unwrap();
        let identity = authority.server(&["localhost"]).unwrap();
        let (certificate, key) =
            (cluster.write("tls.crt", &identity.certificate), cluster.write("tls.key", &identity.key));
        let mut child = Command::new(env!("CARGO_BIN_EXE_plimsoll"))
            .arg(role)
            .arg(format!("--kubeconfig={}", cluster.file("kubeconfig").display()))
            .args(["--bind-address=127.0.0.1", "--secure-port=0", "--health-probe-bind-address=127.0.0.1:0"])
            .arg(format!("--tls-cert-file={}", certificate.display()))
            .arg(format!("--tls-private-key-file={}", key.display()))
            .args(flags)
            .env_remove("KUBECONFIG")
            .env("POD_NAMESPACE", "default")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let log = Arc::<Mutex<Vec<String>>>::default();
        let (out, err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        for source in [Box::new(out) as Box<dyn Read + Send>, Box::new(err)] {
            let log = Arc::clone(&log);
            std::thread::spawn(move || {
                for line in BufReader::new(source).lines().map_while(Result::ok) {
                    log.lock().unwrap().push(line);
                }
            });
        }
        Self { child, name: role.to_owned(), log, authority }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The last lines of the log.
    pub(crate) fn log_end(&self) -> String {
        let log = self.log.lock().unwrap();
        log[log.len().saturating_sub(SHOWN_LINES)..].join("\n")
    }

    /// The address in the line that says that a listener serves: that of probes has a flag.
    fn serving(&self, has_flag: bool) -> SocketAddr {
        let deadline = Instant::now() + WAIT_TIMEOUT;
        loop {
            let found = self.log.lock().unwrap().iter().find_map(|line| {
                let line: Value = serde_json::from_str(line).ok()?;
                let fits =
                    line.get("message")?.as_str()? == "serving" && line.get("flag").is_some() == has_flag;
                if fits { line.get("address")?.as_str()?.parse().ok() } else { None }
            });
            if let Some(address) = found {
                return address;
            }
            assert!(Instant::now() < deadline, "it does not serve:\n{}", self.log_end());
            std::thread::sleep(PROBE_PAUSE);
        }
    }

    pub(crate) fn secure_address(&self) -> SocketAddr {
        self.serving(false)
    }

    /// TLS of a client that verifies the certificate of this process.
    pub(crate) fn client_config(&self) -> Arc<ClientConfig> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config =
            ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let roots = roots(self.authority.certificate().as_bytes()).unwrap();
        Arc::new(config.with_root_certificates(roots).with_no_client_auth())
    }

    /// Probes both listeners from now on, each on its own thread and each time with a new connection, as kubelets do.
    pub(crate) fn probe(&self) -> Prober {
        let (plain, secure) = (self.serving(true), self.serving(false));
        let config = self.client_config();
        let stop = Arc::new(AtomicBool::new(false));
        let threads = vec![
            repeat(Arc::clone(&stop), "the probe listener", move || get(connect(plain)?)),
            repeat(Arc::clone(&stop), "the secure port", move || {
                let name = ServerName::try_from("localhost").unwrap();
                let session =
                    ClientConnection::new(Arc::clone(&config), name).map_err(std::io::Error::other)?;
                get(StreamOwned::new(session, connect(secure)?))
            }),
        ];
        Prober { stop, threads }
    }

    /// The peak of the resident memory.
    pub(crate) fn peak_memory_kib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.trim().trim_end_matches(" kB").trim().parse().unwrap()
    }

    pub(crate) fn assert_no_panic(&self) {
        let log = self.log.lock().unwrap();
        let bad: Vec<&String> = log.iter().filter(|line| line.contains("panicked")).collect();
        assert!(bad.is_empty(), "{bad:#?}");
    }

    /// Sends SIGTERM, and waits until the process has ended.
    pub(crate) fn stop(mut self) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
        let deadline = Instant::now() + WAIT_TIMEOUT;
        while self.child.try_wait().unwrap().is_none() {
            assert!(Instant::now() < deadline, "it does not stop:\n{}", self.log_end());
            std::thread::sleep(PROBE_PAUSE);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Prober {
    /// Stops the threads, and returns all results.
    pub(crate) fn stop(self) -> Probes {
        self.stop.store(true, Ordering::SeqCst);
        let mut all = Probes::default();
        for thread in self.threads {
            let probes = thread.join().unwrap();
            all.count += probes.count;
            all.slowest = all.slowest.max(probes.slowest);
            all.slow.extend(probes.slow);
            all.failures.extend(probes.failures);
        }
        all
    }
}

/// The steal time of this machine: what its host has taken from all of its CPUs for other virtual machines.
fn steal_time() -> Duration {
    let text = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let ticks = text.split_whitespace().nth(8).and_then(|ticks| ticks.parse().ok());
    TICK * ticks.unwrap_or_default()
}

/// Sends probes until it is stopped.
fn repeat(
    stop: Arc<AtomicBool>,
    listener: &'static str,
    probe: impl Fn() -> std::io::Result<String> + Send + 'static,
) -> JoinHandle<Probes> {
    // Until its watches are listed, the process is not healthy.
    let deadline = Instant::now() + WAIT_TIMEOUT;
    while !probe().is_ok_and(|answer| answer.starts_with("HTTP/1.1 200")) {
        assert!(Instant::now() < deadline, "{listener} does not answer: {:?}", probe());
        std::thread::sleep(PROBE_PAUSE);
    }
    std::thread::spawn(move || {
        let mut probes = Probes::default();
        while !stop.load(Ordering::SeqCst) {
            let (begun, steal_before) = (Instant::now(), steal_time());
            match probe() {
                Ok(answer) if answer.starts_with("HTTP/1.1 200") => {}
                Ok(answer) => probes.failures.push(format!("{listener}: {answer}")),
                Err(error) => {
                    probes.failures.push(format!("{listener}: {error} after {:?}", begun.elapsed()));
                }
            }
            probes.count += 1;
            let taken = begun.elapsed();
            if taken > probe_bound() {
                let steal = steal_time().saturating_sub(steal_before);
                probes.slow.push(format!("{listener}: {taken:?}, steal time {steal:?}"));
            }
            probes.slowest = probes.slowest.max(taken);
            std::thread::sleep(PROBE_PAUSE);
        }
        probes
    })
}

fn connect(address: SocketAddr) -> std::io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&address, PROBE_TIMEOUT)?;
    // Go's clients, and so kubelets, set this: otherwise the request waits up to 40 ms for a delayed acknowledgement of the handshake.
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PROBE_TIMEOUT))?;
    stream.set_write_timeout(Some(PROBE_TIMEOUT))?;
    Ok(stream)
}

/// Requests `/healthz`, and returns the whole response.
fn get(mut stream: impl std::io::Read + std::io::Write) -> std::io::Result<String> {
    stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")?;
    stream.flush()?;
    let mut answer = Vec::new();
    // A response is complete without the end of TLS.
    match stream.read_to_end(&mut answer) {
        Err(error) if answer.is_empty() => return Err(error),
        _ => {}
    }
    Ok(String::from_utf8_lossy(&answer).into_owned())
}
