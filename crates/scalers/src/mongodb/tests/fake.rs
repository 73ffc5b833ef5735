//! A stand-in for a MongoDB server that checks messages and logins as strictly as the real one: user `u`, password `hunter2`.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::mongodb::bson::{Bson, Document, decode, encode, field};
use crate::scram::ScramHash;
use crate::test_support::fake_server::FakeServer;
use crate::test_support::scram_server::ScramServer;

/// What kind of server it is.
#[derive(Clone, Debug, Default)]
pub(super) struct Kind {
    /// Does not know `hello`, and ends logins with an empty exchange.
    pub(super) old: bool,
    /// The primary, if it is another server.
    pub(super) primary: Option<String>,
}

/// Starts a server.
pub(super) async fn fake_mongo(kind: Kind) -> FakeServer {
    FakeServer::start(move |stream| serve(stream, kind.clone())).await
}

fn ok(mut fields: Document) -> Document {
    fields.push(("ok".into(), Bson::Double(1.0)));
    fields
}

fn refusal(code: i32, name: &str, text: &str) -> Document {
    vec![
        ("ok".into(), Bson::Double(0.0)),
        ("errmsg".into(), Bson::String(text.into())),
        ("code".into(), Bson::Int32(code)),
        ("codeName".into(), Bson::String(name.into())),
    ]
}

async fn serve(mut stream: TcpStream, kind: Kind) -> Option<()> {
    // The hash of `u:mongo:hunter2`, which SCRAM-SHA-1 uses as the password.
    let (hash, password) = if kind.old {
        (ScramHash::Sha1, "b9b4855029aeee7df34f6a4da6a2d7d0")
    } else {
        (ScramHash::Sha256, "hunter2")
    };
    let mut login = ScramServer::new(hash, "u", password);
    let (mut logged_in, mut last_sent) = (false, false);
    loop {
        let mut header = [0_u8; 16];
        stream.read_exact(&mut header).await.ok()?;
        let part = |index: usize| i32::from_le_bytes(header[4 * index..4 * index + 4].try_into().unwrap());
        assert_eq!((part(2), part(3)), (0, 2013));
        let mut body = vec![0; part(0) as usize - 16];
        stream.read_exact(&mut body).await.ok()?;
        assert_eq!(body[..5], [0; 5], "no flags, one section of kind 0");
        let command = decode(&body[5..]).unwrap();
        assert_eq!(encode(&command), body[5..], "the message has nothing after the command");
        let database = field(&command, "$db").and_then(Bson::as_str)?.to_owned();
        let name = &*command[0].0;
        let answer = match name {
            "hello" if kind.old => refusal(59, "CommandNotFound", "no such command: 'hello'"),
            "hello" | "isMaster" => {
                assert_eq!(field(&command, "saslSupportedMechs").and_then(Bson::as_str), Some("d.u"));
                let mut fields = vec![("isWritablePrimary".into(), Bson::Bool(kind.primary.is_none()))];
                if let Some(primary) = &kind.primary {
                    fields.push(("primary".into(), Bson::String(primary.clone())));
                }
                if !kind.old {
                    let offered =
                        vec![Bson::String("SCRAM-SHA-1".into()), Bson::String("SCRAM-SHA-256".into())];
                    fields.push(("saslSupportedMechs".into(), Bson::Array(offered)));
                }
                ok(fields)
            }
            "saslStart" | "saslContinue" => {
                assert_eq!(database, "d");
                let Some(Bson::Binary(0, payload)) = field(&command, "payload") else {
                    panic!("{command:?}")
                };
                let reply = if last_sent { Some((Vec::new(), true)) } else { login.reply(payload) };
                match reply {
                    None => refusal(18, "AuthenticationFailed", "Authentication failed."),
                    Some((reply, done)) => {
                        assert!(!last_sent || payload.is_empty());
                        logged_in = done && (!kind.old || last_sent);
                        last_sent = done;
                        ok(vec![
                            ("conversationId".into(), Bson::Int32(1)),
                            ("done".into(), Bson::Bool(logged_in)),
                            ("payload".into(), Bson::Binary(0, reply)),
                        ])
                    }
                }
            }
            "aggregate" if !logged_in => {
                refusal(13, "Unauthorized", "command aggregate requires authentication")
            }
            "aggregate" => counted(&command)?,
            other => panic!("unexpected command {other}"),
        };
        let document = encode(&answer);
        let mut message = (21 + document.len() as i32).to_le_bytes().to_vec();
        for part in [1, part(1), 2013, 0] {
            message.extend(part.to_le_bytes());
        }
        message.push(0);
        message.extend(document);
        stream.write_all(&message).await.ok()?;
    }
}

/// Counts by the collection: `empty`, `broken`, or three documents.
fn counted(command: &Document) -> Option<Document> {
    assert_eq!(field(command, "cursor"), Some(&Bson::Document(vec![])));
    assert_eq!(field(command, "maxTimeMS"), Some(&Bson::Int32(9000)));
    assert_eq!(field(command, "pipeline.0.$match.a"), Some(&Bson::Int32(1)));
    assert_eq!(field(command, "pipeline.1.$group.n.$sum"), Some(&Bson::Int32(1)));
    let batch = match field(command, "aggregate")?.as_str()? {
        "empty" => vec![],
        "broken" => return Some(refusal(2, "BadValue", "unknown operator: $nope")),
        _ => vec![Bson::Document(vec![("_id".into(), Bson::Int32(1)), ("n".into(), Bson::Int32(3))])],
    };
    let cursor = vec![("firstBatch".into(), Bson::Array(batch)), ("id".into(), Bson::Int64(0))];
    Some(ok(vec![("cursor".into(), Bson::Document(cursor))]))
}
