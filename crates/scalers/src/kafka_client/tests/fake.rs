//! A stand-in for a Kafka cluster that decodes every request to its last byte, and closes the connection if one is wrong.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, watch};
use tokio::time::timeout;

use super::codec::{Answer, RequestReader};
use crate::kafka_client::messages::key;
use crate::scram::ScramHash;
use crate::test_support::scram_server::ScramServer;

/// Mechanism that brokers accept, for user `u` with password `hunter2`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Login {
    Plain,
    Scram(ScramHash),
}

#[derive(Clone)]
pub(super) struct FakeKafka {
    state: Arc<Mutex<State>>,
    ports: Vec<u16>,
    /// Number of open connections.
    open: watch::Sender<usize>,
    drop_all: Arc<Notify>,
    /// Notifies fetches of a changed topic.
    appended: Arc<Notify>,
}

/// Committed offsets by topic and partition.
type CommittedOffsets = BTreeMap<(String, i32), i64>;

#[derive(Default)]
struct State {
    /// Leader, first and next offset of partitions, by topic.
    topics: BTreeMap<String, Vec<(i32, i64, i64)>>,
    /// Coordinator and committed offsets of groups.
    groups: BTreeMap<String, (i32, CommittedOffsets)>,
    refused: BTreeMap<String, i16>,
    requests: Vec<(i32, i16)>,
    connections: usize,
}

