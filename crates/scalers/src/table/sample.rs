//! Samples: valid triggers of each scaler type, which tests vary one parameter at a time.

/// Keys and values of parameters. `{}` stands for `host:port` of the test server, `{port}` for its port.
pub type Pairs = &'static [(&'static str, &'static str)];

/// The value of every password, key and token.
pub const SECRET: &str = "hunter2";
/// AWS credentials.
pub const AWS_KEYS: Pairs = &[("awsAccessKeyID", "id"), ("awsSecretAccessKey", SECRET)];
/// A service account key of Google Cloud.
pub const GOOGLE_KEY: Pairs =
    &[("GoogleApplicationCredentials", r#"{"type": "service_account", "private_key": "hunter2"}"#)];
/// Credentials of an Azure service principal.
pub const AZURE_PRINCIPAL: Pairs =
    &[("activeDirectoryClientId", "c"), ("activeDirectoryClientPassword", SECRET)];
/// The secret of an OAuth client.
pub const CLIENT_SECRET: Pairs = &[("clientSecret", SECRET)];
/// A user name and a password.
pub const USER_AND_PASSWORD: Pairs = &[("username", "u"), ("password", SECRET)];
/// A password.
pub const PASSWORD: Pairs = &[("password", SECRET)];
/// A token.
pub const TOKEN: Pairs = &[("token", SECRET)];
/// Metadata of both search products.
pub const SEARCH: Pairs = &[
    ("addresses", "http://{}"),
    ("index", "i"),
    ("query", r#"{"query": {}}"#),
    ("valueLocation", "hits.total.value"),
    ("targetValue", "5"),
    ("username", "u"),
];
/// Metadata of a RabbitMQ queue, for both protocols.
pub const QUEUE: Pairs = &[("queueName", "q"), ("mode", "QueueLength"), ("value", "5")];

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
    pub metadata: Pairs,
    /// Parameters of its TriggerAuthentication.
    pub auth: Pairs,
}

macro_rules! constructors {
    ($($name:ident $protocol:ident)*) => {$(
        /// A sample with this protocol.
        pub const fn $name(metadata: Pairs, auth: Pairs) -> Self {
            Self { protocol: Protocol::$protocol, metadata, auth }
        }
    )*};
}

impl Sample {
    constructors! { offline Offline http Http https Https tcp Tcp fixed Fixed }
}
