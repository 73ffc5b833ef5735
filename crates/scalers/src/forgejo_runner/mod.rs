//! forgejo-runner: the number of jobs that wait for a runner.

mod query;
#[cfg(test)]
mod tests;

use crate::prelude::*;

/// The scaler type `forgejo-runner`.
pub const TYPE: ScalerType = ScalerType {
    name: "forgejo-runner",
    about: "How many jobs of Forgejo Actions wait for a runner with some labels.",
    display: "forgejoRunnerScaler",
    parameters: Parameters::PARAMETERS,
    build,
    samples: &[Sample::http(&[("address", "http://{}"), ("labels", "l"), ("global", "true")], sample::TOKEN)],
    ..ScalerType::DEFAULT
};

crate::parameters! {
    /// Parameters of forgejo-runner. Jobs are those of a repository (`owner` and `repo`), of an organization (`org`), of the
    /// whole instance (`global`), or else of the token's user.
    pub struct Parameters of "error parsing Forgejo Runner metadata: error parsing forgejo metadata" {
        /// The token of the API.
        token: Secret = "token" in [Authentication, Environment], required;
        /// URL of Forgejo, e.g. `https://code.example.org`.
        address: String = "address" in [Metadata], required;
        /// The name of the runner; has no effect.
        name: Option<String> = "name" in [Metadata];
        /// The labels of the runners, e.g. `ubuntu-latest,docker`.
        labels: String = "labels" in [Metadata], required;
        /// Counts the jobs of the whole instance.
        global: bool = "global" in [Metadata], default "false";
        /// The owner of the repository.
        owner: String = "owner" in [Metadata];
        /// The organization.
        org: String = "org" in [Metadata];
        /// The repository.
        repo: String = "repo" in [Metadata];
    }
}

struct Forgejo {
    url: String,
    token: Secret,
    within: Duration,
    web: Arc<SharedHttpClient>,
}

fn build(trigger: &Trigger, backends: &Backends) -> Result<Arc<dyn Scaler>, ScalerError> {
    target_type(trigger)?;
    let parameters = Parameters::read(trigger)?;
    let url = query::url(&parameters);
    let source = Forgejo {
        url,
        token: parameters.token,
        within: trigger.http_timeout,
        web: Arc::clone(&backends.web),
    };
    Ok(Arc::new(SingleMetricScaler { spec: external(trigger, "forgejo", whole(1)), activation: 0.0, source }))
}

impl ValueSource for Forgejo {
    fn value(&self) -> ScalerFuture<'_, f64> {
        Box::pin(async {
            let call = HttpCall::get(&self.url, self.within);
            let call = call.header("authorization", &format!("token {}", self.token.reveal()))?;
            let (status, body) = send(&self.web, call).await?;
            query::jobs(status, &body)
        })
    }
}
