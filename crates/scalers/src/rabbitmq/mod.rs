//! rabbitmq: length and message rates of queues, over AMQP or the management API.
//!
//! ```text
//! query    addresses, responses and values, without IO
//! rules    rules over several parameters
//! amqp     AMQP client
//! ```

#[cfg(feature = "rabbitmq-amqp")]
mod amqp;
mod query;
mod rules;
#[cfg(test)]
mod tests;

use sources::http::{Auth, Endpoint};

use api::map::StringMap;

use crate::oauth;
use crate::parameters::QueryValues;
#[cfg(feature = "rabbitmq-amqp")]
use crate::pool::{Pool, Pools};
use crate::prelude::*;
use crate::responses::error_field;
#[cfg(feature = "rabbitmq-amqp")]
use crate::tls::{CertificateCheck, TlsSettings};
use crate::web::escaped;

#[cfg(feature = "rabbitmq-amqp")]
#[doc(hidden)]
pub use amqp::count_frames;
use query::{Mode, Operation, Queue, RabbitmqAddress};
use rules::{Measured, RabbitmqProtocol};

/// The scaler type `rabbitmq`.
pub const TYPE: ScalerType = ScalerType {
    name: "rabbitmq",
    about: "How long a queue of RabbitMQ is, or how fast messages come and go.",
    display: "rabbitMQScaler",
    parameters: Parameters::PARAMETERS,
    build,
    unit,
    samples: &[
        Sample::http(sample::QUEUE, &[("host", "http://u:hunter2@{}")]),
        Sample::tcp(sample::QUEUE, &[("host", "amqp://u:hunter2@{}")]),
    ],
    ..ScalerType::DEFAULT
};

/// Only queue lengths have a unit.
fn unit(metadata: &StringMap) -> &str {
    match metadata.get("mode").map_or("", String::as_str) {
        "" | "Unknown" | "QueueLength" => "messages",
        _ => "",
    }
}

crate::parameters! {
    /// The queue, and the address of RabbitMQ.
    pub struct Parameters of "error parsing RabbitMQ metadata: error parsing RabbitMQ metadata" {
        /// The queue; with `useRegex` a regular expression.
        queue: String = "queueName" in [Metadata], required;
        /// What is measured: `QueueLength`, `MessageRate`, `DeliverGetRate`, `PublishedToDeliveredRatio` or
        /// `ExpectedQueueConsumptionTime`; all but the first over HTTP only.
        mode: String = "mode" in [Metadata];
        /// Target number of messages per replica; use `mode` and `value` instead.
        queue_length: f64 = "queueLength" in [Metadata];
        /// Target value per replica.
        value: f64 = "value" in [Metadata];
        /// The trigger is active above this value.
        activation: f64 = "activationValue" in [Metadata], default "0";
        /// Address of RabbitMQ: `amqp://user:password@host:5672/vhost`, or of its management API
        /// `http://user:password@host:15672/vhost`; both also with TLS (`amqps`, `https`).
        host: Secret = "host" in [Metadata, Authentication, Environment], required;
        /// `amqp` or `http`; `auto` uses the scheme of the address.
        protocol: String = "protocol" in [Metadata, Authentication], default "auto";
        /// The virtual host; overrides the one in the address.
        virtual_host: String = "vhostName" in [Metadata, Authentication];
        /// Treats the queue as a regular expression; HTTP only.
        use_regex: bool = "useRegex" in [Metadata];
        /// Does not count messages that are delivered but not acknowledged; HTTP only.
        exclude_unacknowledged: bool = "excludeUnacknowledged" in [Metadata];
        /// Maximum number of queues that a regular expression matches.
        page_size: i64 = "pageSize" in [Metadata], default "100";
        /// How several queues are aggregated: `sum`, `avg` or `max`.
        operation: String = "operation" in [Metadata], default "sum";
        /// Timeout of requests to the management API.
        timeout: Duration = "timeout" in [Metadata];
        /// User name; overrides the one in the address.
        username: String = "username" in [Authentication, Environment];
        /// Password; overrides the one in the address.
        password: Secret = "password" in [Authentication, Environment];
        /// CA certificate that is trusted in addition to the system's (PEM).
        ca: String = "ca" in [Authentication];
        /// Client certificate (PEM). Over AMQP it authenticates the client if there is no user.
        certificate: String = "cert" in [Authentication];
        /// Private key of the client certificate (PEM).
        key: Secret = "key" in [Authentication];
        /// Password of the private key. Keys in PKCS #8 form can be opened (`BEGIN ENCRYPTED PRIVATE KEY`).
        key_password: Secret = "keyPassword" in [Authentication];
        /// `enable` or `disable`. Certificates are always used if given, and TLS is used if the scheme of the address
        /// requires it.
        tls: String = "tls" in [Authentication], default "disable";
        /// Accepts any server certificate.
        unsafe_ssl: bool = "unsafeSsl" in [Metadata];
        /// Resource of an Azure token; HTTP only. Not supported yet.
        workload_identity: String = "workloadIdentityResource" in [Authentication];
        /// OAuth2 token endpoint; HTTP only.
        oauth_token_uri: String = "oauthTokenURI" in [Authentication];
        /// OAuth2 client id.
        client_id: String = "clientID" in [Authentication];
        /// Its secret key.
        client_secret: Secret = "clientSecret" in [Authentication];
        /// OAuth2 scopes.
        scopes: Vec<String> = "scopes" | "scope" in [Authentication];
        /// Further parameters of the OAuth2 token request.
        endpoint_params: QueryValues = "endpointParams" in [Authentication];
        /// Authentication modes: `oauth`, `basic` or `tls`. Only `oauth` has an effect, which its parameters have, too.
        auth_modes: Vec<String> = "authModes" | "authMode" in [Metadata, Authentication], since_2_21;
    }
    check Parameters::check
}

