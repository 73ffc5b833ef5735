//! rabbitmq: how long queues are and how fast they move, over AMQP or the management API.
//!
//! ```text
//! query    addresses, answers and what they mean, without IO
//! rules    what parameters must be together
//! amqp     asks over AMQP
//! ```

#[cfg(feature = "rabbitmq-amqp")]
mod amqp;
mod query;
mod rules;
#[cfg(test)]
mod tests;

use std::sync::Arc;
#[cfg(feature = "rabbitmq-amqp")]
use std::sync::LazyLock;
use std::time::Duration;

use api::autoscaling::v2::MetricSpec;
use sources::http::{Auth, Endpoint};

use crate::backends::Backends;
use crate::parameters::{QueryValues, Secret};
#[cfg(feature = "rabbitmq-amqp")]
use crate::pool::{Pool, Pools};
use crate::table::Type;
#[cfg(feature = "rabbitmq-amqp")]
use crate::tls::{Belief, Tls};
use crate::web::{Call, Web, escaped};
use crate::{Answer, Error, Reading, Scaler, Trigger, metric, oauth};

use query::{Address, Mode, Operation, Queue};
use rules::{Measured, Protocol};

/// rabbitmq.
pub const TYPE: Type = Type {
    name: "rabbitmq",
    about: "How long a queue of RabbitMQ is, or how fast messages come and go.",
    display: "rabbitMQScaler",
    parameters: Parameters::PARAMETERS,
    push: false,
    build,
};

crate::parameters! {
    /// A queue, and where to ask for it.
    pub struct Parameters of "error parsing RabbitMQ metadata: error parsing RabbitMQ metadata" {
        /// The queue; with `useRegex` a pattern of names.
        queue: String = "queueName" in [Metadata], required;
        /// Where RabbitMQ is: `amqp://user:password@host:5672/vhost`, or its management API
        /// `http://user:password@host:15672/vhost`; both also with TLS (`amqps`, `https`).
        host: Secret = "host" in [Metadata, Authentication, Environment], required;
        /// `amqp` or `http`; `auto` takes what the address says.
        protocol: String = "protocol" in [Metadata, Authentication], default "auto";
        /// What is measured: `QueueLength`, `MessageRate`, `DeliverGetRate`, `PublishedToDeliveredRatio` or
        /// `ExpectedQueueConsumptionTime`; all but the first over HTTP only.
        mode: String = "mode" in [Metadata];
        /// How much of it one replica is to have.
        value: f64 = "value" in [Metadata];
        /// With more than this it is active.
        activation: f64 = "activationValue" in [Metadata], default "0";
        /// How many messages one replica is to have; use `mode` and `value` instead.
        queue_length: f64 = "queueLength" in [Metadata];
        /// The virtual host, instead of the address's.
        virtual_host: String = "vhostName" in [Metadata, Authentication];
        /// Whether the queue is a pattern of names; HTTP only.
        use_regex: bool = "useRegex" in [Metadata];
        /// Whether messages that somebody took but did not acknowledge are left out; HTTP only.
        exclude_unacknowledged: bool = "excludeUnacknowledged" in [Metadata];
        /// How many queues a pattern may take.
        page_size: i64 = "pageSize" in [Metadata], default "100";
        /// What several queues become: their `sum`, `avg` or `max`.
        operation: String = "operation" in [Metadata], default "sum";
        /// How long the management API may take.
        timeout: Duration = "timeout" in [Metadata];
        /// User, instead of the address's.
        username: String = "username" in [Authentication, Environment];
        /// Password, instead of the address's.
        password: Secret = "password" in [Authentication, Environment];
        /// `enable` or `disable`. Certificates that are given are used in any case, and TLS is spoken where the address says
        /// so.
        tls: String = "tls" in [Authentication], default "disable";
        /// An authority that is trusted besides the system's (PEM).
        ca: String = "ca" in [Authentication];
        /// Our certificate (PEM). Over AMQP it shows who we are if there is no user.
        certificate: String = "cert" in [Authentication];
        /// Its key (PEM).
        key: Secret = "key" in [Authentication];
        /// The password of the key. Encrypted keys are refused: a Secret is where a key is kept safe.
        key_password: Secret = "keyPassword" in [Authentication];
        /// Whether any certificate of the server will do.
        unsafe_ssl: bool = "unsafeSsl" in [Metadata];
        /// What a token of Azure is for; HTTP only. Not possible yet.
        workload_identity: String = "workloadIdentityResource" in [Authentication];
        /// Where OAuth2 has its tokens from; HTTP only.
        oauth_token_uri: String = "oauthTokenURI" in [Authentication];
        /// The client of OAuth2.
        client_id: String = "clientID" in [Authentication];
        /// Its secret.
        client_secret: Secret = "clientSecret" in [Authentication];
        /// The scopes that OAuth2 asks for.
        scopes: Vec<String> = "scopes" in [Authentication];
        /// What else OAuth2 sends when it asks for a token.
        endpoint_params: QueryValues = "endpointParams" in [Authentication];
    }
    check Parameters::check
}

