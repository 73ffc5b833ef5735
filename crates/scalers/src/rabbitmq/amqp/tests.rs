use tokio::net::{TcpListener, TcpStream};

use super::wire::{self, ServerMethod};
use super::*;
use crate::pool::Pools;

fn server(port: u16) -> AmqpServer {
    let login = Login::Plain("u".into(), Secret::new("hunter2"));
    let dialer = Dialer::allowing_loopback();
    AmqpServer { host: "127.0.0.1".into(), port, virtual_host: "/".into(), login, tls: None, dialer }
}

/// A server frame.
fn frame(channel: u16, class: u16, method: u16, arguments: &[u8]) -> Vec<u8> {
    let mut out = vec![1];
    out.extend(channel.to_be_bytes());
    out.extend((4 + arguments.len() as u32).to_be_bytes());
    out.extend(class.to_be_bytes());
    out.extend(method.to_be_bytes());
    out.extend(arguments);
    out.push(0xCE);
    out
}

fn close(code: u16, reason: &str) -> Vec<u8> {
    let mut out = code.to_be_bytes().to_vec();
    out.push(reason.len() as u8);
    out.extend(reason.as_bytes());
    out.extend([0; 4]);
    out
}

async fn read(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let mut header = [0; FRAME_HEADER_BYTES];
    stream.read_exact(&mut header).await.ok()?;
    let (_, size) = wire::header(header).ok()?;
    let mut rest = vec![0; size + 1];
    stream.read_exact(&mut rest).await.ok()?;
    Some(rest)
}

/// A scripted server: queue `q` has 7 messages; the password is accepted unless `refuse` is set.
async fn play(mut stream: TcpStream, lets_in: bool) -> Option<()> {
    let mut greeting = [0; 8];
    stream.read_exact(&mut greeting).await.ok()?;
    assert_eq!(&greeting, wire::PROTOCOL_HEADER);
    let start =
        [&[0, 9][..], &[0, 0, 0, 0], &[0, 0, 0, 14], b"PLAIN AMQPLAIN", &[0, 0, 0, 5], b"en_US"].concat();
    stream.write_all(&frame(0, 10, 10, &start)).await.ok()?;
    read(&mut stream).await?;
    if !lets_in {
        let reason = "ACCESS_REFUSED - Login was refused using authentication mechanism PLAIN.";
        stream.write_all(&frame(0, 10, 50, &close(403, reason))).await.ok()?;
        return None;
    }
    stream.write_all(&frame(0, 10, 30, &[7, 255, 0, 2, 0, 0, 0, 60])).await.ok()?;
    read(&mut stream).await?;
    read(&mut stream).await?;
    // An unrelated method in between.
    stream.write_all(&[8, 0, 0, 0, 0, 0, 0, 0xCE]).await.ok()?;
    stream.write_all(&frame(0, 10, 41, &[0])).await.ok()?;
    loop {
        let requested = read(&mut stream).await?;
        let answer = match requested.get(..4)? {
            [0, 20, 0, 10] => frame(1, 20, 11, &[0; 4]),
            [0, 50, 0, 10] if requested.get(6..8)? == b"\x01q" => {
                frame(1, 50, 11, &[&[1][..], b"q", &[0, 0, 0, 7], &[0; 4]].concat())
            }
            [0, 50, 0, 10] => frame(1, 20, 40, &close(404, "NOT_FOUND - no queue 'x' in vhost '/'")),
            [0, 20, 0, 41] => continue,
            other => panic!("{other:?}"),
        };
        stream.write_all(&answer).await.ok()?;
    }
}

async fn listening<F: Future<Output = ()> + Send + 'static>(
    what: impl Fn(TcpStream) -> F + Send + 'static,
) -> Arc<crate::pool::Pool<AmqpServer>> {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(what(stream));
        }
    });
    Pools::default().of(&server(port))
}

#[tokio::test]
async fn connection_is_reused_after_missing_queue() {
    let pool = listening(|stream| async move { play(stream, true).await.unwrap_or_default() }).await;
    assert_eq!(pool.query(&"q".to_owned()).await, Ok(7));
    let missing = pool.query(&"x".to_owned()).await.unwrap_err();
    assert!(missing.message.ends_with("NOT_FOUND - no queue 'x' in vhost '/' (404)"), "{missing}");
    assert_eq!(missing.cause(), Some(&SourceRefusal::UnknownName));
    assert_eq!(pool.query(&"q".to_owned()).await, Ok(7));
}

#[tokio::test]
async fn wrong_password_error_does_not_contain_it() {
    let pool = listening(|stream| async move { play(stream, false).await.unwrap_or_default() }).await;
    let error = pool.query(&"q".to_owned()).await.unwrap_err();
    assert!(error.message.contains("ACCESS_REFUSED") && !error.message.contains("hunter2"), "{error}");
    assert_eq!(error.cause(), Some(&SourceRefusal::Credentials));
}

#[tokio::test]
async fn long_names_and_other_servers_are_errors() {
    let pool = listening(|stream| async move { play(stream, true).await.unwrap_or_default() }).await;
    let error = pool.query(&"q".repeat(256)).await.unwrap_err();
    assert!(error.message.contains("longer than 255 bytes"), "{error}");

    for frames in
        [&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], b"AMQP\x00\x00\x09\x01", b"\x01\x00\x00\xff\xff\xff\xff"]
    {
        let pool = listening(move |mut stream| async move {
            let _ = stream.write_all(frames).await;
            let _ = stream.read(&mut [0; 64]).await;
        })
        .await;
        let error = pool.query(&"q".to_owned()).await.unwrap_err();
        let reported =
            error.message.contains("does not speak AMQP") || error.message.contains("closed the connection");
        assert!(reported, "{error}");
    }
}

#[test]
fn truncated_frames_are_invalid() {
    let whole = frame(1, 50, 11, &[&[1][..], b"q", &[0, 0, 0, 7], &[0; 4]].concat());
    let rest = whole.get(FRAME_HEADER_BYTES..).unwrap();
    assert_eq!(wire::method(1, rest), Ok(ServerMethod::Declared { messages: 7 }));
    let mut cut = rest.get(..8).unwrap().to_vec();
    cut.push(0xCE);
    assert!(wire::method(1, &cut).is_err());
    assert!(wire::method(1, rest.get(..rest.len() - 1).unwrap()).is_err());
}

proptest::proptest! {
    #[test]
    fn any_bytes_are_a_method_or_garbage(kind: u8, bytes: Vec<u8>) {
        let _ = wire::method(kind, &bytes);
        let mut frame = vec![0, 10, 0, 10];
        frame.extend(&bytes);
        frame.push(0xCE);
        let _ = wire::method(1, &frame);
    }
}
