//! Frames and methods of AMQP 0-9-1 that read the length of a queue, without IO.

/// The protocol header that a client sends first.
pub(super) const PROTOCOL_HEADER: &[u8; 8] = b"AMQP\x00\x00\x09\x01";
/// Length of a frame header: type, channel and size.
pub(super) const FRAME_HEADER_BYTES: usize = 7;
/// The byte that ends every frame.
const FRAME_END: u8 = 0xCE;
/// Maximum accepted frame size, in bytes: what the client proposes when it logs in.
pub(super) const MAX_FRAME_BYTES: usize = 128 << 10;

/// A method that a server sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ServerMethod {
    /// `connection.start`, with the offered authentication mechanisms.
    Start { mechanisms: String },
    /// `connection.tune`, with proposed limits.
    Tune { channels: u16, frame: u32 },
    /// `connection.open-ok`.
    Opened,
    /// `channel.open-ok`.
    ChannelOpened,
    /// `queue.declare-ok`, with the number of ready messages.
    Declared { messages: u32 },
    /// `channel.close` or `connection.close`.
    Close { connection: bool, code: u16, reason: String },
    /// Any other method.
    Other,
}

/// A method that the client sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ClientMethod<'a> {
    /// `connection.start-ok`, with credentials.
    StartOk { mechanism: &'a str, response: &'a str },
    /// `connection.tune-ok`. Without heartbeats: requests have a timeout, and idle connections need none.
    TuneOk { channels: u16, frame: u32 },
    /// `connection.open`.
    Open { host: &'a str },
    /// `channel.open`.
    ChannelOpen,
    /// `channel.close-ok`.
    ChannelClosed,
    /// `queue.declare`, passive.
    Declare { queue: &'a str },
}

/// The bytes are not a valid frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InvalidFrame;

/// Decodes type and size from a frame header.
pub(super) fn header(bytes: [u8; FRAME_HEADER_BYTES]) -> Result<(u8, usize), InvalidFrame> {
    let [kind, _, _, a, b, c, d] = bytes;
    let size = u32::from_be_bytes([a, b, c, d]) as usize;
    if !matches!(kind, 1 | 2 | 3 | 8) || size > MAX_FRAME_BYTES {
        return Err(InvalidFrame);
    }
    Ok((kind, size))
}

/// Decodes the method in a frame body, including the end byte.
pub(super) fn method(kind: u8, rest: &[u8]) -> Result<ServerMethod, InvalidFrame> {
    let Some((&FRAME_END, payload)) = rest.split_last() else { return Err(InvalidFrame) };
    if kind != 1 {
        return Ok(ServerMethod::Other);
    }
    let mut reader = Reader(payload);
    Ok(match (reader.short()?, reader.short()?) {
        (10, 10) => {
            reader.take(2)?;
            // The table of server properties.
            let table = reader.long()? as usize;
            reader.take(table)?;
            ServerMethod::Start { mechanisms: reader.long_text()? }
        }
        (10, 30) => ServerMethod::Tune { channels: reader.short()?, frame: reader.long()? },
        (10, 41) => ServerMethod::Opened,
        (20, 11) => ServerMethod::ChannelOpened,
        (50, 11) => {
            reader.short_text()?;
            ServerMethod::Declared { messages: reader.long()? }
        }
        (class @ (10 | 20), 50 | 40) => ServerMethod::Close {
            connection: class == 10,
            code: reader.short()?,
            reason: reader.short_text()?,
        },
        _ => ServerMethod::Other,
    })
}

impl ClientMethod<'_> {
    /// Encodes a frame; none if a name is longer than AMQP allows.
    pub(super) fn frame(&self) -> Option<Vec<u8>> {
        let mut out = Writer(Vec::new());
        let channel: u16 = match self {
            Self::StartOk { mechanism, response } => {
                out.method(10, 11);
                let mut capability = Writer(Vec::new());
                // With this capability the server reports a wrong password instead of closing the connection.
                capability.short_text("authentication_failure_close")?;
                capability.0.extend(b"t\x01");
                let mut table = Writer(Vec::new());
                for (key, value) in [
                    ("connection_name", "plimsoll"),
                    ("product", "plimsoll"),
                    ("version", env!("CARGO_PKG_VERSION")),
                ] {
                    table.short_text(key)?;
                    table.0.push(b'S');
                    table.long_bytes(value.as_bytes())?;
                }
                table.short_text("capabilities")?;
                table.0.push(b'F');
                table.long_bytes(&capability.0)?;
                out.long_bytes(&table.0)?;
                out.short_text(mechanism)?;
                out.long_bytes(response.as_bytes())?;
                out.short_text("en_US")?;
                0
            }
            Self::TuneOk { channels, frame } => {
                out.method(10, 31);
                out.0.extend(channels.to_be_bytes());
                out.0.extend(frame.to_be_bytes());
                out.0.extend([0, 0]);
                0
            }
            Self::Open { host } => {
                out.method(10, 40);
                out.short_text(host)?;
                out.0.extend([0, 0]);
                0
            }
            Self::ChannelOpen => {
                out.method(20, 10);
                out.0.push(0);
                1
            }
            Self::ChannelClosed => {
                out.method(20, 41);
                1
            }
            Self::Declare { queue } => {
                out.method(50, 10);
                out.0.extend([0, 0]);
                out.short_text(queue)?;
                // Flags (passive), and no arguments.
                out.0.extend([1, 0, 0, 0, 0]);
                1
            }
        };
        let size = u32::try_from(out.0.len()).ok()?;
        let mut frame = vec![1];
        frame.extend(channel.to_be_bytes());
        frame.extend(size.to_be_bytes());
        frame.extend(out.0);
        frame.push(FRAME_END);
        Some(frame)
    }
}

struct Writer(Vec<u8>);

impl Writer {
    fn method(&mut self, class: u16, method: u16) {
        self.0.extend(class.to_be_bytes());
        self.0.extend(method.to_be_bytes());
    }

    fn short_text(&mut self, text: &str) -> Option<()> {
        self.0.push(u8::try_from(text.len()).ok()?);
        self.0.extend(text.as_bytes());
        Some(())
    }

    fn long_bytes(&mut self, bytes: &[u8]) -> Option<()> {
        self.0.extend(u32::try_from(bytes.len()).ok()?.to_be_bytes());
        self.0.extend(bytes);
        Some(())
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], InvalidFrame> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(InvalidFrame)?;
        self.0 = rest;
        Ok(taken)
    }

    fn short(&mut self) -> Result<u16, InvalidFrame> {
        self.take(2)?.try_into().map(u16::from_be_bytes).map_err(|_| InvalidFrame)
    }

    fn long(&mut self) -> Result<u32, InvalidFrame> {
        self.take(4)?.try_into().map(u32::from_be_bytes).map_err(|_| InvalidFrame)
    }

    fn short_text(&mut self) -> Result<String, InvalidFrame> {
        let &[size] = self.take(1)? else { return Err(InvalidFrame) };
        self.take(size.into()).map(text)
    }

    fn long_text(&mut self) -> Result<String, InvalidFrame> {
        let size = self.long()? as usize;
        self.take(size).map(text)
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