impl FakeKafka {
    pub(super) async fn start(brokers: usize, batch: bool, login: Option<Login>) -> Self {
        let mut listeners = Vec::new();
        for _ in 0..brokers {
            listeners.push(TcpListener::bind("127.0.0.1:0").await.unwrap());
        }
        let ports = listeners.iter().map(|one| one.local_addr().unwrap().port()).collect();
        let (open, _) = watch::channel(0);
        let (drop_all, appended) = (Arc::default(), Arc::default());
        let fake = Self { state: Arc::default(), ports, open, drop_all, appended };
        for (id, listener) in listeners.into_iter().enumerate() {
            let fake = fake.clone();
            tokio::spawn(async move {
                while let Ok((stream, _)) = listener.accept().await {
                    let fake = fake.clone();
                    fake.state().connections += 1;
                    fake.open.send_modify(|open| *open += 1);
                    tokio::spawn(async move {
                        tokio::select! {
                            // In this order, so that no request is answered after the connections were dropped.
                            biased;
                            () = fake.drop_all.notified() => {}
                            _ = fake.serve(id as i32, stream, batch, login) => {}
                        }
                        fake.open.send_modify(|open| *open -= 1);
                    });
                }
            });
        }
        fake
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    pub(super) fn address(&self, broker: usize) -> String {
        format!("127.0.0.1:{}", self.ports[broker])
    }

    pub(super) fn topic(&self, name: &str, partitions: &[(i32, i64, i64)]) {
        self.state().topics.insert(name.to_owned(), partitions.to_vec());
        self.appended.notify_waiters();
    }

    pub(super) fn commit(&self, group: &str, coordinator: i32, offsets: &[(&str, i32, i64)]) {
        let offsets = offsets.iter().map(|(topic, index, offset)| (((*topic).to_owned(), *index), *offset));
        let offsets = offsets.filter(|(_, offset)| *offset >= 0).collect();
        self.state().groups.insert(group.to_owned(), (coordinator, offsets));
    }

    pub(super) fn refuse(&self, group: &str, error: i16) {
        self.state().refused.insert(group.to_owned(), error);
    }

    /// Broker and key of all requests after the login.
    pub(super) fn requests(&self) -> Vec<(i32, i16)> {
        self.state().requests.clone()
    }

    pub(super) fn connections(&self) -> usize {
        self.state().connections
    }

    pub(super) fn drop_connections(&self) {
        self.drop_all.notify_waiters();
    }

    pub(super) async fn all_closed(&self) {
        self.open.subscribe().wait_for(|open| *open == 0).await.unwrap();
    }

    async fn serve(&self, id: i32, mut stream: TcpStream, batch: bool, login: Option<Login>) -> Option<()> {
        let mut session = Session { scram: None, allowed: login.is_none() };
        loop {
            let length = stream.read_u32().await.ok()?;
            let mut frame = vec![0; length as usize];
            stream.read_exact(&mut frame).await.ok()?;
            let mut requested = RequestReader { rest: &frame, compact: false };
            let (key, version, correlation) = (requested.int16()?, requested.int16()?, requested.int32()?);
            let client = requested.int16()?;
            assert_eq!(requested.take(client as usize)?, b"plimsoll");
            requested.compact = matches!((key, version), (key::OFFSET_FETCH, 8) | (key::FIND_COORDINATOR, 4));
            requested.no_tags()?;
            let mut answer = Answer { bytes: correlation.to_be_bytes().to_vec(), compact: requested.compact };
            answer.no_tags();
            let before_login =
                matches!(key, key::API_VERSIONS | key::SASL_HANDSHAKE | key::SASL_AUTHENTICATE);
            assert!(before_login || session.allowed, "request {key} before the login");
            if !before_login {
                self.state().requests.push((id, key));
            }
            match (key, version) {
                (key::API_VERSIONS, 0) => {
                    let greatest = |many: i16, one: i16| if batch { many } else { one };
                    answer.int16(0);
                    let versions = [
                        (key::METADATA, 9),
                        (key::LIST_OFFSETS, 7),
                        (key::FIND_COORDINATOR, greatest(4, 2)),
                        (key::OFFSET_FETCH, greatest(8, 5)),
                    ];
                    answer.array(versions.len());
                    for (key, version) in versions {
                        answer.int16(key);
                        answer.int16(0);
                        answer.int16(version);
                    }
                }
                (key::SASL_HANDSHAKE, 1) => session.handshake(&mut requested, &mut answer, login?)?,
                (key::SASL_AUTHENTICATE, 0) => session.authenticate(&mut requested, &mut answer, login?)?,
                (key::METADATA, 4) => self.metadata(&mut requested, &mut answer)?,
                (key::FIND_COORDINATOR, 1 | 4) => self.coordinator(&mut requested, &mut answer)?,
                (key::OFFSET_FETCH, 3 | 8) => self.offset_fetch(id, &mut requested, &mut answer)?,
                (key::FETCH, 4) => self.fetch(id, &mut requested, &mut answer).await?,
                (key::LIST_OFFSETS, 2) => self.list_offsets(id, &mut requested, &mut answer)?,
                other => panic!("unexpected request {other:?}"),
            }
            requested.no_tags()?;
            assert!(requested.rest.is_empty(), "{} bytes are left of request {key}", requested.rest.len());
            answer.no_tags();
            let mut framed = (answer.bytes.len() as u32).to_be_bytes().to_vec();
            framed.extend(answer.bytes);
            stream.write_all(&framed).await.ok()?;
        }
    }

    fn metadata(&self, requested: &mut RequestReader<'_>, answer: &mut Answer) -> Option<()> {
        let topics = requested.array(RequestReader::string)??;
        assert_eq!(requested.int8()?, 0, "topics must not be created");
        answer.int32(0);
        answer.array(self.ports.len());
        for (id, port) in self.ports.iter().enumerate() {
            answer.int32(id as i32);
            answer.string("127.0.0.1");
            answer.int32(i32::from(*port));
            answer.int16(-1);
        }
        answer.string("cluster");
        answer.int32(0);
        answer.array(topics.len());
        let state = self.state();
        for topic in topics {
            let partitions = state.topics.get(&topic).cloned();
            answer.int16(if partitions.is_some() { 0 } else { 3 });
            answer.string(&topic);
            answer.int8(0);
            let partitions = partitions.unwrap_or_default();
            answer.array(partitions.len());
            for (index, (leader, ..)) in partitions.iter().enumerate() {
                answer.int16(if *leader < 0 { 5 } else { 0 });
                answer.int32(index as i32);
                answer.int32(*leader);
                answer.array(1);
                answer.int32(*leader);
                answer.array(0);
            }
        }
        Some(())
    }

    fn coordinator(&self, requested: &mut RequestReader<'_>, answer: &mut Answer) -> Option<()> {
        let groups = if requested.compact {
            assert_eq!(requested.int8()?, 0);
            requested.array(RequestReader::string)??
        } else {
            let group = requested.string()?;
            assert_eq!(requested.int8()?, 0);
            vec![group]
        };
        answer.int32(0);
        if answer.compact {
            answer.array(groups.len());
        }
        for group in groups {
            let broker = self.state().groups.get(&group).map_or(0, |(coordinator, _)| *coordinator);
            if answer.compact {
                answer.string(&group);
            } else {
                answer.int16(0);
                answer.int16(-1);
            }
            answer.int32(broker);
            answer.string("127.0.0.1");
            answer.int32(i32::from(self.ports[broker as usize]));
            if answer.compact {
                answer.int16(0);
                answer.string("");
                answer.no_tags();
            }
        }
        Some(())
    }

    fn offset_fetch(&self, id: i32, requested: &mut RequestReader<'_>, answer: &mut Answer) -> Option<()> {
        let one = |requested: &mut RequestReader<'_>| {
            let group = requested.string()?;
            let topics = requested.array(|requested| {
                let topic = requested.string()?;
                let partitions = requested.array(RequestReader::int32)??;
                requested.no_tags()?;
                Some((topic, partitions))
            })?;
            Some((group, topics))
        };
        let groups = if requested.compact {
            let groups = requested.array(|requested| {
                let group = one(requested)?;
                requested.no_tags()?;
                Some(group)
            })??;
            assert_eq!(requested.int8()?, 0);
            groups
        } else {
            vec![one(requested)?]
        };
        answer.int32(0);
        if answer.compact {
            answer.array(groups.len());
        }
        let state = self.state();
        for (group, topics) in groups {
            if answer.compact {
                answer.string(&group);
            }
            let empty = (id, BTreeMap::new());
            let (coordinator, committed) = state.groups.get(&group).unwrap_or(&empty);
            let topics = topics.unwrap_or_else(|| {
                let names: BTreeSet<&String> = committed.keys().map(|(topic, _)| topic).collect();
                let of = |name: &String| {
                    committed.keys().filter(|(topic, _)| topic == name).map(|(_, i)| *i).collect()
                };
                names.into_iter().map(|name| (name.clone(), of(name))).collect()
            });
            answer.array(topics.len());
            for (topic, partitions) in topics {
                answer.string(&topic);
                answer.array(partitions.len());
                for partition in partitions {
                    answer.int32(partition);
                    answer.int64(committed.get(&(topic.clone(), partition)).copied().unwrap_or(-1));
                    if answer.compact {
                        answer.int32(-1);
                    }
                    answer.string("");
                    answer.int16(0);
                    answer.no_tags();
                }
                answer.no_tags();
            }
            let refused = state.refused.get(&group).copied();
            answer.int16(refused.unwrap_or(if *coordinator == id { 0 } else { 16 }));
            if answer.compact {
                answer.no_tags();
            }
        }
        Some(())
    }

