//! Redis: a single server, one behind a sentinel, and a cluster of three.

use std::io;
use std::net::Ipv4Addr;
use std::path::PathBuf;

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

use super::{DEADLINE, write_identity};
use crate::cache::Cache;
use crate::error::{Attempt as _, Error};
use crate::parts::REDIS;
use crate::pki::Identity;
use crate::ports;
use crate::program::{Program, Restartable, TempFolder};
use crate::progress::Progress;

/// How a server is set up.
#[derive(Default)]
pub struct RedisSetup<'a> {
    /// The password; none if it is empty.
    pub password: &'a str,
    /// The certificate for a second port with TLS; none for no such port.
    pub tls: Option<&'a Identity>,
    /// Whether it is a member of a cluster.
    pub cluster: bool,
    /// The port of the master whose sentinel it is.
    pub sentinel_of: Option<u16>,
    /// An address on which it listens besides loopback. It needs a password, because Redis refuses other clients than local ones without.
    pub address: Option<Ipv4Addr>,
}

/// A running Redis.
pub struct Redis {
    programs: PathBuf,
    port: u16,
    tls_port: u16,
    password: String,
    config: String,
    sentinel: bool,
    process: Restartable,
}

/// A cluster of three servers.
pub struct RedisCluster {
    members: Vec<Redis>,
}

impl Redis {
    /// Starts a server.
    pub async fn start(setup: &RedisSetup<'_>) -> Result<Self, Error> {
        let programs = Cache::of_user()?.ensure(&REDIS, &mut Progress::stderr())?;
        let [port, tls_port] = ports::several()?;
        let temp_folder = TempFolder::new()?;
        let address = setup.address.map(|address| format!(" {address}")).unwrap_or_default();
        let mut config = format!(
            "bind 127.0.0.1{address}\nport {port}\ndaemonize no\nsave \"\"\nappendonly no\ndir {}\n",
            temp_folder.root().display()
        );
        if let Some(identity) = setup.tls {
            write_identity(&temp_folder, identity)?;
            let folder = temp_folder.root().display();
            config.push_str(&format!(
                "tls-port {tls_port}\ntls-cert-file {folder}/server.crt\ntls-key-file {folder}/server.key\n\
                 tls-auth-clients no\n"
            ));
        }
        if !setup.password.is_empty() && setup.sentinel_of.is_none() {
            config.push_str(&format!("requirepass {0}\nmasterauth {0}\n", setup.password));
        }
        if setup.cluster {
            config.push_str(&format!(
                "cluster-enabled yes\ncluster-port {tls_port}\ncluster-node-timeout 2000\n"
            ));
        }
        if let Some(master) = setup.sentinel_of {
            config = format!(
                "bind 127.0.0.1\nport {port}\ndir {}\nsentinel monitor main 127.0.0.1 {master} 1\n",
                temp_folder.root().display()
            );
            if !setup.password.is_empty() {
                config.push_str(&format!("sentinel auth-pass main {}\n", setup.password));
            }
        }
        let mut server = Self {
            programs,
            port,
            tls_port,
            password: if setup.sentinel_of.is_some() { String::new() } else { setup.password.to_owned() },
            config,
            sentinel: setup.sentinel_of.is_some(),
            process: Restartable::new(temp_folder),
        };
        server.resume().await?;
        Ok(server)
    }

    /// `host:port`.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// The port of the server.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// `host:port` with TLS.
    pub fn tls_address(&self) -> String {
        format!("127.0.0.1:{}", self.tls_port)
    }

    /// Kills the server; all keys are lost.
    pub fn stop(&mut self) {
        self.process.stop();
    }

    /// Starts the server again after [`Redis::stop`], and returns when it is ready.
    pub async fn resume(&mut self) -> Result<(), Error> {
        let Some(temp_folder) = self.process.take_idle() else { return Ok(()) };
        let config = temp_folder.write("redis.conf", &self.config)?;
        let name = if self.sentinel { "redis-sentinel" } else { "redis-server" };
        let mut program =
            Program::start("redis", &self.programs.join(name), &[config.display().to_string()], temp_folder)?;
        let (port, password) = (self.port, self.password.clone());
        program.until(DEADLINE, async || send_command(port, &password, &["PING"]).await.is_ok()).await?;
        self.process.started(program);
        Ok(())
    }

    /// Sends a command, and returns the first line of the response.
    pub async fn command(&self, words: &[&str]) -> Result<String, Error> {
        send_command(self.port, &self.password, words)
            .await
            .attempt(|| format!("say {} to Redis", words.join(" ")))
    }
}

impl RedisCluster {
    /// Starts three servers and joins them to a cluster.
    pub async fn start() -> Result<Self, Error> {
        let setup = RedisSetup { cluster: true, ..RedisSetup::default() };
        let mut members = Vec::new();
        for _ in 0..3 {
            members.push(Redis::start(&setup).await?);
        }
        let ranges = [(0, 5461), (5462, 10922), (10923, 16383)];
        for (member, (first, last)) in members.iter().zip(ranges) {
            member.command(&["CLUSTER", "ADDSLOTSRANGE", &first.to_string(), &last.to_string()]).await?;
        }
        let Some((first, others)) = members.split_first() else { return Ok(Self { members }) };
        for other in others {
            let (port, bus) = (other.port.to_string(), other.tls_port.to_string());
            first.command(&["CLUSTER", "MEET", "127.0.0.1", &port, &bus]).await?;
        }
        let until = tokio::time::Instant::now() + DEADLINE;
        for member in &members {
            while !member.command(&["CLUSTER", "INFO"]).await?.contains("cluster_state:ok") {
                if tokio::time::Instant::now() > until {
                    let late = io::Error::new(io::ErrorKind::TimedOut, "the members do not agree");
                    return Err(late).attempt(|| "put a Redis cluster together".into());
                }
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            }
        }
        Ok(Self { members })
    }

    /// The addresses of all servers, separated by commas.
    pub fn addresses(&self) -> String {
        self.members.iter().map(Redis::address).collect::<Vec<_>>().join(",")
    }

    /// Sends a command to the member that has the key, which is the second word.
    pub async fn command(&self, words: &[&str]) -> Result<String, Error> {
        let mut last = String::new();
        for member in &self.members {
            last = member.command(words).await?;
            if !last.starts_with("-MOVED") {
                break;
            }
        }
        Ok(last)
    }
}

/// Sends one command, and returns the first line of the reply, or the whole text of a bulk string.
async fn send_command(port: u16, password: &str, words: &[&str]) -> io::Result<String> {
    let mut stream = BufReader::new(TcpStream::connect(("127.0.0.1", port)).await?);
    if !password.is_empty() {
        exchange(&mut stream, &["AUTH", password]).await?;
    }
    exchange(&mut stream, words).await
}

async fn exchange(stream: &mut BufReader<TcpStream>, words: &[&str]) -> io::Result<String> {
    let mut request = format!("*{}\r\n", words.len());
    for word in words {
        request.push_str(&format!("${}\r\n{word}\r\n", word.len()));
    }
    stream.write_all(request.as_bytes()).await?;
    let mut line = String::new();
    if stream.read_line(&mut line).await? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    if let Some(size) = line.trim().strip_prefix('$').and_then(|size| size.parse::<usize>().ok()) {
        let mut text = vec![0; size];
        stream.read_exact(&mut text).await?;
        return Ok(String::from_utf8_lossy(&text).into_owned());
    }
    Ok(line.trim().to_owned())
}
