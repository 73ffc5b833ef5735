//! postgresql: the number returned by a query.
//!
//! ```text
//! dsn      connection strings, without IO
//! query    decoding of results, without IO
//! client   connections, shared by triggers with the same server and credentials
//! wake     waits for notifications of a channel
//! ```

#[cfg(feature = "postgresql")]
mod client;
mod dsn;
#[cfg(feature = "postgresql")]
mod metered;
mod query;
#[cfg(test)]
mod tests;
#[cfg(feature = "postgresql")]
mod wake;

#[cfg(feature = "postgresql")]
use crate::WakeFuture;
use crate::pool::{Pool, Pools};
#[cfg(feature = "postgresql")]
use crate::prelude::*;
#[cfg(feature = "postgresql")]
use crate::wake::WakeStreams;

#[cfg(feature = "postgresql")]
use client::PostgresServer;
use dsn::Dsn;
#[cfg(feature = "postgresql")]
use wake::Notifications;

/// Whether a text is a connection string, for fuzzing.
#[doc(hidden)]
pub fn is_connection_string(text: &str) -> bool {
    Dsn::parse(text).is_ok()
}

/// The scaler type `postgresql`.
pub const TYPE: ScalerType = ScalerType {
    name: "postgresql",
    about: "The number in the first column of the first row of a PostgreSQL query.",
    display: "postgreSQLScaler",
    parameters: Parameters::PARAMETERS,
    wakes: WakeMode::Annotated,
    build,
    samples: &[Sample::tcp(
        &[
            ("query", "SELECT 1"),
            ("targetQueryValue", "5"),
            ("host", "127.0.0.1"),
            ("port", "{port}"),
            ("userName", "u"),
            ("dbName", "d"),
            ("sslmode", "disable"),
        ],
        sample::PASSWORD,
    )],
    ..ScalerType::DEFAULT
};

crate::parameters! {
    /// The query and the connection.
    pub struct Parameters of "error parsing postgreSQL metadata: error parsing postgresql metadata" {
        /// Target value per replica.
        target: f64 = "targetQueryValue" in [Metadata];
        /// The trigger is active above this value.
        activation: f64 = "activationTargetQueryValue" in [Metadata], default "0";
        /// A connection string, `postgresql://user:password@host:5432/db?sslmode=verify-full` or
        /// `host=… port=… user=…`; replaces host, port, user name, database, sslmode and password.
        connection: Secret = "connection" in [Authentication, Environment];
        /// The query; the first column of its first row must be a number.
        query: String = "query" in [Metadata], required;
        /// Host.
        host: String = "host" in [Authentication, Metadata];
        /// Port.
        port: String = "port" in [Authentication, Metadata];
        /// User name.
        user: String = "userName" in [Authentication, Metadata];
        /// Database.
        database: String = "dbName" in [Authentication, Metadata];
        /// `disable`, `allow`, `prefer`, `require`, `verify-ca` or `verify-full`.
        sslmode: String = "sslmode" in [Authentication, Metadata];
        /// Password.
        password: Secret = "password" in [Authentication, Environment];
        /// A channel of notifications (`NOTIFY`) that wake the object, if its annotation `plimsoll.dev/wake` is `true`. KEDA ignores it.
        wake_channel: String = "wakeChannel" in [Metadata];
    }
    check Parameters::check
}

impl Parameters {
    fn check(&mut self, _: &Trigger) -> Result<(), ParseError> {
        if !self.connection.reveal().is_empty() {
            return Ok(());
        }
        let needed = [
            ("host", &self.host),
            ("port", &self.port),
            ("userName", &self.user),
            ("dbName", &self.database),
            ("sslmode", &self.sslmode),
        ];
        match needed.iter().find(|(_, value)| value.is_empty()) {
            Some((name, _)) => Err(format!("no {name} given").into()),
            None => Ok(()),
        }
    }

    /// The parsed connection string. Errors in it are reported when the scaler is read, because KEDA accepts such triggers.
    fn dsn(&self) -> Result<Dsn, ParseError> {
        if self.connection.reveal().is_empty() {
            let Self { host, port, user, database, sslmode, password, .. } = self;
            Dsn::of_parts(host, port, user, password, database, sslmode)
        } else {
            Dsn::parse(self.connection.reveal())
        }
    }
}

fn build(trigger: &Trigger, backends: &Backends) -> Result<Arc<dyn Scaler>, ScalerError> {
    metric::target_type(trigger)?;
    let parameters = Parameters::read(trigger)?;
    if parameters.target == 0.0 && !trigger.feeds_formula {
        bail!("error parsing postgreSQL metadata: no targetQueryValue given");
    }
    #[cfg(feature = "postgresql")]
    return Ok(Arc::new(Postgresql::new(trigger, &parameters, backends)));
    #[cfg(not(feature = "postgresql"))]
    {
        let _ = (parameters.dsn(), backends);
        Err(scaler_error!("this build has no client for PostgreSQL: build with the feature postgresql"))
    }
}

/// A query.
#[cfg(feature = "postgresql")]
struct Postgresql {
    spec: MetricSpec,
    query: String,
    activation: f64,
    pool: Result<Arc<Pool<PostgresServer>>, ScalerError>,
    wake_channel: String,
    streams: WakeStreams<Notifications>,
}

#[cfg(feature = "postgresql")]
impl Postgresql {
    fn new(trigger: &Trigger, parameters: &Parameters, backends: &Backends) -> Self {
        let pool = if trigger.identity.provider == "azure-workload" && parameters.password.reveal().is_empty()
        {
            Err(scaler_error!("logging in with azure-workload is not possible yet: give a password"))
        } else {
            parameters.dsn().map_err(ScalerError::new).map(|dsn| {
                let server = PostgresServer {
                    dsn,
                    authorities: backends.web.settings().authorities.clone(),
                    dialer: backends.dialer.clone(),
                    files: backends.files.clone(),
                };
                backends.state::<Pools<PostgresServer>>().of_namespace(&trigger.owner.namespace, &server)
            })
        };
        Self {
            spec: metric::external(trigger, "postgresql", metric::milli(parameters.target)),
            query: parameters.query.clone(),
            activation: parameters.activation,
            pool,
            wake_channel: parameters.wake_channel.clone(),
            streams: WakeStreams::new(trigger, backends),
        }
    }
}

#[cfg(feature = "postgresql")]
impl Scaler for Postgresql {
    fn specs(&self) -> ScalerFuture<'_, Vec<MetricSpec>> {
        Box::pin(async move { Ok(vec![self.spec.clone()]) })
    }

    fn read<'a>(&'a self, metric: &'a str) -> ScalerFuture<'a, Reading> {
        Box::pin(async move {
            let fail =
                |error: ScalerError| error.inside("error inspecting postgreSQL: could not query postgreSQL");
            let pool = self.pool.as_ref().map_err(|error| fail(error.clone()))?;
            let value = pool.query(&self.query).await.map_err(fail)?;
            Ok(Reading::one(metric, metric::milli(value), value > self.activation))
        })
    }

    fn wake(self: Arc<Self>, query_now: tokio::sync::mpsc::Sender<()>) -> Option<WakeFuture> {
        let pool = self.pool.as_ref().ok().filter(|_| !self.wake_channel.is_empty())?;
        let source = Notifications { server: pool.server().clone(), channel: self.wake_channel.clone() };
        Some(self.streams.follow(source, query_now))
    }
}