fn build(trigger: &Trigger, backends: &Backends) -> Result<Arc<dyn Scaler>, ScalerError> {
    metric::target_type(trigger)?;
    let parameters = Parameters::read(trigger)?;
    let bad = |reason| scaler_error!("error parsing RabbitMQ metadata: {reason}");
    let Measured { mode, value } = parameters.measured().map_err(bad)?;
    let address = query::address(parameters.host.reveal()).map_err(|reason| scaler_error!("host: {reason}"));
    let source = match parameters.protocol().map_err(bad)? {
        RabbitmqProtocol::Http => Source::Http(Box::new(Http {
            client: parameters.client(),
            within: if parameters.timeout.is_zero() { trigger.http_timeout } else { parameters.timeout },
            web: Arc::clone(&backends.web),
            strict: backends.compat.is_strict(),
            address,
            parameters: parameters.clone(),
        })),
        RabbitmqProtocol::Amqp => Source::amqp(address, &parameters, backends),
    };
    Ok(Arc::new(Rabbitmq {
        spec: metric::external(
            trigger,
            &format!("rabbitmq-{}", escaped(&parameters.queue)),
            metric::milli(value),
        ),
        empty_takes_no_time: mode == Mode::ExpectedQueueConsumptionTime
            && trigger.behavior().rabbitmq_empty_queue_is_inactive,
        mode,
        activation: parameters.activation,
        source,
    }))
}

/// The scaler of one or several queues.
struct Rabbitmq {
    spec: MetricSpec,
    mode: Mode,
    /// Whether an empty queue is 0 and inactive, as in KEDA 2.21.
    empty_takes_no_time: bool,
    activation: f64,
    source: Source,
}

/// How queues are read.
enum Source {
    Http(Box<Http>),
    #[cfg(feature = "rabbitmq-amqp")]
    Amqp {
        pool: Result<Arc<Pool<amqp::AmqpServer>>, ScalerError>,
        queue: String,
    },
    #[cfg(not(feature = "rabbitmq-amqp"))]
    Amqp,
}

/// The management API.
struct Http {
    parameters: Parameters,
    address: Result<RabbitmqAddress, ScalerError>,
    client: Option<oauth::OAuthClient>,
    web: Arc<SharedHttpClient>,
    within: Duration,
    strict: bool,
}

impl Scaler for Rabbitmq {
    fn specs(&self) -> ScalerFuture<'_, Vec<MetricSpec>> {
        Box::pin(async move { Ok(vec![self.spec.clone()]) })
    }

    fn read<'a>(&'a self, metric: &'a str) -> ScalerFuture<'a, Reading> {
        Box::pin(async move {
            let fail = |error: ScalerError| error.inside("error inspecting RabbitMQ");
            let queue = self.source.read_queue().await.map_err(fail)?;
            // Since 2.21 an empty queue takes no time, whatever its delivery rate.
            if self.empty_takes_no_time && queue.messages == 0.0 {
                return Ok(Reading::one(metric, metric::milli(0.0), false));
            }
            let (value, active) = self.mode.measure(&queue, self.activation);
            Ok(Reading::one(metric, metric::milli(value), active))
        })
    }
}

