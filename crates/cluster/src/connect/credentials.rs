//! Our credentials for the API server and the authorities of its certificate, for clients of other servers that accept them:
//! kubelets, and a Prometheus behind the cluster's authentication.

use std::fmt;
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::Config;
use kube::config::AuthInfo;
use serde_json::Value;

/// Client credentials and trusted authorities.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Credentials {
    /// The CA certificates of the server (PEM); none for the system's.
    pub authority: Option<Material>,
    /// Whether the server's certificate is not verified.
    pub insecure: bool,
    /// Our certificate and its key (PEM).
    pub certificate: Option<(Material, Material)>,
    /// Our bearer token.
    pub token: Option<Material>,
}

/// A certificate, key or token.
#[derive(Clone, PartialEq, Eq)]
pub enum Material {
    /// The path of a file, which may change.
    File(PathBuf),
    /// The bytes themselves.
    Given(Vec<u8>),
}

impl fmt::Debug for Material {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.fmt(f),
            Self::Given(_) => f.write_str("(given)"),
        }
    }
}

impl Credentials {
    /// The credentials of a client configuration, without tokens of credential plugins (`exec`).
    pub(super) fn of(config: &Config) -> Self {
        let given = config.root_cert.as_ref().map(|certificates| Material::Given(pem(certificates)));
        let fields = UserFields::of(&config.auth_info);
        let certificate = fields.material("client-certificate-data", "client-certificate");
        let key = fields.material("client-key-data", "client-key");
        let token = fields.text("token").map(|token| Material::Given(token.into_bytes()));
        Self {
            authority: config.root_cert_file.clone().map(Material::File).or(given),
            insecure: config.accept_invalid_certs,
            certificate: certificate.zip(key),
            token: token.or_else(|| fields.text("tokenFile").map(|path| Material::File(path.into()))),
        }
    }
}

/// The user of a kubeconfig as JSON: kube's type hides the secrets, but serializes them.
struct UserFields(Value);

impl UserFields {
    fn of(user: &AuthInfo) -> Self {
        Self(serde_json::to_value(user).unwrap_or_default())
    }

    fn text(&self, key: &str) -> Option<String> {
        self.0.get(key).and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned)
    }

    /// A value given as base64, else one in a file.
    fn material(&self, data: &str, file: &str) -> Option<Material> {
        let given = self.text(data).and_then(|text| STANDARD.decode(text.trim()).ok()).map(Material::Given);
        given.or_else(|| self.text(file).map(|path| Material::File(path.into())))
    }
}

/// DER certificates as PEM.
fn pem(certificates: &[Vec<u8>]) -> Vec<u8> {
    let mut text = String::new();
    for certificate in certificates {
        text.push_str("-----BEGIN CERTIFICATE-----\n");
        let encoded = STANDARD.encode(certificate);
        for (index, letter) in encoded.chars().enumerate() {
            if index > 0 && index % 64 == 0 {
                text.push('\n');
            }
            text.push(letter);
        }
        text.push_str("\n-----END CERTIFICATE-----\n");
    }
    text.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(user: &str) -> Credentials {
        let mut config = Config::new("https://localhost".parse().unwrap());
        config.auth_info = serde_json::from_str(user).unwrap();
        config.root_cert = Some(vec![vec![0; 60]]);
        Credentials::of(&config)
    }

    #[test]
    fn inline_values_take_precedence_over_files() {
        let found = of(
            r#"{"token":"t","tokenFile":"/f","client-certificate-data":"Y2VydA==","client-certificate":"/c",
            "client-key":"/k"}"#,
        );
        assert_eq!(found.token, Some(Material::Given(b"t".to_vec())));
        assert_eq!(found.certificate, Some((Material::Given(b"cert".to_vec()), Material::File("/k".into()))));
        assert_eq!(of(r#"{"tokenFile":"/f"}"#).token, Some(Material::File("/f".into())));
        assert_eq!(of("{}").certificate, None);
        assert!(!format!("{found:?}").contains("116"), "{found:?}");
    }

    #[test]
    fn certificates_are_lines_of_64_letters() {
        let Some(Material::Given(text)) = of("{}").authority else { unreachable!() };
        let text = String::from_utf8(text).unwrap();
        let lines: Vec<usize> = text.lines().map(str::len).collect();
        assert_eq!(lines, [27, 64, 16, 25], "{text}");
    }
}
