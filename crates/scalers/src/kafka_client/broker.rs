//! A connection to one broker: TLS, SASL, requests and responses.

use sources::http::{ByteShare, UNCOUNTED_BYTES};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::messages::{self, KafkaRequest};
use super::wire::{InvalidResponse, ResponseReader};
use super::{KafkaServer, SaslLogin};
use crate::off_thread::{decode_elsewhere, send_from_task};
use crate::responses::{excerpt, hidden};
use crate::scram::{ScramExchange, ScramHash};
use crate::stream::{BoxStream, dial, io_error, secure};
use crate::web::response_budget;
use crate::{ScalerError, SourceRefusal};

/// Maximum size of a response, in bytes.
const MAX_RESPONSE_BYTES: usize = 16 << 20;
/// Bytes of a response that are read at once, so that a length alone does not take memory.
const READ_CHUNK_BYTES: usize = 64 << 10;

/// A connection to a broker.
pub(super) struct BrokerConnection {
    stream: BoxStream,
    correlation: i32,
    /// Greatest accepted version of each request, by key.
    versions: Vec<(i16, i16)>,
}

impl From<InvalidResponse> for ScalerError {
    fn from(error: InvalidResponse) -> Self {
        Self::caused_by(error.to_string(), error)
    }
}

impl BrokerConnection {
    /// Connects and logs in.
    pub(super) async fn open(server: &KafkaServer, host: &str, port: u16) -> Result<Self, ScalerError> {
        let mut stream = dial(&server.dialer, host, port).await?;
        if let Some(tls) = &server.tls {
            stream = secure(stream, host, tls).await?;
        }
        let mut connection = Self { stream, correlation: 0, versions: Vec::new() };
        let versions = connection.call(&KafkaRequest::ApiVersions, messages::api_versions).await?;
        match versions {
            (0, versions) => connection.versions = versions,
            (error, _) => bail!("ApiVersions: {}", messages::describe(error)),
        }
        if let Some(login) = &server.login {
            connection.log_in(login, host).await?;
        }
        Ok(connection)
    }

    /// Whether the broker accepts this version of a request.
    pub(super) fn accepts(&self, key: i16, version: i16) -> bool {
        self.versions.iter().any(|(known, greatest)| *known == key && *greatest >= version)
    }

    /// Sends a request and decodes its response. After an error the connection cannot be used any more.
    pub(super) async fn call<T>(
        &mut self,
        request: &KafkaRequest,
        decode: impl FnOnce(ResponseReader<'_>) -> Result<T, InvalidResponse> + Send,
    ) -> Result<T, ScalerError>
    where
        T: Send,
    {
        self.correlation = self.correlation.wrapping_add(1);
        let frame = request.frame(self.correlation);
        self.stream.write_all(&frame).await.map_err(|error| io_error(&error))?;
        self.stream.flush().await.map_err(|error| io_error(&error))?;
        // The share is held until the response is decoded.
        let (body, _share) = self.response().await?;
        let (correlation, body) = body.split_first_chunk().ok_or(InvalidResponse)?;
        if i32::from_be_bytes(*correlation) != self.correlation {
            return Err(InvalidResponse.into());
        }
        decode_elsewhere(body.len()).await;
        let decoded = decode(request.reader(body)?);
        send_from_task().await;
        Ok(decoded?)
    }

    async fn response(&mut self) -> Result<(Vec<u8>, Option<ByteShare>), ScalerError> {
        let mut length = [0; 4];
        self.stream.read_exact(&mut length).await.map_err(|error| io_error(&error))?;
        let length = u32::from_be_bytes(length) as usize;
        if !(4..=MAX_RESPONSE_BYTES).contains(&length) {
            return Err(InvalidResponse.into());
        }
        let share = match length {
            ..=UNCOUNTED_BYTES => None,
            length => response_budget().share(length).await,
        };
        let mut body = Vec::new();
        while body.len() < length {
            let begun = body.len();
            body.resize(length.min(begun + READ_CHUNK_BYTES), 0);
            let piece = body.get_mut(begun..).unwrap_or_default();
            self.stream.read_exact(piece).await.map_err(|error| io_error(&error))?;
        }
        Ok((body, share))
    }

    async fn log_in(&mut self, login: &SaslLogin, host: &str) -> Result<(), ScalerError> {
        let mechanism = login.mechanism();
        let request = KafkaRequest::SaslHandshake { mechanism };
        let (error, offered) = self.call(&request, messages::handshake).await?;
        if error != 0 {
            let offered = excerpt(&offered.join(", "));
            bail!("the broker does not accept SASL mechanism {mechanism}, only [{offered}]");
        }
        match login {
            SaslLogin::Plain { user, password } => {
                let message = format!("\0{user}\0{}", password.reveal());
                self.authenticate(mechanism, message.into_bytes()).await?;
            }
            SaslLogin::Scram { hash, user, password } => {
                let exchange = ScramExchange::start(*hash, user, password)?;
                let first = self.authenticate(mechanism, exchange.first().into_bytes()).await?;
                let proof = exchange.prove(&first).await?;
                let message = proof.message.reveal().to_owned().into_bytes();
                let last = self.authenticate(mechanism, message).await?;
                proof.verify(&last)?;
            }
            SaslLogin::Token(login) => {
                let message = login.source.message(host).await?;
                let answer = self.authenticate(mechanism, message.reveal().to_owned().into_bytes()).await?;
                // A refused token is answered with a reason instead of an error code (RFC 7628, 3.2.2).
                if mechanism == "OAUTHBEARER" && !answer.is_empty() {
                    let refused = scaler_error!("the broker refused the token: {}", hidden(&answer));
                    return Err(refused.with_refusal(Some(SourceRefusal::Credentials)));
                }
            }
        }
        Ok(())
    }

    async fn authenticate(&mut self, mechanism: &str, message: Vec<u8>) -> Result<Vec<u8>, ScalerError> {
        let request = KafkaRequest::SaslAuthenticate { message };
        let (error, text, answer) = self.call(&request, messages::authenticated).await?;
        match (error, &*text) {
            (0, _) => Ok(answer),
            (error, "") => Err(messages::refused(error).inside(format!("SASL {mechanism}"))),
            (error, text) => {
                let refused = scaler_error!("SASL {mechanism}: {}", excerpt(text));
                Err(refused.with_refusal(messages::refusal(error)))
            }
        }
    }
}

impl SaslLogin {
    /// The name of the mechanism in the protocol.
    pub(super) fn mechanism(&self) -> &'static str {
        match self {
            Self::Plain { .. } => "PLAIN",
            Self::Scram { hash: ScramHash::Sha1, .. } => "SCRAM-SHA-1",
            Self::Scram { hash: ScramHash::Sha256, .. } => "SCRAM-SHA-256",
            Self::Scram { hash: ScramHash::Sha512, .. } => "SCRAM-SHA-512",
            Self::Token(login) => login.mechanism,
        }
    }
}