impl Source {
    #[cfg(feature = "rabbitmq-amqp")]
    fn amqp(
        address: Result<RabbitmqAddress, ScalerError>,
        parameters: &Parameters,
        backends: &Backends,
    ) -> Self {
        let server = address.and_then(|address| {
            let (host, port) = address.host_and_port().map_err(ScalerError::new)?;
            let tls = match &*address.scheme {
                "amqps" => true,
                "amqp" => false,
                other => bail!("host: scheme {other} is not supported over AMQP"),
            };
            let given = (!parameters.username.is_empty())
                .then(|| (parameters.username.clone(), parameters.password.clone()));
            let login =
                given.or(address.user.as_ref().map(|(user, password)| (user.clone(), Secret::new(password))));
            let login = match login {
                Some((user, password)) => amqp::Login::Plain(user, password),
                None if !parameters.certificate.is_empty() => amqp::Login::Certificate,
                // The default user of a new server, which other clients use as well.
                None => amqp::Login::Plain("guest".to_owned(), Secret::new("guest")),
            };
            let virtual_host = match &*parameters.virtual_host {
                "" => address.virtual_host(),
                given => given.to_owned(),
            };
            let certificate_check =
                if parameters.unsafe_ssl { CertificateCheck::Anything } else { CertificateCheck::Full };
            let tls = tls.then(|| {
                let own = TlsSettings {
                    authorities: parameters.ca.clone(),
                    certificate: parameters.certificate.clone(),
                    key: parameters.key.clone(),
                    certificate_check,
                };
                own.trusting(&backends.web.settings().authorities)
            });
            Ok(amqp::AmqpServer { host, port, virtual_host, login, tls, dialer: backends.dialer.clone() })
        });
        Self::Amqp {
            pool: server.map(|server| backends.state::<Pools<amqp::AmqpServer>>().of(&server)),
            queue: parameters.queue.clone(),
        }
    }

    #[cfg(not(feature = "rabbitmq-amqp"))]
    fn amqp(_: Result<RabbitmqAddress, ScalerError>, _: &Parameters, _: &Backends) -> Self {
        Self::Amqp
    }

    async fn read_queue(&self) -> Result<Queue, ScalerError> {
        match self {
            Self::Http(http) => http.read_queue().await,
            #[cfg(feature = "rabbitmq-amqp")]
            Self::Amqp { pool, queue } => {
                let messages = pool.as_ref().map_err(Clone::clone)?.query(queue).await?;
                Ok(Queue { messages: messages.into(), ..Queue::default() })
            }
            #[cfg(not(feature = "rabbitmq-amqp"))]
            Self::Amqp => Err(scaler_error!(
                "this build does not speak AMQP: build with the feature rabbitmq-amqp, or use http"
            )),
        }
    }
}

impl Http {
    async fn read_queue(&self) -> Result<Queue, ScalerError> {
        let operation = Operation::parse(&self.parameters.operation).map_err(ScalerError::new)?;
        if !self.parameters.workload_identity.is_empty() {
            bail!("logging in with a token of Azure is not possible yet");
        }
        let address = self.address.as_ref().map_err(Clone::clone)?;
        if !matches!(&*address.scheme, "http" | "https") {
            let scheme = &address.scheme;
            bail!("host: scheme {scheme} is not supported over HTTP");
        }
        let pattern = self.parameters.use_regex;
        let page = pattern.then_some(self.parameters.page_size);
        let url = query::url(address, &self.parameters.virtual_host, &self.parameters.queue, page);
        let mut access = self.trust();
        access.auth = match &self.client {
            Some(client) => {
                let token = client.token(&self.web, self.within).await;
                Auth::Token(token.map_err(|error| error.inside("no token of OAuth2"))?)
            }
            None => self.login(address),
        };
        let answer = self.web.send(HttpCall::get(&*url, self.within).access(access)).await;
        let answer = answer?;
        if answer.status != 200 {
            let message = error_field(&answer.body, "/error");
            bail!("{url} answered {}: {message}", answer.status);
        }
        let exclude = self.parameters.exclude_unacknowledged;
        let queues = query::queues(&answer.body, pattern, exclude, self.strict).map_err(ScalerError::new)?;
        Ok(operation.merge(&queues))
    }

    fn login(&self, address: &RabbitmqAddress) -> Auth {
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