    async fn fetch(&self, id: i32, requested: &mut RequestReader<'_>, answer: &mut Answer) -> Option<()> {
        assert_eq!(requested.int32()?, -1);
        let max_wait = Duration::from_millis(requested.int32()? as u64);
        assert_eq!((requested.int32()?, requested.int32()?, requested.int8()?), (1, 1, 0));
        let topics = requested.array(|requested| {
            let topic = requested.string()?;
            let partitions = requested
                .array(|requested| Some((requested.int32()?, requested.int64()?, requested.int32()?)))??;
            Some((topic, partitions))
        })??;
        let next = |topic: &String, index: i32| self.state().topics[topic][index as usize];
        let has_records = || {
            let mut partitions =
                topics.iter().flat_map(|(topic, all)| all.iter().map(move |one| (topic, one)));
            partitions.any(|(topic, (index, offset, _))| next(topic, *index).2 > *offset)
        };
        let appended = async {
            loop {
                let appended = self.appended.notified();
                if has_records() {
                    return;
                }
                appended.await;
            }
        };
        // Without records the answer is empty.
        let _ = timeout(max_wait, appended).await;
        answer.int32(0);
        answer.array(topics.len());
        for (topic, partitions) in &topics {
            answer.string(topic);
            answer.array(partitions.len());
            for (index, offset, _) in partitions {
                let (leader, _, next) = next(topic, *index);
                answer.int32(*index);
                answer.int16(if leader == id { 0 } else { 6 });
                answer.int64(next);
                answer.int64(next);
                // No aborted transactions, and one byte of records.
                answer.int32(-1);
                answer.int32(i32::from(next > *offset));
                answer.bytes.extend((next > *offset).then_some(0_u8));
            }
        }
        Some(())
    }

