use super::query::{DecodeProgress, command, decode};
use crate::test_support::{read, trigger};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

const STATISTICS: &str =
    "---\nname: t\ncurrent-jobs-ready: 5\ncurrent-jobs-reserved: 2\ncurrent-jobs-delayed: 4\n";

fn answer(statistics: &str) -> String {
    format!("OK {}\r\n{statistics}\r\n", statistics.len())
}

#[test]
fn commands_have_only_valid_tube_names() {
    assert_eq!(command("t").unwrap(), "stats-tube t\r\n");
    for bad in ["", "a b", "a\r\nflush", "a\0b", &"x".repeat(201)] {
        assert!(command(bad).is_err(), "{bad:?}");
    }
}

#[test]
fn responses_are_decoded_or_refused() {
    let whole = answer(STATISTICS);
    assert_eq!(decode(whole.as_bytes(), false), Ok(DecodeProgress::Jobs(7)));
    assert_eq!(decode(whole.as_bytes(), true), Ok(DecodeProgress::Jobs(11)));
    assert_eq!(decode(b"NOT_FOUND\r\n", false), Ok(DecodeProgress::Jobs(0)));
    // A truncated response is incomplete, except for its last two bytes, which carry no data.
    for end in 0..whole.len() - 2 {
        assert_eq!(
            decode(whole.as_bytes().get(..end).unwrap(), false),
            Ok(DecodeProgress::Incomplete),
            "{end}"
        );
    }
    for bad in [
        "OK x\r\n",
        "OK 99999999999\r\n",
        "OK\r\n",
        "BAD_FORMAT\r\n",
        "HTTP/1.1 400 Bad Request\r\n",
        &answer("---\n"),
        &"x".repeat(1000),
    ] {
        assert!(decode(bad.as_bytes(), false).is_err(), "{bad}");
    }
    assert!(
        decode(answer("---\ncurrent-jobs-ready: x\ncurrent-jobs-reserved: 1\n").as_bytes(), false).is_err()
    );
}

#[test]
fn response_with_invalid_utf8_is_split_by_bytes() {
    let statistics = b"---\nname: \xff\xfe\xff\ncurrent-jobs-ready: 5\ncurrent-jobs-reserved: 2\n";
    let response = [format!("OK {}\r\n", statistics.len()).as_bytes(), statistics, b"\r\n"].concat();
    assert_eq!(decode(&response, false), Ok(DecodeProgress::Jobs(7)));
}

/// A server that sends this to every client and closes the connection.
async fn server(reply: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut piece = [0; 64];
            let read = stream.read(&mut piece).await.unwrap();
            assert_eq!(piece.get(..read).unwrap(), b"stats-tube t\r\n");
            stream.write_all(reply.as_bytes()).await.unwrap();
        }
    });
    address.to_string()
}

#[tokio::test]
async fn reads_value() {
    let good = server(answer(STATISTICS)).await;
    let reading =
        read(&trigger("beanstalkd", &[("server", &good), ("tube", "t"), ("value", "4")])).await.unwrap();
    assert_eq!(reading.values.first().unwrap().value.canonical(), "7");
    let short = server("OK 500\r\n---\n".to_owned()).await;
    let error =
        read(&trigger("beanstalkd", &[("server", &short), ("tube", "t"), ("value", "4")])).await.unwrap_err();
    assert_eq!(error.message, format!("{short}: the connection broke off"));
    let nobody = [("server", "127.0.0.1:1"), ("tube", "t"), ("value", "4")];
    assert!(read(&trigger("beanstalkd", &nobody)).await.is_err());
}
