//! Words for what happens to real connections.

use std::net::Ipv4Addr;

use kube::{Client, Config};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::*;

/// A server that sends `words` on every connection, and closes it.
async fn server(words: &'static str) -> Client {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = [0; 4096];
            let _ = stream.read(&mut request).await;
            let _ = stream.write_all(words.as_bytes()).await;
            let _ = stream.shutdown().await;
        }
    });
    client(port)
}

fn client(port: u16) -> Client {
    let mut config = Config::new(format!("http://127.0.0.1:{port}").parse().unwrap());
    config.default_retry = false;
    Client::try_from(config).unwrap()
}

async fn failure(client: &Client) -> String {
    let request = Request { method: Method::PUT, ..Request::get("/x", "pods", Duration::from_secs(10)) };
    send(client, request).await.unwrap_err().message
}

#[tokio::test]
async fn a_refused_connection_has_the_text_of_go() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let words = format!("Put \"/x\": dial tcp 127.0.0.1:{port}: connect: connection refused");
    assert_eq!(failure(&client(port)).await, words);
}

#[tokio::test]
async fn a_connection_closed_before_the_response_has_the_text_of_go() {
    assert_eq!(failure(&server("").await).await, "Put \"/x\": EOF");
}

#[tokio::test]
async fn a_connection_closed_in_the_body_has_the_text_of_go() {
    let broken = "unexpected error when reading response body. Please retry. Original error: unexpected EOF";
    let half = server("HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{\"kind\":").await;
    assert_eq!(failure(&half).await, broken);
    let half = server("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n8\r\n{\"kind\":\r\n").await;
    assert_eq!(failure(&half).await, broken);
}
