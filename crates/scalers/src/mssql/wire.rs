//! Messages of TDS 7.4 that a client sends, and the fields that both directions share, without IO.

/// Types of packets.
pub(super) const SQL_BATCH: u8 = 1;
pub(super) const TABULAR_RESULT: u8 = 4;
pub(super) const LOGIN7: u8 = 0x10;
pub(super) const PRELOGIN: u8 = 0x12;
/// The status of the last packet of a message.
pub(super) const END_OF_MESSAGE: u8 = 1;
/// Size of the header of a packet, in bytes.
pub(super) const HEADER_BYTES: usize = 8;
/// Size of packets that this client sends, in bytes: every server accepts it.
const PACKET_BYTES: usize = 4096;

/// Values of the option ENCRYPTION in PRELOGIN.
pub(super) const ENCRYPT_OFF: u8 = 0;
pub(super) const ENCRYPT_ON: u8 = 1;
pub(super) const ENCRYPT_NOT_SUPPORTED: u8 = 2;
const VERSION_OPTION: u8 = 0;
const ENCRYPTION_OPTION: u8 = 1;
const FEDERATED_OPTION: u8 = 6;
const LAST_OPTION: u8 = 0xff;

const TDS_7_4: u32 = 0x7400_0004;
/// An unknown database or language ends the login.
const OPTION_FLAGS_1: u8 = 0xe0;
const OPTION_FLAGS_2: u8 = 0x03;
/// The client only reads, so that a replica may answer.
const READ_ONLY_INTENT: u8 = 0x20;
/// The login has feature extensions.
const HAS_EXTENSION: u8 = 0x10;
const FEDERATED_FEATURE: u8 = 2;
/// The library that sends tokens with the login.
const SECURITY_TOKEN_LIBRARY: u8 = 1 << 1;
/// Size of the fixed part of a login, in bytes.
const LOGIN_HEAD_BYTES: usize = 94;

/// The bytes are no valid packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the server does not speak the protocol of SQL Server (TDS)")]
pub(super) struct InvalidTds;

/// Reads fields of a message; numbers are little-endian.
pub(super) struct TdsFields<'a>(pub(super) &'a [u8]);

impl<'a> TdsFields<'a> {
    pub(super) fn take(&mut self, length: usize) -> Result<&'a [u8], InvalidTds> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(InvalidTds)?;
        self.0 = rest;
        Ok(taken)
    }

    pub(super) fn number(&mut self, length: usize) -> Result<u64, InvalidTds> {
        Ok(self.take(length)?.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    /// Text after its length in characters, which has one or two bytes.
    pub(super) fn text(&mut self, length_bytes: usize) -> Result<String, InvalidTds> {
        let length = self.number(length_bytes)? as usize;
        Ok(utf16(self.take(2 * length)?))
    }
}

/// Text in UTF-16LE.
pub(super) fn utf16(bytes: &[u8]) -> String {
    let units = bytes.chunks_exact(2).map(|pair| match pair {
        [low, high] => u16::from_le_bytes([*low, *high]),
        _ => 0,
    });
    char::decode_utf16(units).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
}

fn to_utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

/// The packets of a message.
pub(super) fn packets(kind: u8, message: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(message.len() + HEADER_BYTES);
    let mut pieces = message.chunks(PACKET_BYTES - HEADER_BYTES).peekable();
    let mut number = 1_u8;
    while let Some(piece) = pieces.next() {
        let status = if pieces.peek().is_none() { END_OF_MESSAGE } else { 0 };
        out.extend([kind, status]);
        out.extend(((piece.len() + HEADER_BYTES) as u16).to_be_bytes());
        out.extend([0, 0, number, 0]);
        out.extend(piece);
        number = number.wrapping_add(1);
    }
    out
}

/// The first message: version, encryption, and whether a token will be sent.
pub(super) fn prelogin(encryption: u8, federated: bool) -> Vec<u8> {
    let mut options: Vec<(u8, &[u8])> =
        vec![(VERSION_OPTION, &[0, 0, 0, 0, 0, 0]), (ENCRYPTION_OPTION, std::slice::from_ref(&encryption))];
    if federated {
        options.push((FEDERATED_OPTION, &[1]));
    }
    let mut offset = 5 * options.len() + 1;
    let mut out = Vec::new();
    for (option, value) in &options {
        out.push(*option);
        out.extend((offset as u16).to_be_bytes());
        out.extend((value.len() as u16).to_be_bytes());
        offset += value.len();
    }
    out.push(LAST_OPTION);
    out.extend(options.iter().flat_map(|(_, value)| *value));
    out
}

/// What a server answers to [`prelogin`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PreloginAnswer {
    pub(super) encryption: u8,
    /// Whether the server understood that a token will be sent; the login repeats it.
    pub(super) federated: bool,
}

