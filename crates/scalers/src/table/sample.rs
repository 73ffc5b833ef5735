//! Samples: valid triggers of each scaler type, which tests vary one parameter at a time.

/// Keys and values of parameters. `{}` stands for `host:port` of the test server, `{port}` for its port.
pub type SamplePairs = &'static [(&'static str, &'static str)];

/// The value of every password, key and token.
pub const SECRET: &str = "hunter2";
/// AWS credentials.
pub const AWS_KEYS: SamplePairs = &[("awsAccessKeyID", "id"), ("awsSecretAccessKey", SECRET)];
/// A service account key of Google Cloud.
pub const GOOGLE_KEY: SamplePairs =
    &[("GoogleApplicationCredentials", r#"{"type": "service_account", "private_key": "hunter2"}"#)];
/// Credentials of an Azure service principal.
pub const AZURE_PRINCIPAL: SamplePairs =
    &[("activeDirectoryClientId", "c"), ("activeDirectoryClientPassword", SECRET)];
/// The secret of an OAuth client.
pub const CLIENT_SECRET: SamplePairs = &[("clientSecret", SECRET)];
/// A user name and a password.
pub const USER_AND_PASSWORD: SamplePairs = &[("username", "u"), ("password", SECRET)];
/// A password.
pub const PASSWORD: SamplePairs = &[("password", SECRET)];
/// A token.
pub const TOKEN: SamplePairs = &[("token", SECRET)];
/// Metadata of both search products.
pub const SEARCH: SamplePairs = &[
    ("addresses", "http://{}"),
    ("index", "i"),
    ("query", r#"{"query": {}}"#),
    ("valueLocation", "hits.total.value"),
    ("targetValue", "5"),
    ("username", "u"),
];
/// Metadata of a RabbitMQ queue, for both protocols.
pub const QUEUE: SamplePairs = &[("queueName", "q"), ("mode", "QueueLength"), ("value", "5")];

/// How a scaler reaches its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// No network.
    Offline,
    /// HTTP.
    Http,
    /// HTTPS only.
    Https,
    /// Another protocol over TCP.
    Tcp,
    /// A server whose address cannot be configured.
    Fixed,
}

/// A valid trigger.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// How the scaler reaches its source.
    pub protocol: Protocol,
    /// `metadata` of the trigger.
    pub metadata: SamplePairs,
    /// Parameters of its TriggerAuthentication.
    pub auth: SamplePairs,
}

macro_rules! constructors {
    ($($name:ident $protocol:ident)*) => {$(
        /// A sample with this protocol.
        pub const fn $name(metadata: SamplePairs, auth: SamplePairs) -> Self {
            Self { protocol: Protocol::$protocol, metadata, auth }
        }
    )*};
}

impl Sample {
    constructors! { offline Offline http Http https Https tcp Tcp fixed Fixed }
}
