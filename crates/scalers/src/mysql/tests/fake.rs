//! A stand-in for a MySQL server that checks the login as strictly as the real one: user `u`, password `hunter2`, database `d`.

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, SHA256, digest};
use aws_lc_rs::encoding::{AsDer as _, PublicKeyX509Der};
use aws_lc_rs::rsa::{KeySize, OAEP_SHA1_MGF1SHA1, OaepPrivateDecryptingKey, PrivateDecryptingKey};
use base64::Engine as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::test_support::fake_server::FakeServer;

const PASSWORD: &[u8] = b"hunter2";
const NONCE: &[u8; 20] = b"abcdefghijklmnopqrst";

/// How the server authenticates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Plugin {
    Native,
    /// `caching_sha2_password` that knows the hash.
    CachingFast,
    /// `caching_sha2_password` that requires the password, encrypted with its key.
    CachingFull,
    /// Greets with a plugin that the client does not know, and switches.
    SwitchToNative,
}

/// Starts a server.
pub(super) async fn fake_mysql(plugin: Plugin) -> FakeServer {
    FakeServer::start(move |stream| async move { Peer { stream, sequence: 0 }.serve(plugin).await }).await
}

struct Peer {
    stream: TcpStream,
    sequence: u8,
}

impl Peer {
    async fn send(&mut self, packet: &[u8]) -> Option<()> {
        let [low, middle, high, _] = (packet.len() as u32).to_le_bytes();
        self.stream.write_all(&[&[low, middle, high, self.sequence], packet].concat()).await.ok()?;
        self.sequence += 1;
        Some(())
    }

    async fn receive(&mut self) -> Option<Vec<u8>> {
        let mut head = [0; 4];
        self.stream.read_exact(&mut head).await.ok()?;
        assert!(head[3] == self.sequence, "packet {} instead of {}", head[3], self.sequence);
        self.sequence += 1;
        let mut packet = vec![0; u32::from_le_bytes([head[0], head[1], head[2], 0]) as usize];
        self.stream.read_exact(&mut packet).await.ok()?;
        Some(packet)
    }

    async fn serve(&mut self, plugin: Plugin) -> Option<()> {
        let name = match plugin {
            Plugin::Native => "mysql_native_password",
            Plugin::CachingFast | Plugin::CachingFull => "caching_sha2_password",
            Plugin::SwitchToNative => "client_ed25519",
        };
        let mut greeting = b"\x0a8.4.0\0\x01\0\0\0".to_vec();
        greeting.extend(&NONCE[..8]);
        // Capabilities without TLS: 4.1, secure connection, plugins.
        greeting.extend([0, 0x08 | 0x01, 0x82, 45, 2, 0, 0x08 | 0x20, 0, 21]);
        greeting.extend([0; 10]);
        greeting.extend(&NONCE[8..]);
        greeting.push(0);
        greeting.extend(name.as_bytes());
        greeting.push(0);
        self.send(&greeting).await?;
        let login = self.receive().await?;
        let capabilities = u32::from_le_bytes(login[..4].try_into().ok()?);
        assert_eq!(capabilities, 0x1 | 0x8 | 0x200 | 0x8000 | 0x8_0000 | 0x20_0000);
        let rest = login[32..].strip_prefix(b"u\0").unwrap();
        let (response, rest) = rest[1..].split_at(rest[0] as usize);
        let known = if plugin == Plugin::SwitchToNative { "mysql_native_password" } else { name };
        assert_eq!(rest, format!("d\0{known}\0").as_bytes());
        let mut response = response.to_vec();
        if plugin == Plugin::SwitchToNative {
            self.send(&[b"\xfemysql_native_password\0", &NONCE[..], b"\0"].concat()).await?;
            response = self.receive().await?;
        }
        let good = match plugin {
            Plugin::Native | Plugin::SwitchToNative => response == native(),
            Plugin::CachingFast => response == caching(),
            Plugin::CachingFull => self.full_login().await?,
        };
        if !good {
            self.send(b"\xff\x15\x04#28000Access denied for user 'u'").await?;
            return None;
        }
        if plugin == Plugin::CachingFast {
            self.send(&[1, 3]).await?;
        }
        self.send(&[0, 0, 0, 2, 0, 0, 0]).await?;
        loop {
            self.sequence = 0;
            let command = self.receive().await?;
            let query = String::from_utf8(command.strip_prefix(&[3])?.to_vec()).ok()?;
            self.answer(&query).await?;
        }
    }

    /// Hands out a key and decrypts the password.
    async fn full_login(&mut self) -> Option<bool> {
        self.send(&[1, 4]).await?;
        assert_eq!(self.receive().await?, [2]);
        let key = PrivateDecryptingKey::generate(KeySize::Rsa2048).unwrap();
        let public: PublicKeyX509Der<'_> = key.public_key().as_der().unwrap();
        let body = base64::prelude::BASE64_STANDARD.encode(public.as_ref());
        let pem = format!("-----BEGIN PUBLIC KEY-----\n{body}\n-----END PUBLIC KEY-----\n");
        self.send(&[&[1], pem.as_bytes()].concat()).await?;
        let secret = self.receive().await?;
        let key = OaepPrivateDecryptingKey::new(key).unwrap();
        let mut out = vec![0; key.min_output_size()];
        let clear = key.decrypt(&OAEP_SHA1_MGF1SHA1, &secret, &mut out, None).ok()?;
        let clear: Vec<u8> = clear.iter().zip(NONCE.iter().cycle()).map(|(byte, mask)| byte ^ mask).collect();
        Some(clear == [PASSWORD, &[0]].concat())
    }

    async fn answer(&mut self, query: &str) -> Option<()> {
        let end = [0xfe, 0, 0, 2, 0];
        let rows: Vec<Vec<u8>> = match query {
            "SET SESSION max_execution_time = 14000" | "an update" => {
                return self.send(&[0, 0, 0, 2, 0, 0, 0]).await;
            }
            "broken" => return self.send(b"\xff\x7a\x04#42S02Table 'd.x' doesn't exist").await,
            "a file" => return self.send(b"\xfb/etc/passwd").await,
            "no rows" => vec![],
            "null" => vec![vec![0xfb]],
            "many rows" => (1..=1000).map(|n: i32| field(&n.to_string())).collect(),
            other => vec![field(other.strip_prefix("SELECT ")?)],
        };
        self.send(&[1]).await?;
        self.send(b"\x03def\0\0\0\x01x\0\x0c\x2d\0\x01\0\0\0\x08\x81\0\0\0\0").await?;
        self.send(&end).await?;
        for row in rows {
            self.sequence = self.sequence.wrapping_rem(200);
            self.send(&row).await?;
        }
        self.send(&end).await
    }
}

fn field(text: &str) -> Vec<u8> {
    [&[text.len() as u8], text.as_bytes()].concat()
}

fn native() -> Vec<u8> {
    let sha1 = |bytes: &[u8]| digest(&SHA1_FOR_LEGACY_USE_ONLY, bytes).as_ref().to_vec();
    let stored = sha1(&sha1(PASSWORD));
    let mask = sha1(&[&NONCE[..], &stored].concat());
    sha1(PASSWORD).iter().zip(mask).map(|(hash, mask)| hash ^ mask).collect()
}

fn caching() -> Vec<u8> {
    let sha256 = |bytes: &[u8]| digest(&SHA256, bytes).as_ref().to_vec();
    let stored = sha256(&sha256(PASSWORD));
    let mask = sha256(&[&stored, &NONCE[..]].concat());
    sha256(PASSWORD).iter().zip(mask).map(|(hash, mask)| hash ^ mask).collect()
}
