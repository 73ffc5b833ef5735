//! The protocol of Redis (RESP2): commands, and replies with bounds on what a server may send.
//!
//! Implemented here and not with a library, because a client library bounds neither the length of a reply nor the number of its values,
//! and allocates memory for lists by their announced length.

use std::io;

use sources::http::{ByteShare, UNCOUNTED_BYTES};
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _};

use crate::web::response_budget;

/// Maximum size of a reply, in bytes.
const MAX_REPLY_BYTES: usize = 1 << 20;
/// Maximum number of values in a reply: a value of four bytes takes 32 bytes of memory.
const MAX_REPLY_VALUES: usize = 100_000;
/// Maximum depth of lists in a reply; the deepest expected reply has 3.
const MAX_REPLY_DEPTH: usize = 8;
/// Maximum size of a line: a status, an error, a number or a length.
const MAX_LINE_BYTES: usize = 16 << 10;
/// Share of a large reply in the budget of all responses, in bytes: as much as its values can take.
const LARGE_REPLY_SHARE_BYTES: usize = 8 << 20;

/// A reply of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RedisReply {
    /// `+`, such as `OK`.
    Status(String),
    /// `-`: an error of the server; the first word is its code.
    Error(String),
    /// `:`
    Integer(i64),
    /// `$`
    Bulk(Vec<u8>),
    /// `*`
    List(Vec<RedisReply>),
    /// `$-1` or `*-1`
    Nil,
}

/// Why no reply could be read. The connection cannot be used any more.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReplyError {
    #[error(transparent)]
    Connection(#[from] io::Error),
    #[error("the server does not speak the protocol of Redis")]
    Invalid,
    #[error("the reply has more than {} KiB", MAX_REPLY_BYTES >> 10)]
    TooLarge,
    #[error("the reply has more than {MAX_REPLY_VALUES} values")]
    TooManyValues,
    #[error("the lists of the reply are nested too deeply")]
    TooDeep,
}

impl RedisReply {
    /// The text of a status or a bulk string.
    pub(super) fn text(&self) -> Option<String> {
        match self {
            Self::Status(text) => Some(text.clone()),
            Self::Bulk(bytes) => String::from_utf8(bytes.clone()).ok(),
            _ => None,
        }
    }
}

/// Encodes a command.
pub(super) fn command(words: &[&str]) -> Vec<u8> {
    let mut out = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        out.extend(format!("${}\r\n", word.len()).bytes());
        out.extend(word.bytes());
        out.extend(b"\r\n");
    }
    out
}

/// What one reply may still take.
struct ReplyAllowance {
    bytes: usize,
    values: usize,
    share: Option<ByteShare>,
}

impl ReplyAllowance {
    /// Counts bytes before memory is taken for them. Beyond the first bytes it waits for a share of the budget of all responses.
    async fn spend(&mut self, bytes: usize) -> Result<(), ReplyError> {
        self.bytes = self.bytes.checked_sub(bytes).ok_or(ReplyError::TooLarge)?;
        if self.share.is_none() && MAX_REPLY_BYTES - self.bytes > UNCOUNTED_BYTES {
            self.share = response_budget().share(LARGE_REPLY_SHARE_BYTES).await;
        }
        Ok(())
    }

    /// A line without its end.
    async fn line(&mut self, stream: &mut (impl AsyncBufRead + Unpin)) -> Result<Vec<u8>, ReplyError> {
        let limit = MAX_LINE_BYTES.min(self.bytes);
        let mut line = Vec::new();
        (&mut *stream).take(limit as u64).read_until(b'\n', &mut line).await?;
        match line.strip_suffix(b"\r\n").map(<[u8]>::len) {
            Some(length) => {
                self.spend(line.len()).await?;
                line.truncate(length);
                Ok(line)
            }
            None if line.ends_with(b"\n") => Err(ReplyError::Invalid),
            None if line.len() < limit => Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
            None if limit < MAX_LINE_BYTES => Err(ReplyError::TooLarge),
            None => Err(ReplyError::Invalid),
        }
    }