    fn list_offsets(&self, id: i32, requested: &mut RequestReader<'_>, answer: &mut Answer) -> Option<()> {
        assert_eq!((requested.int32()?, requested.int8()?), (-1, 0));
        let topics = requested.array(|requested| {
            let topic = requested.string()?;
            let partitions =
                requested.array(|requested| Some((requested.int32()?, requested.int64()?)))??;
            Some((topic, partitions))
        })??;
        answer.int32(0);
        answer.array(topics.len());
        let state = self.state();
        for (topic, partitions) in topics {
            answer.string(&topic);
            answer.array(partitions.len());
            for (index, time) in partitions {
                let (leader, first, next) = state.topics[&topic][index as usize];
                answer.int32(index);
                answer.int16(if leader == id { 0 } else { 6 });
                answer.int64(-1);
                answer.int64(match time {
                    -1 => next,
                    -2 => first,
                    other => panic!("unexpected time {other}"),
                });
            }
        }
        Some(())
    }
}

struct Session {
    scram: Option<ScramServer>,
    allowed: bool,
}

impl Session {
    fn handshake(
        &mut self,
        requested: &mut RequestReader<'_>,
        answer: &mut Answer,
        login: Login,
    ) -> Option<()> {
        let offered = match login {
            Login::Plain => "PLAIN",
            Login::Scram(ScramHash::Sha512) => "SCRAM-SHA-512",
            Login::Scram(_) => "SCRAM-SHA-256",
        };
        answer.int16(if requested.string()? == offered { 0 } else { 33 });
        answer.array(1);
        answer.string(offered);
        if let Login::Scram(hash) = login {
            self.scram = Some(ScramServer::new(hash, "u", "hunter2"));
        }
        Some(())
    }

    fn authenticate(
        &mut self,
        requested: &mut RequestReader<'_>,
        answer: &mut Answer,
        login: Login,
    ) -> Option<()> {
        let length = requested.int32()?;
        let message = requested.take(length as usize)?;
        let reply = match login {
            Login::Plain if message == b"\0u\0hunter2" => Some((Vec::new(), true)),
            Login::Plain => None,
            Login::Scram(_) => self.scram.as_mut()?.reply(message),
        };
        let Some((reply, done)) = reply else {
            answer.int16(58);
            answer.string("Authentication failed: Invalid username or password");
            answer.int32(0);
            return Some(());
        };
        self.allowed = done;
        answer.int16(0);
        answer.int16(-1);
        answer.int32(reply.len() as i32);
        answer.bytes.extend(reply);
        Some(())
    }
}