fn build(trigger: &Trigger, backends: &Backends) -> Result<Arc<dyn Scaler>, Error> {
    let parameters = Parameters::read(trigger)?;
    metric::target_type(trigger)?;
    let bad = |reason| Error::new(format!("error parsing RabbitMQ metadata: {reason}"));
    let Measured { mode, value } = parameters.measured().map_err(bad)?;
    let address = query::address(parameters.host.reveal()).map_err(|reason| format!("host: {reason}"));
    let source = match parameters.protocol().map_err(bad)? {
        Protocol::Http => Source::Http(Box::new(Http {
            client: parameters.client(),
            within: if parameters.timeout.is_zero() { trigger.http_timeout } else { parameters.timeout },
            web: Arc::clone(&backends.web),
            strict: backends.compat.is_strict(),
            address,
            parameters: parameters.clone(),
        })),
        Protocol::Amqp => Source::amqp(address, &parameters, &backends.web.settings().authorities),
    };
    Ok(Arc::new(Rabbitmq {
        spec: metric::external(
            trigger,
            &format!("rabbitmq-{}", escaped(&parameters.queue)),
            metric::milli(value),
        ),
        mode,
        activation: parameters.activation,
        source,
    }))
}

/// Queues.
struct Rabbitmq {
    spec: MetricSpec,
    mode: Mode,
    activation: f64,
    source: Source,
}

/// How they are asked for.
enum Source {
    Http(Box<Http>),
    #[cfg(feature = "rabbitmq-amqp")]
    Amqp {
        pool: Result<Arc<Pool<amqp::Server>>, String>,
        queue: String,
    },
    #[cfg(not(feature = "rabbitmq-amqp"))]
    Amqp,
}

/// The management API.
struct Http {
    parameters: Parameters,
    address: Result<Address, String>,
    client: Option<oauth::Client>,
    web: Arc<Web>,
    within: Duration,
    strict: bool,
}

impl Scaler for Rabbitmq {
    fn specs(&self) -> Answer<'_, Vec<MetricSpec>> {
        Box::pin(async move { Ok(vec![self.spec.clone()]) })
    }

    fn read<'a>(&'a self, metric: &'a str) -> Answer<'a, Reading> {
        Box::pin(async move {
            let fail = |reason| Error::new(format!("error inspecting RabbitMQ: {reason}"));
            let queue = self.source.ask().await.map_err(fail)?;
            let (value, active) = self.mode.measure(&queue, self.activation);
            Ok(Reading::one(metric, metric::milli(value), active))
        })
    }
}

