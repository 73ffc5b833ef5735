//! nsq: the depth of a channel.

mod query;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use futures::future::try_join_all;

use crate::prelude::*;

/// Maximum number of concurrent requests to nsqd.
const MAX_CONCURRENT_REQUESTS: usize = 16;
/// Maximum number of nsqd that nsqlookupd names: each is a server with connections of its own.
const MAX_PRODUCERS: usize = 1_000;

/// The scaler type `nsq`.
pub const TYPE: ScalerType = ScalerType {
    name: "nsq",
    about: "How many messages wait for a channel of an NSQ topic.",
    display: "nsqScaler",
    parameters: Parameters::PARAMETERS,
    build,
    samples: &[Sample::http(&[("nsqLookupdHTTPAddresses", "{}"), ("topic", "t"), ("channel", "c")], &[])],
    ..ScalerType::DEFAULT
};

crate::parameters! {
    /// Parameters of nsq.
    pub struct Parameters of "error parsing NSQ metadata: error parsing nsq metadata" {
        /// Hosts and ports of nsqlookupd, e.g. `nsqlookupd-0.nsq:4161,nsqlookupd-1.nsq:4161`.
        lookupds: Vec<String> = "nsqLookupdHTTPAddresses" in [Metadata, Environment], required;
        /// The topic.
        topic: String = "topic" in [Metadata, Environment], required;
        /// The channel. Until it exists, the messages of the topic count; while it is paused, the value is 0.
        channel: String = "channel" in [Metadata, Environment], required;
        /// Target number of messages per replica.
        depth_threshold: i64 = "depthThreshold" in [Metadata, Environment], default "10";
        /// The trigger is active above this number of messages.
        activation_depth_threshold: i64 = "activationDepthThreshold" in [Metadata, Environment], default "0";
        /// Uses HTTPS for nsqlookupd and nsqd.
        use_https: bool = "useHttps" in [Metadata, Environment], default "false";
        /// Accepts any server certificate.
        unsafe_ssl: bool = "unsafeSsl" in [Metadata, Environment], default "false";
    }
    check Parameters::check
}

impl Parameters {
    fn check(&mut self, _: &Trigger) -> Result<(), ParseError> {
        if self.lookupds.is_empty() {
            return Err("no nsqLookupdHTTPAddresses given".into());
        }
        if self.depth_threshold <= 0 {
            return Err("depthThreshold must be a positive integer".into());
        }
        if self.activation_depth_threshold < 0 {
            return Err("activationDepthThreshold must be greater than or equal to 0".into());
        }
        Ok(())
    }
}

fn build(trigger: &Trigger, backends: &Backends) -> Result<Arc<dyn Scaler>, ScalerError> {
    target_type(trigger)?;
    let parameters = Parameters::read(trigger)?;
    let name = format!("nsq-{}-{}", parameters.topic, parameters.channel);
    let spec = external(trigger, &name, whole(parameters.depth_threshold));
    let activation = parameters.activation_depth_threshold as f64;
    let source = HttpSource::new(parameters, trigger, backends);
    SingleMetricScaler::build(spec, activation, source)
}

impl HttpSource<Parameters> {
    fn scheme(&self) -> &'static str {
        if self.parameters.use_https { "https" } else { "http" }
    }

    async fn get(&self, url: String) -> Result<(u16, bytes::Bytes), ScalerError> {
        send(&self.web, HttpCall::get(url, self.within).unsafe_ssl(self.parameters.unsafe_ssl)).await
    }

    async fn producers(&self, lookupd: &str) -> Result<BTreeSet<String>, ScalerError> {
        let url = query::lookup_url(self.scheme(), lookupd, &self.parameters.topic);
        let (status, body) = self.get(url).await?;
        query::producers(status, &body).map_err(|error| error.inside(lookupd))
    }

    async fn depth(&self, nsqd: &str) -> Result<u64, ScalerError> {
        let Parameters { topic, channel, .. } = &self.parameters;
        let (status, body) = self.get(query::stats_url(self.scheme(), nsqd, topic)).await?;
        query::depth(status, &body, topic, channel).map_err(|error| error.inside(nsqd))
    }
}

impl ValueSource for HttpSource<Parameters> {
    fn value(&self) -> ScalerFuture<'_, f64> {
        Box::pin(async {
            // All requests must succeed, otherwise the sum would be too small.
            let mut nsqds = BTreeSet::new();
            for some in self.parameters.lookupds.chunks(MAX_CONCURRENT_REQUESTS) {
                let found = try_join_all(some.iter().map(|lookupd| self.producers(lookupd))).await?;
                nsqds.extend(found.into_iter().flatten());
                if nsqds.len() > MAX_PRODUCERS {
                    bail!("nsqlookupd names {} servers, more than {MAX_PRODUCERS}", nsqds.len());
                }
            }
            let nsqds: Vec<String> = nsqds.into_iter().collect();
            let mut depth = 0_u64;
            for some in nsqds.chunks(MAX_CONCURRENT_REQUESTS) {
                let depths = try_join_all(some.iter().map(|nsqd| self.depth(nsqd))).await?;
                depth = depths.into_iter().fold(depth, u64::saturating_add);
            }
            Ok(depth as f64)
        })
    }
}