/// Decodes the answer to [`prelogin`].
pub(super) fn prelogin_answer(message: &[u8]) -> Result<PreloginAnswer, InvalidTds> {
    let mut fields = TdsFields(message);
    let (mut encryption, mut federated) = (None, false);
    loop {
        let option = fields.number(1)? as u8;
        if option == LAST_OPTION {
            break;
        }
        let offset = usize::from(big_endian(fields.take(2)?)?);
        let length = usize::from(big_endian(fields.take(2)?)?);
        let value = message.get(offset..offset + length).ok_or(InvalidTds)?;
        match option {
            ENCRYPTION_OPTION => encryption = value.first().copied(),
            FEDERATED_OPTION => federated = value.first() == Some(&1),
            _ => {}
        }
    }
    Ok(PreloginAnswer { encryption: encryption.ok_or(InvalidTds)?, federated })
}

fn big_endian(bytes: &[u8]) -> Result<u16, InvalidTds> {
    bytes.try_into().map(u16::from_be_bytes).map_err(|_| InvalidTds)
}

/// The credentials of a login.
#[derive(Clone, Copy)]
pub(super) enum LoginAs<'a> {
    User {
        name: &'a str,
        password: &'a str,
    },
    /// A token of Microsoft Entra ID, and whether the server announced that it understands tokens.
    Token {
        token: &'a str,
        echo: bool,
    },
}

/// The login.
pub(super) fn login(who: LoginAs<'_>, server: &str, database: &str, read_only: bool) -> Vec<u8> {
    let (user, password) = match who {
        LoginAs::User { name, password } => (to_utf16(name), to_utf16(password)),
        LoginAs::Token { .. } => (Vec::new(), Vec::new()),
    };
    // The protocol hides the password so; the encryption is that of TLS.
    let password: Vec<u8> = password.iter().map(|byte| byte.rotate_left(4) ^ 0xa5).collect();
    let extension = match who {
        LoginAs::User { .. } => None,
        LoginAs::Token { token, echo } => {
            let token = to_utf16(token);
            let mut feature = vec![FEDERATED_FEATURE];
            feature.extend((token.len() as u32 + 5).to_le_bytes());
            feature.push(SECURITY_TOKEN_LIBRARY | u8::from(echo));
            feature.extend((token.len() as u32).to_le_bytes());
            feature.extend(token);
            feature.push(LAST_OPTION);
            Some(feature)
        }
    };
    let program = to_utf16("plimsoll");
    // Where the extension begins, which is known below.
    let pointer = if extension.is_some() { vec![0; 4] } else { Vec::new() };
    let empty = Vec::new();
    let texts = [
        &program,
        &user,
        &password,
        &program,
        &to_utf16(server),
        &pointer,
        &program,
        &empty,
        &to_utf16(database),
    ];
    let mut data = Vec::new();
    let (mut places, mut pointer_at) = (Vec::new(), 0);
    for (index, text) in texts.into_iter().enumerate() {
        places.extend(((LOGIN_HEAD_BYTES + data.len()) as u16).to_le_bytes());
        let is_pointer = index == 5;
        let length = if is_pointer { text.len() } else { text.len() / 2 };
        places.extend((length as u16).to_le_bytes());
        if is_pointer {
            pointer_at = data.len();
        }
        data.extend(text);
    }
    let end = ((LOGIN_HEAD_BYTES + data.len()) as u16).to_le_bytes();
    // The address of the network card, and three fields that are not used: SSPI, attached file, new password.
    places.extend([0; 6]);
    for _ in 0..3 {
        places.extend(end);
        places.extend([0, 0]);
    }
    places.extend([0; 4]);
    if let Some(feature) = &extension {
        let begins = ((LOGIN_HEAD_BYTES + data.len()) as u32).to_le_bytes();
        if let Some(pointer) = data.get_mut(pointer_at..pointer_at + 4) {
            pointer.copy_from_slice(&begins);
        }
        data.extend(feature);
    }
    let mut out = ((LOGIN_HEAD_BYTES + data.len()) as u32).to_le_bytes().to_vec();
    for number in [TDS_7_4, PACKET_BYTES as u32, 0, 0, 0] {
        out.extend(number.to_le_bytes());
    }
    let intent = if read_only { READ_ONLY_INTENT } else { 0 };
    let extended = if extension.is_some() { HAS_EXTENSION } else { 0 };
    out.extend([OPTION_FLAGS_1, OPTION_FLAGS_2, intent, extended]);
    // Time zone and locale.
    out.extend([0; 8]);
    out.extend(places);
    out.extend(data);
    out
}

/// A query.
pub(super) fn batch(query: &str) -> Vec<u8> {
    // All headers, of which there is one: no transaction, one request.
    let mut out = vec![22, 0, 0, 0, 18, 0, 0, 0, 2, 0];
    out.extend([0; 8]);
    out.extend([1, 0, 0, 0]);
    out.extend(to_utf16(query));
    out
}