impl Source {
    #[cfg(feature = "rabbitmq-amqp")]
    fn amqp(address: Result<Address, String>, parameters: &Parameters, authorities: &[u8]) -> Self {
        static POOLS: LazyLock<Pools<amqp::Server>> = LazyLock::new(Pools::default);
        let server = address.and_then(|address| {
            let (host, port) = address.place()?;
            let tls = match &*address.scheme {
                "amqps" => true,
                "amqp" => false,
                other => return Err(format!("host: {other}:// is not spoken over AMQP")),
            };
            let given = (!parameters.username.is_empty())
                .then(|| (parameters.username.clone(), parameters.password.clone()));
            let login =
                given.or(address.user.as_ref().map(|(user, password)| (user.clone(), Secret::new(password))));
            let login = match login {
                Some((user, password)) => amqp::Login::Plain(user, password),
                None if !parameters.certificate.is_empty() => amqp::Login::Certificate,
                // What a new server has, and what other clients say if they are told nothing.
                None => amqp::Login::Plain("guest".to_owned(), Secret::new("guest")),
            };
            let virtual_host = match &*parameters.virtual_host {
                "" => address.virtual_host(),
                given => given.to_owned(),
            };
            let belief = if parameters.unsafe_ssl { Belief::Anything } else { Belief::Full };
            let tls = tls.then(|| {
                let own = Tls {
                    authorities: parameters.ca.clone(),
                    certificate: parameters.certificate.clone(),
                    key: parameters.key.clone(),
                    belief,
                };
                own.trusting(authorities)
            });
            Ok(amqp::Server { host, port, virtual_host, login, tls })
        });
        Self::Amqp { pool: server.map(|server| POOLS.of(&server)), queue: parameters.queue.clone() }
    }

    #[cfg(not(feature = "rabbitmq-amqp"))]
    fn amqp(_: Result<Address, String>, _: &Parameters, _: &[u8]) -> Self {
        Self::Amqp
    }

    async fn ask(&self) -> Result<Queue, String> {
        match self {
            Self::Http(http) => http.ask().await,
            #[cfg(feature = "rabbitmq-amqp")]
            Self::Amqp { pool, queue } => {
                let messages =
                    pool.as_ref().map_err(Clone::clone)?.ask(queue).await.map_err(|error| error.0)?;
                Ok(Queue { messages: messages.into(), ..Queue::default() })
            }
            #[cfg(not(feature = "rabbitmq-amqp"))]
            Self::Amqp => {
                Err("this build does not speak AMQP: build with the feature rabbitmq-amqp, or use http"
                    .to_owned())
            }
        }
    }
}

impl Http {
    async fn ask(&self) -> Result<Queue, String> {
        let operation = Operation::parse(&self.parameters.operation)?;
        if !self.parameters.workload_identity.is_empty() {
            return Err("logging in with a token of Azure is not possible yet".to_owned());
        }
        let address = self.address.as_ref().map_err(Clone::clone)?;
        if !matches!(&*address.scheme, "http" | "https") {
            return Err(format!("host: {}:// is not spoken over HTTP", address.scheme));
        }
        let pattern = self.parameters.use_regex;
        let page = pattern.then_some(self.parameters.page_size);
        let url = query::url(address, &self.parameters.virtual_host, &self.parameters.queue, page);
        let mut access = self.trust();
        access.auth = match &self.client {
            Some(client) => {
                let token = client.token(&self.web, self.within).await;
                Auth::Token(token.map_err(|error| format!("no token of OAuth2: {error}"))?)
            }
            None => self.login(address),
        };
        let answer = self.web.ask(Call::get(&*url, self.within).access(access)).await;
        let answer = answer.map_err(|error| error.to_string())?;
        if answer.status != 200 {
            let said: String = String::from_utf8_lossy(&answer.body).chars().take(300).collect();
            return Err(format!("{url} answered {}: {}", answer.status, said.trim()));
        }
        let exclude = self.parameters.exclude_unacknowledged;
        let queues = query::queues(&answer.body, pattern, exclude, self.strict)?;
        Ok(operation.merge(&queues))
    }

    fn login(&self, address: &Address) -> Auth {
        if !self.parameters.username.is_empty() {
            let password = self.parameters.password.clone();
            return Auth::Basic { user: self.parameters.username.clone(), password };
        }
        match &address.user {
            Some((user, password)) => Auth::Basic { user: user.clone(), password: Secret::new(password) },
            None => Auth::None,
        }
    }

    fn trust(&self) -> Endpoint {
        let Parameters { ca, certificate, key, unsafe_ssl, .. } = &self.parameters;
        Endpoint {
            insecure: *unsafe_ssl,
            system_roots_too: true,
            ca_bundle: (!ca.is_empty()).then(|| ca.clone().into_bytes()),
            certificate: (!certificate.is_empty()).then(|| certificate.clone().into_bytes()),
            key: (!key.reveal().is_empty()).then(|| key.clone()),
            ..Endpoint::default()
        }
    }
}
