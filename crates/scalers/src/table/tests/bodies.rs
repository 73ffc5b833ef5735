//! No scaler type shows the body of a response in an error: whoever may write a trigger could read what the operator can reach.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::samples::{Protocol, samples};
use crate::test_support::{self, ServerAction};

/// Part of every body.
const CANARY: &str = "c4n4ry";

/// Bodies that are not error responses of any protocol.
const BODIES: [&str; 19] = [
    "c4n4ry",
    "\"c4n4ry\"",
    "<html><body>c4n4ry</body></html>",
    "<c4n4ry>",
    "<a></c4n4ry>",
    "<?xml version=\"1.0\"?><a><b>c4n4ry</b></a>",
    "{\"c4n4ry\": \"c4n4ry\"}",
    "[\"c4n4ry\"]",
    "{\"a\": {\"b\": \"c4n4ry\"}, \"value\": \"c4n4ry\", \"count\": \"c4n4ry\"}",
    "{\"data\": \"c4n4ry\", \"result\": \"c4n4ry\", \"items\": \"c4n4ry\", \"messages\": \"c4n4ry\", \"name\": 7}",
    "{\"data\": {\"result\": \"c4n4ry\"}}",
    "{\"data\": {\"result\": [{\"value\": [1, \"c4n4ry\"]}]}}",
    "{\"data\": {\"result\": [{\"value\": [1, {\"c4n4ry\": 1}]}]}}",
    "{\"hits\": {\"total\": {\"value\": \"c4n4ry\"}}}",
    "[{\"datapoints\": [[\"c4n4ry\", 1]]}]",
    "a_metric c4n4ry",
    "a_metric{c4n4ry",
    "a: [c4n4ry",
    "#datatype,string,c4n4ry\n,result,_value\n,c4n4ry,c4n4ry",
];

/// Serves raw bytes to everybody; returns the port.
async fn raw(bytes: Vec<u8>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let bytes = bytes.clone();
            tokio::spawn(async move {
                let _ = stream.write_all(&bytes).await;
                // Reads what the client sends, so that the connection is closed and not reset.
                let _ = stream.shutdown().await;
                let mut rest = [0; 1024];
                while matches!(stream.read(&mut rest).await, Ok(1..)) {}
            });
        }
    });
    port
}

async fn assert_hidden(port: u16, body: &str, is_read: impl Fn(Protocol) -> bool) {
    for (_, trigger) in samples(port).into_iter().filter(|(protocol, _)| is_read(*protocol)) {
        let scaler = test_support::build(&trigger).unwrap();
        if let Err(error) = test_support::read_first(&*scaler).await {
            assert!(!error.message.contains(CANARY), "{} {body:?}: {error}", trigger.type_);
        }
    }
}

#[tokio::test]
async fn bodies_of_http_responses_are_not_shown() {
    for body in BODIES {
        for status in [200, 400] {
            let url = test_support::server(move |_| ServerAction::Answer(status, body.to_owned())).await;
            let port = url.rsplit(':').next().unwrap().parse().unwrap();
            assert_hidden(port, body, |protocol| protocol == Protocol::Http).await;
        }
    }
}

#[tokio::test]
async fn bytes_of_other_protocols_are_not_shown() {
    for answer in
        ["c4n4ry\r\n", "HTTP/1.1 400 c4n4ry\r\n\r\nc4n4ry", "c4n4ry c4n4ry c4n4ry c4n4ry c4n4ry c4n4ry\n"]
    {
        let port = raw(answer.as_bytes().to_vec()).await;
        assert_hidden(port, answer, |protocol| protocol == Protocol::Tcp).await;
    }
}
