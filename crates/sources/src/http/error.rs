//! HTTP errors, each with a one-line text and a remedy.

use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::time::Duration;

use rustls::{AlertDescription, CertificateError};

use crate::dial::DialError;

/// Why a request failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpError {
    /// `https://host:port`; empty if the URL could not be parsed.
    pub server: String,
    /// Why the request failed.
    pub cause: HttpErrorCause,
}

/// Why the request failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HttpErrorCause {
    /// Connection refused.
    #[error("connection refused")]
    Refused,
    /// The host name does not resolve.
    #[error("no such host ({0})")]
    UnknownHost(String),
    /// The address is not allowed.
    #[error("{0}")]
    NotAllowed(String),
    /// No route to the host.
    #[error("unreachable ({0})")]
    Unreachable(String),
    /// The response was not complete before the deadline.
    #[error("timed out after {:?}", rounded(*.0))]
    TimedOut(Duration),
    /// The server certificate is not signed by a trusted CA.
    #[error("certificate signed by unknown authority")]
    UnknownAuthority,
    /// The server certificate is for another name.
    #[error("certificate is not valid for this host name ({0})")]
    WrongName(String),
    /// The server certificate is expired or not yet valid.
    #[error("certificate has expired or is not yet valid ({0})")]
    Expired(String),
    /// The server rejected the client certificate, or requires one.
    #[error("the server refuses our certificate ({0})")]
    ClientCertificateRejected(String),
    /// Another TLS error.
    #[error("TLS failed: {0}")]
    Tls(String),
    /// The server does not speak TLS.
    #[error("the server does not speak TLS")]
    NotTls,
    /// The response exceeds the size limit.
    #[error("answer too large: more than {0} bytes")]
    TooLarge(usize),
    /// The server answered with a redirect.
    #[error("redirected to {0}, which is not followed")]
    Redirected(String),
    /// The connection was closed before the response was complete.
    #[error("connection broke off: {0}")]
    ConnectionLost(String),
    /// The proxy cannot be used or reached, or it refuses.
    #[error("{0}")]
    Proxy(String),
    /// The server required a pause, so that nothing was sent, or nothing but the request that it refused.
    #[error("asked again at {until} because the source limits requests ({header})")]
    RateLimited {
        /// When the next request is sent.
        until: jiff::Timestamp,
        /// The header of the response that requires the pause.
        header: &'static str,
    },
    /// A certificate, key or token file cannot be used.
    #[error("{path}: {reason}")]
    File {
        /// Path of the file.
        path: String,
        /// Reason.
        reason: String,
    },
    /// The URL cannot be used.
    #[error("{url} is not a usable URL: {reason}")]
    Url {
        /// The URL, without secrets.
        url: String,
        /// Reason.
        reason: String,
    },
    /// A header or path is not valid.
    #[error("{0}")]
    Invalid(String),
}

impl HttpErrorCause {
    /// Classifies the error of another client library.
    pub fn classify(error: &(dyn StdError + 'static)) -> Self {
        classify(error)
    }

    /// What the user can do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Refused => "check that the server runs and that host and port are right",
            Self::UnknownHost(_) => "check the host name; inside a cluster it is SERVICE.NAMESPACE.svc",
            Self::NotAllowed(_) => "let the administrator allow the address with --allow-source-cidr",
            Self::Unreachable(_) => "check routes, network policies and firewalls between us and the server",
            Self::TimedOut(_) => "check the server's load, and whether a network policy drops packets",
            Self::UnknownAuthority => "give the authority that signed it as CA file",
            Self::WrongName(_) => "ask the server by a name that its certificate has",
            Self::Expired(_) => "renew the server's certificate, or set the clock",
            Self::ClientCertificateRejected(_) => "give a client certificate and key that the server accepts",
            Self::Tls(_) => "check that both sides speak TLS 1.2 or 1.3",
            Self::NotTls => "write http:// instead of https://, or turn on TLS at the server",
            Self::TooLarge(_) => "ask for less, or raise the limit",
            Self::Redirected(_) => "write the address where it leads into the configuration",
            Self::ConnectionLost(_) => "check whether the server or a proxy before it was restarted",
            Self::Proxy(_) => "check HTTP_PROXY, HTTPS_PROXY and NO_PROXY, and what the proxy allows",
            Self::RateLimited { .. } => "ask less often, or let the source allow more",
            Self::File { .. } => "check that the file exists, can be read and is what it should be",
            Self::Url { .. } => "write a URL such as http://prometheus.monitoring.svc:9090",
            Self::Invalid(_) => "check the headers that are configured",
        }
    }
}

