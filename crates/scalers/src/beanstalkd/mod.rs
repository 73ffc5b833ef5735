//! beanstalkd: the number of jobs in a tube.

mod query;
#[cfg(test)]
mod tests;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::timeout;

use crate::dial::Dialer;
use crate::prelude::*;
use crate::web::escaped;
use query::{DecodeProgress, MAX_RESPONSE_BYTES};

/// KEDA's default timeout, which is too short for many networks.
const KEDA_DEFAULT_TIMEOUT: Duration = Duration::from_millis(30);

/// The scaler type `beanstalkd`.
pub const TYPE: ScalerType = ScalerType {
    name: "beanstalkd",
    about: "How many jobs are in a tube of beanstalkd.",
    display: "BeanstalkdScaler",
    parameters: Parameters::PARAMETERS,
    build,
    samples: &[Sample::tcp(&[("server", "{}"), ("tube", "t"), ("value", "5")], &[])],
    ..ScalerType::DEFAULT
};

crate::parameters! {
    /// Parameters of beanstalkd.
    pub struct Parameters of "error parsing beanstalkd metadata: error parsing beanstalkd metadata" {
        /// Host and port, e.g. `beanstalkd.shop:11300`.
        server: String = "server" in [Metadata], required;
        /// The tube.
        tube: String = "tube" in [Metadata], required;
        /// Target number of jobs per replica; counts ready and reserved jobs.
        value: f64 = "value" in [Metadata], required;
        /// The trigger is active above this number of jobs.
        activation_value: f64 = "activationValue" in [Metadata], default "0";
        /// Also counts delayed jobs.
        include_delayed: bool = "includeDelayed" in [Metadata], default "false";
        /// Timeout of the request; by default that of HTTP requests.
        timeout: Option<Duration> = "timeout" in [Metadata];
    }
}

struct Beanstalkd {
    dialer: Dialer,
    server: String,
    tube: String,
    include_delayed: bool,
    within: Duration,
}

fn build(trigger: &Trigger, backends: &Backends) -> Result<Arc<dyn Scaler>, ScalerError> {
    target_type(trigger)?;
    let parameters = Parameters::read(trigger)?;
    let Parameters { server, tube, value, activation_value: activation, include_delayed, timeout } =
        parameters;
    let spec = external(trigger, &format!("beanstalkd-{}", escaped(&tube)), milli(value));
    let usual = if backends.compat.is_strict() { KEDA_DEFAULT_TIMEOUT } else { trigger.http_timeout };
    let within = timeout.filter(|time| !time.is_zero()).unwrap_or(usual);
    let dialer = backends.dialer.clone();
    SingleMetricScaler::build(spec, activation, Beanstalkd { dialer, server, tube, include_delayed, within })
}

impl Beanstalkd {
    async fn jobs(&self) -> Result<u64, ScalerError> {
        let command = query::command(&self.tube)?;
        let mut stream = self.dialer.connect_to(&self.server).await?;
        stream.write_all(command.as_bytes()).await?;
        let (mut bytes, mut piece) = (Vec::new(), [0; 4096]);
        loop {
            let read = stream.read(&mut piece).await?;
            bytes.extend_from_slice(piece.get(..read).unwrap_or_default());
            match query::decode(&bytes, self.include_delayed)? {
                DecodeProgress::Jobs(jobs) => return Ok(jobs),
                DecodeProgress::Incomplete if read == 0 => {
                    bail!("the connection broke off");
                }
                DecodeProgress::Incomplete if bytes.len() > MAX_RESPONSE_BYTES + 64 => {
                    bail!("the answer is too large");
                }
                DecodeProgress::Incomplete => {}
            }
        }
    }
}

impl ValueSource for Beanstalkd {
    fn value(&self) -> ScalerFuture<'_, f64> {
        Box::pin(async {
            let late = |_| scaler_error!("timed out after {:?}", self.within);
            let jobs = timeout(self.within, self.jobs()).await.map_err(late).and_then(|jobs| jobs);
            jobs.map(|jobs| jobs as f64).map_err(|error| error.inside(&self.server))
        })
    }
}
