//! Explains why a first request failed, and what to do.

use std::error::Error;
use std::io;

use kube::client::AuthError;
use rustls::CertificateError;

use super::{ConnectError, Connection};

/// Explains why a first request failed: the cause, the server, and a remedy.
pub fn explain(error: &(dyn Error + 'static), connection: &Connection) -> String {
    let Connection { server, origin, .. } = connection;
    let (what, remedy) = match found(error) {
        FailureCause::Refused(401, text) => (
            format!("the cluster at {server} does not know who we are: {text}"),
            "check the user of the context (token or certificate may have expired), or choose another with --context",
        ),
        FailureCause::Refused(403, text) => (
            format!("the cluster at {server} does not allow it: {text}"),
            "grant the permission, or choose another user with --context",
        ),
        FailureCause::Refused(code, text) => (
            format!("the cluster at {server} answered {code}: {text}"),
            "try again; if it stays, see the log of the API server",
        ),
        FailureCause::Credentials(text) => (
            format!("cannot get credentials for {server}: {text}"),
            "check the user of the context in the kubeconfig",
        ),
        FailureCause::Trust(text) => (
            format!("cannot trust the cluster at {server}: {text}"),
            "check certificate-authority-data and server in the kubeconfig",
        ),
        FailureCause::Other(text) => (
            format!("cannot reach the cluster at {server}: {text}"),
            "check the address, or choose another context with --context; `plimsoll up` starts a local cluster",
        ),
    };
    let name = if origin.contains(", context ") { "kubeconfig" } else { "settings" };
    ConnectError::new(&what, &[(name, origin)], remedy).to_string()
}

/// The innermost cause of an error, in a few words.
pub(crate) fn cause(error: &(dyn Error + 'static)) -> String {
    match found(error) {
        FailureCause::Refused(_, text)
        | FailureCause::Credentials(text)
        | FailureCause::Trust(text)
        | FailureCause::Other(text) => text,
    }
}

enum FailureCause {
    /// The status and message of a response.
    Refused(u16, String),
    Credentials(String),
    Trust(String),
    Other(String),
}

/// The first error of the chain that has a meaning for users.
fn found(error: &(dyn Error + 'static)) -> FailureCause {
    let mut current = error;
    loop {
        if let Some(kube::Error::Api(status)) = current.downcast_ref() {
            return FailureCause::Refused(status.code, status.message.clone());
        }
        if let Some(kube::Error::Auth(auth)) = current.downcast_ref() {
            return FailureCause::Credentials(auth_text(auth));
        }
        if let Some(auth) = current.downcast_ref() {
            return FailureCause::Credentials(auth_text(auth));
        }
        if let Some(tls) = current.downcast_ref() {
            return tls_found(tls);
        }
        let inner = match current.downcast_ref::<io::Error>() {
            Some(io) if io.kind() == io::ErrorKind::TimedOut => return FailureCause::Other(io_text(io)),
            // The inner error of this variant is not among its sources.
            Some(io) => match io.get_ref() {
                Some(carried) => Some(carried as &(dyn Error + 'static)),
                None => return FailureCause::Other(io_text(io)),
            },
            None => current.source(),
        };
        match inner {
            Some(inner) => current = inner,
            None => return FailureCause::Other(current.to_string()),
        }
    }
}

/// The text of an error of the operating system, without its number.
pub(super) fn io_text(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::TimedOut => "no answer in time".to_owned(),
        io::ErrorKind::NotFound => "it does not exist".to_owned(),
        kind if error.get_ref().is_none() => kind.to_string(),
        _ => error.to_string(),
    }
}

/// The standard output of a credential plugin may be secret, so only its standard error is shown.
fn auth_text(error: &AuthError) -> String {
    match error {
        AuthError::AuthExecRun { cmd, out } => {
            let message = String::from_utf8_lossy(&out.stderr);
            let message = message.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
            let text = format!("`{cmd}` failed ({}): {message}", out.status);
            text.trim_end_matches([':', ' ']).to_owned()
        }
        AuthError::AuthExecParse(_) => {
            "the credential plugin printed something else than an ExecCredential".to_owned()
        }
        other => other.to_string(),
    }
}

fn tls_found(error: &rustls::Error) -> FailureCause {
    let text = match error {
        rustls::Error::InvalidCertificate(certificate) => match certificate {
            CertificateError::UnknownIssuer | CertificateError::BadSignature => {
                "its certificate is signed by a CA that the kubeconfig does not name".to_owned()
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                "its certificate is for another name or address".to_owned()
            }
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                "its certificate has expired (or this machine's clock is wrong)".to_owned()
            }
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                "its certificate is not valid yet (or this machine's clock is wrong)".to_owned()
            }
            other => format!("its certificate is not valid: {other}"),
        },
        rustls::Error::InvalidMessage(_) => return FailureCause::Other("it does not speak TLS".to_owned()),
        other => return FailureCause::Other(other.to_string()),
    };
    FailureCause::Trust(text)
}
