#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use x509_parser::prelude::{FromDer as _, X509Certificate};

use super::*;

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}

fn at(day: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + day * 86_400).unwrap()
}

fn shown(reloader: &CertificateReloader) -> Vec<u8> {
    reloader.shown.0.read().unwrap().cert[0].to_vec()
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// A directory that is gone afterwards.
struct Temporary(PathBuf);

impl Temporary {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("serve-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn self_made_certificate_is_renewed_in_time_by_the_same_authority() {
    let from = Certificate::SelfSigned(names(&["controller.plimsoll.svc", "10.0.0.1"]));
    let mut reloader = CertificateReloader::new(&from, provider(), at(0)).unwrap();
    let (first, authority) = (shown(&reloader), reloader.authority().unwrap().to_owned());
    let (_, read) = X509Certificate::from_der(&first).unwrap();
    assert_eq!(read.subject_alternative_name().unwrap().unwrap().value.general_names.len(), 2);
    let valid = read.validity();
    assert!(valid.not_before.timestamp() <= at(-1).as_second());
    assert!(valid.not_after.timestamp() > at(363).as_second());
    reloader.reload(at(240));
    assert_eq!(shown(&reloader), first);
    reloader.reload(at(244));
    assert_ne!(shown(&reloader), first);
    assert_eq!(reloader.authority(), Some(authority.as_str()));
    // A clock that was set back far must not leave one that is not good yet.
    let second = shown(&reloader);
    reloader.reload(at(0));
    assert_ne!(shown(&reloader), second);
}

#[test]
fn files_are_read_again_and_a_broken_pair_changes_nothing() {
    let maker = CertificateIssuer::new(&names(&["a"]), at(0)).unwrap();
    let (one, two) = (maker.make(at(0)).unwrap(), maker.make(at(0)).unwrap());
    let folder = Temporary::new("files");
    let from = Certificate::Files {
        certificate: folder.write("tls.crt", &one.certificate),
        key: folder.write("tls.key", &one.key),
        authority: Some(folder.write("ca.crt", b"ca")),
    };
    let mut reloader = CertificateReloader::new(&from, provider(), at(0)).unwrap();
    assert_eq!(reloader.authority(), Some("ca"));
    let first = shown(&reloader);
    // Half of the new pair, nonsense, nothing.
    folder.write("tls.crt", &two.certificate);
    reloader.reload(at(1));
    assert_eq!(shown(&reloader), first);
    folder.write("tls.key", b"nonsense");
    reloader.reload(at(1));
    assert_eq!(shown(&reloader), first);
    std::fs::remove_file(folder.0.join("tls.key")).unwrap();
    reloader.reload(at(1));
    assert_eq!(shown(&reloader), first);
    folder.write("tls.key", &two.key);
    reloader.reload(at(1));
    assert_ne!(shown(&reloader), first);
}

#[test]
fn unusable_settings_are_reported_at_the_start() {
    let folder = Temporary::new("none");
    let from = Certificate::Files {
        certificate: folder.write("tls.crt", b""),
        key: folder.0.join("tls.key"),
        authority: None,
    };
    let error = CertificateReloader::new(&from, provider(), at(0)).unwrap_err().to_string();
    assert!(error.contains("tls.key"), "{error}");
    folder.write("tls.key", b"");
    let error = CertificateReloader::new(&from, provider(), at(0)).unwrap_err().to_string();
    assert!(error.contains("no certificate in the file"), "{error}");
    let bad = Certificate::SelfSigned(names(&["not a name ä"]));
    assert!(CertificateReloader::new(&bad, provider(), at(0)).is_err());
}

#[test]
fn certificate_in_a_folder_is_read_again_and_renewed_in_time() {
    let folder = Temporary::new("kept");
    let path = folder.0.join("certs");
    let from = Certificate::Folder { path: path.clone(), names: names(&["localhost"]) };
    let open = |day| CertificateReloader::new(&from, provider(), at(day)).unwrap();
    let mut reloader = open(0);
    let (first, authority) = (shown(&reloader), reloader.authority().unwrap().to_owned());
    assert!(authority.starts_with("-----BEGIN CERTIFICATE-----"));
    assert_eq!(authority.matches("BEGIN").count(), 1);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(path.join("apiserver.key")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    // The next start finds it.
    let again = open(1);
    assert_eq!((shown(&again), again.authority()), (first.clone(), Some(authority.as_str())));
    // In time it is renewed by the same authority, and the new one is kept.
    reloader.reload(at(240));
    assert_eq!(shown(&reloader), first);
    reloader.reload(at(244));
    let second = shown(&reloader);
    assert_ne!(second, first);
    assert_eq!((shown(&open(245)), open(245).authority()), (second.clone(), Some(authority.as_str())));
    // One that is found too late, or cannot be read, is replaced.
    assert_ne!(shown(&open(244 + 300)), second);
    std::fs::write(path.join("apiserver.key"), b"nonsense").unwrap();
    let third = shown(&open(244 + 301));
    assert_eq!(shown(&open(244 + 302)), third);
    // A folder that cannot be written to is no reason not to serve.
    let from = Certificate::Folder { path: folder.write("file", b""), names: names(&["localhost"]) };
    assert!(CertificateReloader::new(&from, provider(), at(0)).is_ok());
}
