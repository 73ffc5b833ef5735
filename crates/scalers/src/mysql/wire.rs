//! The part of MySQL's client protocol that logs in and reads a number, without IO.

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, SHA256, digest};
use aws_lc_rs::rsa::{OAEP_SHA1_MGF1SHA1, OaepPublicEncryptingKey, PublicEncryptingKey};
use rustls::pki_types::SubjectPublicKeyInfoDer;
use rustls::pki_types::pem::PemObject as _;

/// Capabilities of this client: long passwords, protocol 4.1, authentication plugins.
const CAPABILITIES: u32 = 0x1 | 0x200 | 0x8000 | 0x8_0000 | 0x20_0000;
/// A database is chosen with the login.
const WITH_DATABASE: u32 = 0x8;
/// TLS is started.
pub(super) const WITH_TLS: u32 = 0x800;
/// Character set `utf8mb4_general_ci`.
const CHARACTER_SET: u8 = 45;
/// Size of packets that this client accepts, in bytes.
const MAX_PACKET_BYTES: u32 = 1 << 24;

/// The bytes are no valid packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the server does not speak the MySQL protocol")]
pub(super) struct InvalidPacket;

/// The greeting of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Greeting {
    pub(super) version: String,
    pub(super) capabilities: u32,
    pub(super) nonce: Vec<u8>,
    pub(super) plugin: String,
}

/// An answer to a command or to a message of the login.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reply<'a> {
    Ok,
    Error {
        code: u16,
        state: String,
        message: String,
    },
    /// Data for the plugin.
    More(&'a [u8]),
    /// Another plugin, with a new nonce.
    Switch {
        plugin: String,
        nonce: Vec<u8>,
    },
    /// The beginning of a result with this number of columns.
    Columns(u64),
    /// The server requests a file of this machine (`LOCAL INFILE`).
    LocalFile,
}

/// Reads fields of a packet.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], InvalidPacket> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(InvalidPacket)?;
        self.0 = rest;
        Ok(taken)
    }

    fn number(&mut self, length: usize) -> Result<u64, InvalidPacket> {
        Ok(self.take(length)?.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    /// Text up to a zero byte, or to the end.
    fn text(&mut self) -> String {
        let end = self.0.iter().position(|byte| *byte == 0).unwrap_or(self.0.len());
        let (text, rest) = self.0.split_at_checked(end).unwrap_or_default();
        self.0 = rest.get(1..).unwrap_or_default();
        String::from_utf8_lossy(text).into_owned()
    }

    /// A number of variable length; none for NULL.
    fn length(&mut self) -> Result<Option<u64>, InvalidPacket> {
        match self.number(1)? {
            0xfb => Ok(None),
            0xfc => self.number(2).map(Some),
            0xfd => self.number(3).map(Some),
            0xfe => self.number(8).map(Some),
            0xff => Err(InvalidPacket),
            number => Ok(Some(number)),
        }
    }
}

/// Decodes the first packet of a server. An error instead of a greeting (too many connections, host not allowed) has no state.
pub(super) fn greeting(packet: &[u8]) -> Result<Result<Greeting, Reply<'_>>, InvalidPacket> {
    let mut fields = Fields(packet);
    match fields.number(1)? {
        10 => {}
        0xff => return Ok(Err(reply(packet)?)),
        _ => return Err(InvalidPacket),
    }
    let version = fields.text();
    fields.take(4)?;
    let mut nonce = fields.take(8)?.to_vec();
    fields.take(1)?;
    let mut capabilities = fields.number(2)? as u32;
    fields.take(3)?;
    capabilities |= (fields.number(2)? as u32) << 16;
    let length = fields.number(1)? as usize;
    fields.take(10)?;
    let rest = fields.take(length.saturating_sub(8).max(13))?;
    nonce.extend(rest.strip_suffix(&[0]).unwrap_or(rest));
    Ok(Ok(Greeting { version, capabilities, nonce, plugin: fields.text() }))
}

/// Decodes an answer.
pub(super) fn reply(packet: &[u8]) -> Result<Reply<'_>, InvalidPacket> {
    let mut fields = Fields(packet);
    match fields.number(1)? {
        0 => Ok(Reply::Ok),
        1 if packet.len() > 1 => Ok(Reply::More(fields.0)),
        0xfb => Ok(Reply::LocalFile),
        0xfe => {
            let plugin = fields.text();
            let nonce = fields.0.strip_suffix(&[0]).unwrap_or(fields.0).to_vec();
            Ok(Reply::Switch { plugin, nonce })
        }
        0xff => {
            let code = fields.number(2)? as u16;
            let mut state = String::new();
            if fields.0.first() == Some(&b'#') {
                state = String::from_utf8_lossy(fields.take(6)?.get(1..).unwrap_or_default()).into_owned();
            }
            Ok(Reply::Error { code, state, message: String::from_utf8_lossy(fields.0).into_owned() })
        }
        _ => match Fields(packet).length()? {
            Some(columns) => Ok(Reply::Columns(columns)),
            None => Err(InvalidPacket),
        },
    }
}