    /// A bulk string of this length, and the end of its line. Memory is taken as its bytes arrive.
    async fn bulk(
        &mut self,
        stream: &mut (impl AsyncBufRead + Unpin),
        length: i64,
    ) -> Result<Vec<u8>, ReplyError> {
        let length = usize::try_from(length).map_err(|_| ReplyError::Invalid)?;
        let whole = length.checked_add(2).ok_or(ReplyError::TooLarge)?;
        self.spend(whole).await?;
        let mut bytes = Vec::new();
        (&mut *stream).take(whole as u64).read_to_end(&mut bytes).await?;
        if bytes.len() < whole {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        if !bytes.ends_with(b"\r\n") {
            return Err(ReplyError::Invalid);
        }
        bytes.truncate(length);
        Ok(bytes)
    }
}

/// Reads one reply.
pub(super) async fn read(stream: &mut (impl AsyncBufRead + Unpin)) -> Result<RedisReply, ReplyError> {
    let mut allowance = ReplyAllowance { bytes: MAX_REPLY_BYTES, values: MAX_REPLY_VALUES, share: None };
    // The lists that are not complete, each with the number of its missing values.
    let mut open: Vec<(usize, Vec<RedisReply>)> = Vec::new();
    loop {
        allowance.values = allowance.values.checked_sub(1).ok_or(ReplyError::TooManyValues)?;
        let line = allowance.line(stream).await?;
        let (kind, rest) = line.split_first().ok_or(ReplyError::Invalid)?;
        let text = std::str::from_utf8(rest).map_err(|_| ReplyError::Invalid)?;
        let number = || text.parse::<i64>().map_err(|_| ReplyError::Invalid);
        let mut value = match kind {
            b'+' => RedisReply::Status(text.to_owned()),
            b'-' => RedisReply::Error(text.to_owned()),
            b':' => RedisReply::Integer(number()?),
            b'$' | b'*' if text == "-1" => RedisReply::Nil,
            b'$' => RedisReply::Bulk(allowance.bulk(stream, number()?).await?),
            b'*' => match usize::try_from(number()?).map_err(|_| ReplyError::Invalid)? {
                0 => RedisReply::List(Vec::new()),
                length if length > allowance.values => return Err(ReplyError::TooManyValues),
                _ if open.len() >= MAX_REPLY_DEPTH => return Err(ReplyError::TooDeep),
                length => {
                    open.push((length, Vec::new()));
                    continue;
                }
            },
            _ => return Err(ReplyError::Invalid),
        };
        loop {
            let Some((missing, values)) = open.last_mut() else { return Ok(value) };
            values.push(value);
            *missing -= 1;
            if *missing > 0 {
                break;
            }
            value = RedisReply::List(open.pop().map(|(_, values)| values).unwrap_or_default());
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tokio::io::BufReader;

    use super::*;

    /// Reads a reply. A large one waits while other tests use the budget of all responses.
    fn reply(mut bytes: &[u8]) -> Result<RedisReply, ReplyError> {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(read(&mut bytes))
    }

    #[test]
    fn commands_and_replies_are_those_of_redis() {
        assert_eq!(command(&["LLEN", "a b"]), b"*2\r\n$4\r\nLLEN\r\n$3\r\na b\r\n");
        let bulk = |text: &str| RedisReply::Bulk(text.as_bytes().to_vec());
        for (bytes, expected) in [
            (&b"+OK\r\n"[..], RedisReply::Status("OK".into())),
            (b"-ERR no such key\r\n", RedisReply::Error("ERR no such key".into())),
            (b":-7\r\n", RedisReply::Integer(-7)),
            (b"$2\r\n\r\n\r\n", bulk("\r\n")),
            (b"$-1\r\n", RedisReply::Nil),
            (b"*-1\r\n", RedisReply::Nil),
            (b"*0\r\n", RedisReply::List(Vec::new())),
            (
                b"*3\r\n*2\r\n$1\r\na\r\n:1\r\n*0\r\n$1\r\nb\r\n",
                RedisReply::List(vec![
                    RedisReply::List(vec![bulk("a"), RedisReply::Integer(1)]),
                    RedisReply::List(Vec::new()),
                    bulk("b"),
                ]),
            ),
        ] {
            assert_eq!(reply(bytes).unwrap(), expected);
        }
    }

    #[test]
    fn replies_that_are_cut_or_no_replies_are_errors() {
        for bytes in [&b""[..], b"+OK", b"$5\r\nabc", b"*2\r\n:1\r\n"] {
            let error = reply(bytes).unwrap_err();
            assert!(
                matches!(&error, ReplyError::Connection(error) if error.kind() == io::ErrorKind::UnexpectedEof)
            );
        }
        for bytes in
            [&b"HTTP/1.1 400\r\n"[..], b"+a\n", b":x\r\n", b"$-2\r\n", b"*-2\r\n", b"$1\r\nabc", b"\r\n"]
        {
            assert!(matches!(reply(bytes), Err(ReplyError::Invalid)), "{bytes:?}");
        }
    }

    #[test]
    fn size_depth_and_count_of_a_reply_are_bounded_by_what_is_announced() {
        for announced in ["1048576", "9223372036854775807"] {
            assert!(matches!(reply(format!("${announced}\r\n").as_bytes()), Err(ReplyError::TooLarge)));
            assert!(matches!(reply(format!("*{announced}\r\n").as_bytes()), Err(ReplyError::TooManyValues)));
        }
        assert!(matches!(reply(&b"*1\r\n".repeat(MAX_REPLY_DEPTH + 1)), Err(ReplyError::TooDeep)));
        let deepest = [b"*1\r\n".repeat(MAX_REPLY_DEPTH), b":1\r\n".to_vec()].concat();
        assert!(reply(&deepest).is_ok());
        // Lists of lists announce little each.
        let lists =
            [b"*1000\r\n".to_vec(), [b"*200\r\n".to_vec(), b":1\r\n".repeat(200)].concat().repeat(1000)];
        assert!(matches!(reply(&lists.concat()), Err(ReplyError::TooManyValues)));
        let texts = [
            b"*100\r\n".to_vec(),
            [b"$20000\r\n".to_vec(), vec![b'x'; 20_000], b"\r\n".to_vec()].concat().repeat(100),
        ];
        assert!(matches!(reply(&texts.concat()), Err(ReplyError::TooLarge)));
        assert!(
            matches!(reply(&b"+".repeat(MAX_LINE_BYTES + 1)), Err(ReplyError::Invalid)),
            "a line without end"
        );
        let large =
            [format!("${}\r\n", 1 << 19).into_bytes(), vec![b'x'; 1 << 19], b"\r\n".to_vec()].concat();
        assert!(matches!(reply(&large), Ok(RedisReply::Bulk(bytes)) if bytes.len() == 1 << 19));
    }

    #[tokio::test]
    async fn endless_replies_are_not_read_to_their_end() {
        for piece in [&b"*1\r\n"[..], b"x", b"+", b"\0"] {
            let (mut server, client) = tokio::io::duplex(4096);
            let piece = piece.repeat(1000);
            let endless = tokio::spawn(async move {
                while tokio::io::AsyncWriteExt::write_all(&mut server, &piece).await.is_ok() {}
            });
            assert!(read(&mut BufReader::new(client)).await.is_err());
            endless.await.unwrap();
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_reply_or_refused(bytes in proptest::collection::vec(
            prop_oneof![proptest::sample::select(b"+-:$*0123\r\n".to_vec()), any::<u8>()], 0..200)) {
            let _ = reply(&bytes);
        }
    }
}