/// Rounds the duration so that repeated timeouts have the same text.
fn rounded(time: Duration) -> Duration {
    if time < Duration::from_secs(1) {
        time
    } else {
        Duration::from_millis((time.as_millis() as u64 + 50) / 100 * 100)
    }
}

impl HttpError {
    pub(super) fn new(server: &str, cause: HttpErrorCause) -> Self {
        Self { server: server.to_owned(), cause }
    }

    /// What the user can do about it.
    pub fn remedy(&self) -> &'static str {
        self.cause.remedy()
    }
}

impl fmt::Display for HttpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.server.is_empty() {
            write!(f, "{}: ", self.server)?;
        }
        self.cause.fmt(f)
    }
}

impl StdError for HttpError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        Some(&self.cause)
    }
}

/// Classifies an error of the HTTP library by its source chain.
pub(super) fn classify(error: &(dyn StdError + 'static)) -> HttpErrorCause {
    let mut at = Some(error);
    let mut last = String::new();
    while let Some(error) = at {
        if let Some(tls) = error.downcast_ref::<rustls::Error>() {
            return of_tls(tls);
        }
        match error.downcast_ref::<DialError>() {
            Some(refused @ DialError::NotAllowed { .. }) => {
                return HttpErrorCause::NotAllowed(refused.to_string());
            }
            Some(refused @ DialError::Proxy(_)) => return HttpErrorCause::Proxy(refused.to_string()),
            Some(DialError::TimedOut(time)) => return HttpErrorCause::TimedOut(*time),
            Some(unknown @ (DialError::NoAddress(_) | DialError::Lookup(_))) => {
                return HttpErrorCause::UnknownHost(unknown.to_string());
            }
            _ => {}
        }
        if let Some(cause) = error.downcast_ref::<io::Error>().and_then(of_io) {
            return cause;
        }
        last = error.to_string();
        // `io::Error::source` skips the wrapped error itself.
        let wrapped = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        at = wrapped.map(|wrapped| wrapped as &(dyn StdError + 'static)).or_else(|| error.source());
    }
    HttpErrorCause::ConnectionLost(last)
}

fn of_io(error: &io::Error) -> Option<HttpErrorCause> {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => Some(HttpErrorCause::Refused),
        io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => {
            Some(HttpErrorCause::Unreachable(error.to_string()))
        }
        _ => None,
    }
}

fn of_tls(error: &rustls::Error) -> HttpErrorCause {
    match error {
        rustls::Error::InvalidCertificate(reason) => match reason {
            // `Other` is a self-signed CA that is not trusted.
            CertificateError::UnknownIssuer | CertificateError::BadSignature | CertificateError::Other(_) => {
                HttpErrorCause::UnknownAuthority
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                HttpErrorCause::WrongName(reason.to_string())
            }
            CertificateError::Expired
            | CertificateError::ExpiredContext { .. }
            | CertificateError::NotValidYet
            | CertificateError::NotValidYetContext { .. } => HttpErrorCause::Expired(reason.to_string()),
            other => HttpErrorCause::Tls(other.to_string()),
        },
        rustls::Error::InvalidMessage(_) => HttpErrorCause::NotTls,
        rustls::Error::AlertReceived(alert) if is_about_certificate(*alert) => {
            HttpErrorCause::ClientCertificateRejected(format!("{alert:?}"))
        }
        rustls::Error::AlertReceived(alert) => HttpErrorCause::Tls(format!("{alert:?}")),
        other => HttpErrorCause::Tls(other.to_string()),
    }
}

/// Whether a server sends this alert because of the client certificate, or because there is none.
fn is_about_certificate(alert: AlertDescription) -> bool {
    matches!(
        alert,
        AlertDescription::NoCertificate
            | AlertDescription::BadCertificate
            | AlertDescription::UnsupportedCertificate
            | AlertDescription::CertificateRevoked
            | AlertDescription::CertificateExpired
            | AlertDescription::CertificateUnknown
            | AlertDescription::CertificateUnobtainable
            | AlertDescription::BadCertificateStatusResponse
            | AlertDescription::BadCertificateHashValue
            | AlertDescription::CertificateRequired
            | AlertDescription::UnknownCA
    )
}
