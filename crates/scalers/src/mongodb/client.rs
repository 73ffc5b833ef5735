//! Connections to MongoDB, shared by the triggers of a namespace with the same servers and credentials.
//!
//! Implemented here and not with MongoDB's driver, because it needs four commands, and the driver brings a second TLS stack.

use std::time::Duration;

use api::text::hex;
use sources::http::{Secret, UNCOUNTED_BYTES};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::bson::{self, Bson, Document, InvalidBson, field};
use super::uri::{self, MongoUri};
use crate::dial::Dialer;
use crate::off_thread::decode_elsewhere;
use crate::pool::{self, PoolError, PoolFuture};
use crate::responses::excerpt;
use crate::scram::{ScramExchange, ScramHash};
use crate::stream::{BoxStream, dial, io_error, secure};
use crate::tls::TlsSettings;
use crate::web::response_budget;
use crate::{ScalerError, SourceRefusal};

/// Timeout of a count, including the connection, as in KEDA.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(if cfg!(test) { 5 } else { 10 });
/// Timeout of a count at the server.
const COUNT_TIMEOUT: Duration = Duration::from_secs(9);
/// Maximum size of an answer, in bytes.
const MAX_ANSWER_BYTES: usize = 1 << 20;
/// Maximum number of servers that are queried for the primary: each may name another one.
const MAX_SERVERS: usize = 50;
/// The message of the protocol that carries commands.
const OP_MSG: i32 = 2013;
/// Bytes of a message header.
const HEADER_BYTES: usize = 16;
/// Error of servers that do not know a command.
const COMMAND_NOT_FOUND: f64 = 59.0;
/// Errors of servers that are no longer primary.
const NOT_PRIMARY: [f64; 4] = [10107.0, 13435.0, 11602.0, 189.0];

/// Servers and credentials.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct MongoServer {
    pub(super) uri: MongoUri,
    /// TLS settings; none for plain text.
    pub(super) tls: Option<TlsSettings>,
    /// Opens its connections, also that to the primary that others name.
    pub(super) dialer: Dialer,
}

/// What is counted.
pub(super) struct CountQuery {
    pub(super) database: String,
    pub(super) collection: String,
    pub(super) filter: Document,
}

/// A connection.
pub(super) struct MongoConnection {
    stream: BoxStream,
    request: i32,
}

/// Why a command failed.
enum CommandError {
    /// The server refused, with a code.
    Refused(f64, String),
    /// The connection is lost.
    Lost(ScalerError),
}

impl CommandError {
    fn into_error(self) -> ScalerError {
        match self {
            Self::Refused(code, text) => ScalerError::new(text).with_refusal(refusal(code)),
            Self::Lost(error) => error,
        }
    }
}

/// What an error code of the server means.
fn refusal(code: f64) -> Option<SourceRefusal> {
    match code as i64 {
        // Unauthorized, AuthenticationFailed, and what Atlas returns instead.
        13 | 18 | 8000 => Some(SourceRefusal::Credentials),
        // NamespaceNotFound.
        26 => Some(SourceRefusal::UnknownName),
        _ => None,
    }
}

impl From<InvalidBson> for CommandError {
    fn from(error: InvalidBson) -> Self {
        Self::Lost(ScalerError::caused_by(error.to_string(), error))
    }
}

impl From<std::io::Error> for CommandError {
    fn from(error: std::io::Error) -> Self {
        Self::Lost(io_error(&error))
    }
}

/// A text field.
fn text(name: &str, value: &str) -> (String, Bson) {
    (name.to_owned(), Bson::String(value.to_owned()))
}

/// A field with a number.
fn number(name: &str, value: i32) -> (String, Bson) {
    (name.to_owned(), Bson::Int32(value))
}

impl MongoConnection {
    /// Runs a command.
    async fn command(&mut self, command: &Document) -> Result<Document, CommandError> {
        self.request = self.request.wrapping_add(1);
        let body = bson::encode(command);
        let mut message = (HEADER_BYTES as i32 + 5 + body.len() as i32).to_le_bytes().to_vec();
        for part in [self.request, 0, OP_MSG, 0] {
            message.extend(part.to_le_bytes());
        }
        // One section of kind 0: the command.
        message.push(0);
        message.extend(body);
        self.stream.write_all(&message).await?;
        self.stream.flush().await?;
        let answer = self.answer().await?;
        let ok = field(&answer, "ok").and_then(Bson::as_f64);
        match ok {
            Some(1.0) => Ok(answer),
            Some(_) => {
                let error_field = |name| field(&answer, name).and_then(Bson::as_str).unwrap_or_default();
                let code = field(&answer, "code").and_then(Bson::as_f64).unwrap_or_default();
                let text =
                    format!("({}) {}", excerpt(error_field("codeName")), excerpt(error_field("errmsg")));
                Err(CommandError::Refused(code, text))
            }
            None => Err(InvalidBson.into()),
        }
    }

