//! What went wrong, in one sentence, and what to do about it.

use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::time::Duration;

use rustls::CertificateError;

/// Why there is no answer from a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// `https://host:port`; empty if there is none yet.
    pub server: String,
    /// What went wrong.
    pub cause: Cause,
}

/// What went wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Cause {
    /// Nobody listens there.
    #[error("connection refused")]
    Refused,
    /// The host has no address.
    #[error("no such host ({0})")]
    NoHost(String),
    /// There is no way there.
    #[error("unreachable ({0})")]
    Unreachable(String),
    /// The answer, or the rest of it, did not come in time.
    #[error("timed out after {:?}", rounded(*.0))]
    TimedOut(Duration),
    /// Nobody whom we trust signed the certificate.
    #[error("certificate signed by unknown authority")]
    UnknownAuthority,
    /// The certificate is for somebody else.
    #[error("certificate is not valid for this host name ({0})")]
    WrongName(String),
    /// The certificate is too old or too new.
    #[error("certificate has expired or is not yet valid ({0})")]
    Expired(String),
    /// The server does not want our certificate, or wants one.
    #[error("the server refuses our certificate ({0})")]
    OurCertificate(String),
    /// Something else about TLS.
    #[error("TLS failed: {0}")]
    Tls(String),
    /// TLS where none is spoken.
    #[error("the server does not speak TLS")]
    NotTls,
    /// The answer is larger than we are willing to read.
    #[error("answer too large: more than {0} bytes")]
    TooLarge(usize),
    /// The server sends us elsewhere.
    #[error("redirected to {0}, which is not followed")]
    Redirected(String),
    /// The connection ended before the answer did.
    #[error("connection broke off: {0}")]
    BrokeOff(String),
    /// A file that is needed cannot be used.
    #[error("{path}: {reason}")]
    File {
        /// Which.
        path: String,
        /// Why.
        reason: String,
    },
    /// The URL makes no sense.
    #[error("{url} is not a URL that can be asked: {reason}")]
    Url {
        /// The URL, without secrets.
        url: String,
        /// Why.
        reason: String,
    },
    /// A header or path that cannot be sent.
    #[error("{0}")]
    Invalid(String),
}

impl Cause {
    /// The cause inside whatever a library says that spoke to a server by other means than ours.
    pub fn of(error: &(dyn StdError + 'static)) -> Self {
        classified(error)
    }

    /// What to do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Refused => "check that the server runs and that host and port are right",
            Self::NoHost(_) => "check the host name; inside a cluster it is SERVICE.NAMESPACE.svc",
            Self::Unreachable(_) => "check routes, network policies and firewalls between us and the server",
            Self::TimedOut(_) => "check the server's load, and whether a network policy drops packets",
            Self::UnknownAuthority => "give the authority that signed it as CA file",
            Self::WrongName(_) => "ask the server by a name that its certificate has",
            Self::Expired(_) => "renew the server's certificate, or set the clock",
            Self::OurCertificate(_) => "give a client certificate and key that the server accepts",
            Self::Tls(_) => "check that both sides speak TLS 1.2 or 1.3",
            Self::NotTls => "write http:// instead of https://, or turn on TLS at the server",
            Self::TooLarge(_) => "ask for less, or raise the limit",
            Self::Redirected(_) => "write the address where it leads into the configuration",
            Self::BrokeOff(_) => "check whether the server or a proxy before it was restarted",
            Self::File { .. } => "check that the file exists, can be read and is what it should be",
            Self::Url { .. } => "write a URL such as http://prometheus.monitoring.svc:9090",
            Self::Invalid(_) => "check the headers that are configured",
        }
    }

    /// Whether the same may work soon without anybody doing anything.
    pub fn may_pass(&self) -> bool {
        matches!(
            self,
            Self::Refused | Self::NoHost(_) | Self::Unreachable(_) | Self::TimedOut(_) | Self::BrokeOff(_)
        )
    }
}

/// So that the same fault has the same words each time.
fn rounded(time: Duration) -> Duration {
    if time < Duration::from_secs(1) {
        time
    } else {
        Duration::from_millis((time.as_millis() as u64 + 50) / 100 * 100)
    }
}

impl Error {
    pub(super) fn new(server: &str, cause: Cause) -> Self {
        Self { server: server.to_owned(), cause }
    }

    /// What to do about it.
    pub fn remedy(&self) -> &'static str {
        self.cause.remedy()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.server.is_empty() {
            write!(f, "{}: ", self.server)?;
        }
        self.cause.fmt(f)
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        Some(&self.cause)
    }
}

/// The cause inside whatever the HTTP library says.
pub(super) fn classified(error: &(dyn StdError + 'static)) -> Cause {
    let mut at = Some(error);
    let mut last = String::new();
    while let Some(error) = at {
        if let Some(tls) = error.downcast_ref::<rustls::Error>() {
            return of_tls(tls);
        }
        if let Some(cause) = error.downcast_ref::<io::Error>().and_then(of_io) {
            return cause;
        }
        last = error.to_string();
        // An IO error hides what it wraps from the usual chain.
        let wrapped = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        at = wrapped.map(|wrapped| wrapped as &(dyn StdError + 'static)).or_else(|| error.source());
    }
    if last.contains("lookup") || last.contains("dns error") {
        Cause::NoHost(last)
    } else {
        Cause::BrokeOff(last)
    }
}

fn of_io(error: &io::Error) -> Option<Cause> {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => Some(Cause::Refused),
        io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => {
            Some(Cause::Unreachable(error.to_string()))
        }
        _ if error.get_ref().is_none() && error.to_string().contains("lookup address") => {
            Some(Cause::NoHost(error.to_string()))
        }
        _ => None,
    }
}

fn of_tls(error: &rustls::Error) -> Cause {
    match error {
        rustls::Error::InvalidCertificate(reason) => match reason {
            // The last: an authority that shows its own certificate and is not trusted.
            CertificateError::UnknownIssuer | CertificateError::BadSignature | CertificateError::Other(_) => {
                Cause::UnknownAuthority
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                Cause::WrongName(reason.to_string())
            }
            CertificateError::Expired
            | CertificateError::ExpiredContext { .. }
            | CertificateError::NotValidYet
            | CertificateError::NotValidYetContext { .. } => Cause::Expired(reason.to_string()),
            other => Cause::Tls(other.to_string()),
        },
        rustls::Error::InvalidMessage(_) => Cause::NotTls,
        rustls::Error::AlertReceived(alert) => {
            let words = format!("{alert:?}");
            if words.contains("Certificate") || words.contains("UnknownCA") {
                Cause::OurCertificate(words)
            } else {
                Cause::Tls(words)
            }
        }
        other => Cause::Tls(other.to_string()),
    }
}
