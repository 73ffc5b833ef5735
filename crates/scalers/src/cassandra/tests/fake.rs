//! A stand-in for a Cassandra node that checks frames as strictly as the real one: user `u`, password `hunter2`.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::test_support::fake_server::FakeServer;

/// Starts a node that requires authentication by this class; by none if it is empty.
pub(super) async fn fake_cassandra(class: &'static str) -> FakeServer {
    FakeServer::start(move |stream| serve(stream, class)).await
}

async fn receive(stream: &mut TcpStream) -> Option<(u8, Vec<u8>)> {
    let mut header = [0; 9];
    stream.read_exact(&mut header).await.ok()?;
    assert_eq!(header[..4], [4, 0, 0, 0]);
    let mut content = vec![0; u32::from_be_bytes(header[5..].try_into().ok()?) as usize];
    stream.read_exact(&mut content).await.ok()?;
    Some((header[4], content))
}

async fn send(stream: &mut TcpStream, flags: u8, kind: u8, content: &[u8]) -> Option<()> {
    let length = (content.len() as u32).to_be_bytes();
    let frame = [&[0x84, flags, 0, 0, kind], &length[..], content].concat();
    stream.write_all(&frame).await.ok()
}

pub(super) fn text(text: &str) -> Vec<u8> {
    [&(text.len() as u16).to_be_bytes()[..], text.as_bytes()].concat()
}

async fn serve(mut stream: TcpStream, class: &str) -> Option<()> {
    let (kind, content) = receive(&mut stream).await?;
    assert_eq!((kind, content), (1, [vec![0, 1], text("CQL_VERSION"), text("3.0.0")].concat()));
    if class.is_empty() {
        send(&mut stream, 0, 2, &[]).await?;
    } else {
        send(&mut stream, 0, 3, &text(class)).await?;
        let (kind, content) = receive(&mut stream).await?;
        assert_eq!(kind, 0x0f);
        if content != b"\0\0\0\x0a\0u\0hunter2" {
            let error =
                [vec![0, 0, 1, 0], text("Provided username u and/or password are incorrect")].concat();
            send(&mut stream, 0, 0, &error).await?;
            return None;
        }
        send(&mut stream, 0, 0x10, &[0xff, 0xff, 0xff, 0xff]).await?;
    }
    loop {
        let (kind, content) = receive(&mut stream).await?;
        assert_eq!(kind, 7);
        let (length, rest) = content.split_at(4);
        let (query, rest) = rest.split_at(u32::from_be_bytes(length.try_into().ok()?) as usize);
        // Consistency ONE, and a page of 5000 rows.
        assert_eq!(rest, [0, 1, 4, 0, 0, 0x13, 0x88]);
        let (flags, kind, content) = answer_to(std::str::from_utf8(query).ok()?)?;
        send(&mut stream, flags, kind, &content).await?;
    }
}

/// A result with one column of this type, and these values.
pub(super) fn rows(type_: &[u8], values: &[Option<&[u8]>]) -> Vec<u8> {
    let mut out =
        [&[0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 1], &*text("k"), &text("t"), &text("count"), type_].concat();
    out.extend((values.len() as u32).to_be_bytes());
    for value in values {
        match value {
            Some(value) => {
                out.extend((value.len() as u32).to_be_bytes());
                out.extend(*value);
            }
            None => out.extend([0xff; 4]),
        }
    }
    out
}

fn answer_to(query: &str) -> Option<(u8, u8, Vec<u8>)> {
    let bigint = [0, 2];
    let (flags, kind, content) = match query {
        "no rows" => (0, 8, rows(&bigint, &[])),
        "null" => (0, 8, rows(&bigint, &[None])),
        "words" => (0, 8, rows(&[0, 0x0d], &[Some(b"12345678")])),
        "warned" => {
            let warning = [vec![0, 1], text("Aggregation query used without partition key")].concat();
            (8, 8, [warning, rows(&bigint, &[Some(&[0, 0, 0, 0, 0, 0, 0, 9])])].concat())
        }
        "broken" => (0, 0, [vec![0, 0, 0x22, 0], text("unconfigured table t")].concat()),
        other => {
            let number: i64 = other.strip_prefix("SELECT ")?.parse().ok()?;
            (0, 8, rows(&bigint, &[Some(&number.to_be_bytes()), Some(&[0; 8])]))
        }
    };
    Some((flags, kind, content))
}