    async fn answer(&mut self) -> Result<Document, CommandError> {
        let mut header = [0; HEADER_BYTES];
        self.stream.read_exact(&mut header).await?;
        let part = |index: usize| {
            let bytes = header.get(4 * index..4 * index + 4).and_then(|bytes| bytes.try_into().ok());
            bytes.map_or(0, i32::from_le_bytes)
        };
        let length = usize::try_from(part(0)).unwrap_or_default().saturating_sub(HEADER_BYTES);
        if part(2) != self.request || part(3) != OP_MSG || !(10..=MAX_ANSWER_BYTES).contains(&length) {
            return Err(InvalidBson.into());
        }
        // The share is held until the answer is decoded.
        let _share = match length {
            ..=UNCOUNTED_BYTES => None,
            length => response_budget().share(length).await,
        };
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).await?;
        decode_elsewhere(length).await;
        // Flags, then a section of kind 0.
        match body.split_at_checked(5) {
            Some(([_, _, _, _, 0], document)) => Ok(bson::decode(document)?),
            _ => Err(InvalidBson.into()),
        }
    }

    /// Introduces the client; the response has the role of the server and the mechanisms of authentication.
    async fn hello(&mut self, uri: &MongoUri) -> Result<Document, CommandError> {
        let hello = |name: &str| {
            let mut command = vec![number(name, 1)];
            if !uri.user.is_empty() {
                command.push(text("saslSupportedMechs", &format!("{}.{}", uri.auth_source, uri.user)));
            }
            command.push(text("$db", "admin"));
            command
        };
        match self.command(&hello("hello")).await {
            // Servers before 4.4.
            Err(CommandError::Refused(code, _)) if code == COMMAND_NOT_FOUND => {
                self.command(&hello("isMaster")).await
            }
            other => other,
        }
    }

    async fn log_in(&mut self, uri: &MongoUri, hello: &Document) -> Result<(), ScalerError> {
        if uri.user.is_empty() {
            return Ok(());
        }
        let offered = match field(hello, "saslSupportedMechs") {
            Some(Bson::Array(offered)) => offered.iter().any(|one| one.as_str() == Some("SCRAM-SHA-256")),
            // Servers before 4.0.
            _ => false,
        };
        let hash = match (&*uri.mechanism, offered) {
            ("SCRAM-SHA-256", _) | ("", true) => ScramHash::Sha256,
            ("SCRAM-SHA-1", _) | ("", false) => ScramHash::Sha1,
            (other, _) => bail!("authMechanism {other} is not supported: use SCRAM-SHA-256"),
        };
        let (mechanism, password) = match hash {
            ScramHash::Sha1 => ("SCRAM-SHA-1", old_password(&uri.user, &uri.password)),
            _ => ("SCRAM-SHA-256", uri.password.clone()),
        };
        let exchange = ScramExchange::start(hash, &uri.user, &password)?;
        let database = text("$db", &uri.auth_source);
        let payload = |bytes: &[u8]| ("payload".to_owned(), Bson::Binary(0, bytes.to_vec()));
        let options = vec![("skipEmptyExchange".to_owned(), Bson::Bool(true))];
        let start = vec![
            number("saslStart", 1),
            text("mechanism", mechanism),
            payload(exchange.first().as_bytes()),
            ("options".to_owned(), Bson::Document(options)),
            database.clone(),
        ];
        let answer = self.command(&start).await.map_err(CommandError::into_error)?;
        let proof = exchange.prove(sent(&answer)?).await?;
        let conversation = || {
            let id = field(&answer, "conversationId").cloned().unwrap_or(Bson::Int32(1));
            ("conversationId".to_owned(), id)
        };
        let next =
            |bytes: &[u8]| vec![number("saslContinue", 1), conversation(), payload(bytes), database.clone()];
        let message = next(proof.message.reveal().as_bytes());
        let last = self.command(&message).await.map_err(CommandError::into_error)?;
        proof.verify(sent(&last)?)?;
        // Servers before 4.4 expect an empty message at the end.
        if field(&last, "done") != Some(&Bson::Bool(true)) {
            self.command(&next(b"")).await.map_err(CommandError::into_error)?;
        }
        Ok(())
    }

    async fn count(&mut self, query: &CountQuery) -> Result<f64, CommandError> {
        let stage = |name: &str, document| Bson::Document(vec![(name.to_owned(), Bson::Document(document))]);
        let sum = Bson::Document(vec![number("$sum", 1)]);
        let group = stage("$group", vec![number("_id", 1), ("n".to_owned(), sum)]);
        let command = vec![
            text("aggregate", &query.collection),
            ("pipeline".to_owned(), Bson::Array(vec![stage("$match", query.filter.clone()), group])),
            ("cursor".to_owned(), Bson::Document(Vec::new())),
            number("maxTimeMS", COUNT_TIMEOUT.as_millis() as i32),
            text("$db", &query.database),
        ];
        let answer = self.command(&command).await?;
        let Some(Bson::Array(batch)) = field(&answer, "cursor.firstBatch") else {
            return Err(InvalidBson.into());
        };
        // No group without documents.
        match batch.first() {
            None => Ok(0.0),
            Some(Bson::Document(group)) => Ok(field(group, "n").and_then(Bson::as_f64).ok_or(InvalidBson)?),
            Some(_) => Err(InvalidBson.into()),
        }
    }
}