/// Whether a packet ends the columns or the rows of a result.
pub(super) fn is_end(packet: &[u8]) -> bool {
    packet.first() == Some(&0xfe) && packet.len() < 9
}

/// The first field of a row; none for NULL.
pub(super) fn first_field(row: &[u8]) -> Result<Option<String>, InvalidPacket> {
    let mut fields = Fields(row);
    let Some(length) = fields.length()? else { return Ok(None) };
    let bytes = fields.take(usize::try_from(length).map_err(|_| InvalidPacket)?)?;
    Ok(Some(String::from_utf8_lossy(bytes).into_owned()))
}

/// The request for TLS.
pub(super) fn tls_request(database: &str) -> Vec<u8> {
    head(capabilities(database) | WITH_TLS)
}

/// The login.
pub(super) fn login(user: &str, database: &str, plugin: &str, response: &[u8], tls: bool) -> Vec<u8> {
    let mut packet = head(capabilities(database) | if tls { WITH_TLS } else { 0 });
    packet.extend(user.bytes().filter(|byte| *byte != 0));
    packet.push(0);
    // Responses are shorter than 251 bytes; then the length is one byte.
    packet.push(response.len().min(250) as u8);
    packet.extend(response.iter().take(250));
    for text in [database, plugin].into_iter().filter(|text| !text.is_empty()) {
        packet.extend(text.bytes().filter(|byte| *byte != 0));
        packet.push(0);
    }
    packet
}

fn capabilities(database: &str) -> u32 {
    CAPABILITIES | if database.is_empty() { 0 } else { WITH_DATABASE }
}

fn head(capabilities: u32) -> Vec<u8> {
    let mut packet = capabilities.to_le_bytes().to_vec();
    packet.extend(MAX_PACKET_BYTES.to_le_bytes());
    packet.push(CHARACTER_SET);
    packet.extend([0; 23]);
    packet
}

/// The response of a plugin to the nonce of the server; none if the plugin is not known here.
pub(super) fn response(plugin: &str, password: &str, nonce: &[u8], tls: bool) -> Option<Vec<u8>> {
    let sha1 = |bytes: &[u8]| digest(&SHA1_FOR_LEGACY_USE_ONLY, bytes).as_ref().to_vec();
    let sha256 = |bytes: &[u8]| digest(&SHA256, bytes).as_ref().to_vec();
    match plugin {
        _ if password.is_empty() => Some(Vec::new()),
        "mysql_native_password" => {
            let hash = sha1(password.as_bytes());
            let mask = sha1(&[nonce, &sha1(&hash)].concat());
            Some(exclusive_or(&hash, &mask))
        }
        "caching_sha2_password" => {
            let hash = sha256(password.as_bytes());
            let mask = sha256(&[&sha256(&hash), nonce].concat());
            Some(exclusive_or(&hash, &mask))
        }
        "mysql_clear_password" | "sha256_password" if tls => Some(clear(password)),
        _ => None,
    }
}

/// The password in clear text, which is sent over TLS only.
pub(super) fn clear(password: &str) -> Vec<u8> {
    [password.as_bytes(), &[0]].concat()
}

/// The password encrypted for the key of the server (PEM).
pub(super) fn encrypted(password: &str, nonce: &[u8], key: &[u8]) -> Result<Vec<u8>, InvalidPacket> {
    let mask: Vec<u8> = nonce.iter().copied().cycle().take(password.len() + 1).collect();
    let hidden = if nonce.is_empty() { clear(password) } else { exclusive_or(&clear(password), &mask) };
    let key = SubjectPublicKeyInfoDer::from_pem_slice(key).map_err(|_| InvalidPacket)?;
    let key = PublicEncryptingKey::from_der(key.as_ref()).map_err(|_| InvalidPacket)?;
    let key = OaepPublicEncryptingKey::new(key).map_err(|_| InvalidPacket)?;
    let mut out = vec![0; key.ciphertext_size()];
    let length = key.encrypt(&OAEP_SHA1_MGF1SHA1, &hidden, &mut out, None).map_err(|_| InvalidPacket)?.len();
    out.truncate(length);
    Ok(out)
}

fn exclusive_or(left: &[u8], right: &[u8]) -> Vec<u8> {
    left.iter().zip(right).map(|(left, right)| left ^ right).collect()
}
