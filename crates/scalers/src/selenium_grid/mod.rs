//! selenium-grid: the number of nodes needed for running and queued sessions.

mod query;
#[cfg(test)]
mod tests;

use query::Node;

use crate::prelude::*;

/// The scaler type `selenium-grid`.
pub const TYPE: ScalerType = ScalerType {
    name: "selenium-grid",
    about: "How many nodes a Selenium Grid needs for a kind of browser: those at work and those waited for.",
    display: "seleniumGridScaler",
    parameters: Parameters::PARAMETERS,
    build,
    samples: &[Sample::http(&[("url", "http://{}/graphql"), ("browserName", "chrome")], &[])],
    ..ScalerType::DEFAULT
};

crate::parameters! {
    /// Parameters of selenium-grid. A request in the queue counts if its browser, version and platform equal those given here
    /// (or are missing in both).
    pub struct Parameters of "error parsing prometheus metadata" {
        /// GraphQL URL of the grid, e.g. `http://selenium-hub:4444/graphql`.
        url: String = "url" in [Authentication, Metadata], required;
        /// The browser, e.g. `chrome`.
        browser_name: String = "browserName" in [Metadata];
        /// Name of the browser in running sessions, e.g. `msedge` for `MicrosoftEdge`.
        session_browser_name: String = "sessionBrowserName" in [Metadata];
        /// The version of the browser, e.g. `131.0`.
        browser_version: String = "browserVersion" in [Metadata];
        /// The platform, e.g. `linux`.
        platform_name: String = "platformName" in [Metadata];
        /// The trigger is active above this number of nodes.
        activation_threshold: i64 = "activationThreshold" in [Metadata], default "0";
        /// Accepts any server certificate.
        unsafe_ssl: bool = "unsafeSsl" in [Metadata], default "false";
        /// Maximum number of sessions per node.
        node_max_sessions: i64 = "nodeMaxSessions" in [Metadata], default "1";
        /// The nodes support managed downloads; requests that need them do not count otherwise.
        enable_managed_downloads: bool = "enableManagedDownloads" in [Metadata], default "true";
        /// `false` leaves out running sessions, for ScaledJobs with the strategies `accurate` and `eager`.
        include_ongoing: bool = "includeOngoingSessions" in [Metadata], default "true", since_2_21;
        /// Further capabilities that requests must have, as JSON.
        capabilities: Option<String> = "capabilities" in [Metadata];
        /// User name.
        username: Option<String> = "username" in [Authentication, Environment];
        /// Password.
        password: Secret = "password" in [Authentication, Environment];
        /// Type of the access token, e.g. `Bearer`.
        auth_type: Option<String> = "authType" in [Authentication, Metadata, Environment];
        /// The access token.
        access_token: Secret = "accessToken" in [Authentication, Environment];
    }
}

struct Grid {
    parameters: Parameters,
    /// The nodes; an error if the capabilities are invalid, which KEDA notices only when it queries the grid.
    node: Result<Node, ScalerError>,
    within: Duration,
    web: Arc<SharedHttpClient>,
}

fn build(trigger: &Trigger, backends: &Backends) -> Result<Arc<dyn Scaler>, ScalerError> {
    const PREFIX: &str = "error parsing selenium grid metadata";
    target_type(trigger)?;
    let parameters = Parameters::read(trigger).map_err(|error| error.inside(PREFIX))?;
    let Parameters { browser_name, browser_version, platform_name, .. } = &parameters;
    let mut name = "selenium-grid".to_owned();
    for part in [browser_name, browser_version, platform_name] {
        if !part.is_empty() {
            name.push_str(&format!("-{part}"));
        }
    }
    let capabilities = match &parameters.capabilities {
        Some(text) => serde_json::from_str(text)
            .map_err(|error| scaler_error!("{PREFIX}: capabilities must be a JSON object: {error}")),
        None => Ok(serde_json::Map::new()),
    };
    let node = capabilities.map(|capabilities| Node {
        browser: browser_name.clone(),
        session_browser: parameters.session_browser_name.clone(),
        version: browser_version.clone(),
        platform: platform_name.clone(),
        downloads: parameters.enable_managed_downloads,
        // Where the parameter is not read it is not given, and running sessions count.
        ongoing: parameters.include_ongoing,
        capabilities,
        sessions: u64::try_from(parameters.node_max_sessions).unwrap_or(1).max(1),
    });
    let activation = parameters.activation_threshold as f64;
    let source = Grid { parameters, node, within: trigger.http_timeout, web: Arc::clone(&backends.web) };
    Ok(Arc::new(SingleMetricScaler { spec: external(trigger, &name, whole(1)), activation, source }))
}

impl ValueSource for Grid {
    fn value(&self) -> ScalerFuture<'_, f64> {
        Box::pin(async {
            let node = self.node.as_ref().map_err(Clone::clone)?;
            let Parameters { url, unsafe_ssl, username, password, auth_type, access_token, .. } =
                &self.parameters;
            let call = HttpCall::post_query(url, query::request_body(), self.within).unsafe_ssl(*unsafe_ssl);
            let mut call = call.header("content-type", "application/json")?;
            let token = access_token.reveal();
            if let (Some(type_), false) = (auth_type, token.is_empty()) {
                call = call.header("authorization", &format!("{type_} {token}"))?;
            } else if let Some(user) = username {
                call = call.basic(user, password);
            }
            let (status, body) = send(&self.web, call).await?;
            query::nodes(status, &body, node).map(|nodes| nodes as f64)
        })
    }
}