/// The SASL message in an answer.
fn sent(answer: &Document) -> Result<&[u8], ScalerError> {
    match field(answer, "payload") {
        Some(Bson::Binary(_, bytes)) => Ok(bytes),
        _ => Err(scaler_error!("the server answered the login without a message")),
    }
}

/// The password of SCRAM-SHA-1, which MongoDB has hashed since before SCRAM.
fn old_password(user: &str, password: &Secret) -> Secret {
    use md5::Digest as _;
    let hash = md5::Md5::digest(format!("{user}:mongo:{}", password.reveal()));
    Secret::new(hex(&hash))
}

impl MongoServer {
    async fn open_at(
        &self,
        (host, port): &(String, u16),
    ) -> Result<(MongoConnection, Document), ScalerError> {
        let named = |error: ScalerError| error.inside(format!("{host}:{port}"));
        let mut stream = dial(&self.dialer, host, *port).await.map_err(named)?;
        if let Some(tls) = &self.tls {
            stream = secure(stream, host, tls).await.map_err(named)?;
        }
        let mut connection = MongoConnection { stream, request: 0 };
        let hello = connection.hello(&self.uri).await.map_err(|error| named(error.into_error()))?;
        Ok((connection, hello))
    }

    /// Connects to the primary, which the other members name.
    async fn open(&self) -> Result<MongoConnection, ScalerError> {
        let mut hosts = self.uri.hosts.clone();
        let mut failed = scaler_error!("the connection string names no host");
        let mut next = 0;
        while let Some(host) = hosts.get(next).filter(|_| next < MAX_SERVERS).cloned() {
            next += 1;
            let (mut connection, hello) = match self.open_at(&host).await {
                Ok(found) => found,
                Err(error) => {
                    failed = error;
                    continue;
                }
            };
            let is = |name| field(&hello, name) == Some(&Bson::Bool(true));
            if self.uri.direct || is("isWritablePrimary") || is("ismaster") {
                let login = connection.log_in(&self.uri, &hello).await;
                return match login {
                    Ok(()) => Ok(connection),
                    Err(error) => Err(error.inside(format!("{}:{}", host.0, host.1))),
                };
            }
            failed = scaler_error!("{}:{} is not the primary and does not know it", host.0, host.1);
            let primary =
                field(&hello, "primary").and_then(Bson::as_str).and_then(|name| uri::host(name).ok());
            if let Some(primary) = primary.filter(|primary| !hosts.contains(primary)) {
                hosts.insert(next, primary);
            }
        }
        Err(failed)
    }
}

impl pool::PooledServer for MongoServer {
    type Connection = MongoConnection;
    type Request = CountQuery;
    type Response = f64;
    const MAX_CONNECTIONS: usize = 4;
    const TIMEOUT: Duration = REQUEST_TIMEOUT;

    fn name(&self) -> String {
        let hosts: Vec<String> = self.uri.hosts.iter().map(|(host, port)| format!("{host}:{port}")).collect();
        hosts.join(",")
    }

    fn sharing_key(request: &CountQuery) -> String {
        let CountQuery { database, collection, filter } = request;
        format!("{database:?} {collection:?} {filter:?}")
    }

    fn connect(&self) -> PoolFuture<'_, MongoConnection, ScalerError> {
        Box::pin(self.open())
    }

    fn query<'a>(
        &'a self,
        connection: &'a mut MongoConnection,
        request: &'a CountQuery,
    ) -> PoolFuture<'a, f64, PoolError> {
        Box::pin(async move {
            match connection.count(request).await {
                Ok(count) => Ok(count),
                // Another member gets the request at once.
                Err(CommandError::Refused(code, text)) if NOT_PRIMARY.contains(&code) => {
                    Err(PoolError::Lost(scaler_error!("{}: {text}", self.name())))
                }
                Err(error @ CommandError::Refused(..)) => {
                    Err(PoolError::Refused(error.into_error().inside(self.name())))
                }
                Err(CommandError::Lost(error)) => Err(PoolError::Lost(error.inside(self.name()))),
            }
        })
    }
}
