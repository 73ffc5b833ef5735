//! azure-cosmosdb: the backlog of a change feed processor of Azure Cosmos DB.

mod query;
#[cfg(test)]
mod tests;

use futures::{StreamExt as _, TryStreamExt as _};

use query::{CosmosAccess, CosmosContainer, FeedLag, Lease, RangeLag};

use crate::azure_client::AzurePrincipal;
use crate::azure_clouds::{check_cloud_of, check_tenant};
use crate::azure_storage::storage_date;
use crate::identity::{AzureIdentity, Identities};
use crate::parameters::KedaProfile;
use crate::prelude::*;

/// Maximum number of pages of leases.
const MAX_LEASE_PAGES: usize = 20;
/// How many ranges are read at the same time.
const CONCURRENT_RANGES: usize = 8;

/// Prefix of errors that are found after the parameters were read.
const PREFIX: &str = "error parsing azure cosmos db metadata";

/// The scaler type `azure-cosmosdb`.
pub const TYPE: ScalerType = ScalerType {
    name: "azure-cosmosdb",
    about: "How many changes of an Azure Cosmos DB container a change feed processor has not read yet.",
    display: "azureCosmosDBScaler",
    parameters: Parameters::PARAMETERS,
    since: KedaProfile::V2_21,
    unit: |_| "changes",
    build,
    samples: &[Sample::http(
        &[
            ("databaseId", "d"),
            ("containerId", "c"),
            ("leaseDatabaseId", "d"),
            ("leaseContainerId", "l"),
            ("processorName", "p"),
        ],
        &[("connection", "AccountEndpoint=http://{}/;AccountKey=aHVudGVyMg==;")],
    )],
    ..ScalerType::DEFAULT
};

crate::parameters! {
    /// Parameters of azure-cosmosdb.
    pub struct Parameters of "error parsing azure cosmos db metadata: error parsing metadata" {
        /// Connection string of the monitored account, `AccountEndpoint=…;AccountKey=…`.
        connection: Secret = "connection" in [Authentication, Environment, Metadata];
        /// Endpoint of the monitored account, without a connection string.
        endpoint: String = "endpoint" in [Authentication, Metadata];
        /// Key for `endpoint`.
        key: Secret = "cosmosDBKey" in [Authentication, Environment];
        /// Connection string of the account with the leases; that of the monitored account if it is missing.
        lease_connection: Secret = "leaseConnection" in [Authentication, Environment, Metadata];
        /// Endpoint of the account with the leases.
        lease_endpoint: String = "leaseEndpoint" in [Authentication, Metadata];
        /// Key for `leaseEndpoint`.
        lease_key: Secret = "leaseCosmosDBKey" in [Authentication, Environment];
        /// Database of the monitored container.
        database: String = "databaseId" in [Metadata], required;
        /// The monitored container.
        container: String = "containerId" in [Metadata], required;
        /// Database of the container with the leases.
        lease_database: String = "leaseDatabaseId" in [Metadata], required;
        /// The container with the leases.
        lease_container: String = "leaseContainerId" in [Metadata], required;
        /// The change feed processor.
        processor: String = "processorName" in [Metadata], required;
        /// Target number of unread changes per replica.
        threshold: i64 = "changeFeedLagThreshold" in [Metadata], default "100";
        /// The trigger is active above this number of unread changes.
        activation: i64 = "activationChangeFeedLagThreshold" in [Metadata], default "0";
        /// Tenant of the service principal.
        tenant: String = "tenantId" in [Authentication];
        /// Client id of the service principal.
        client_id: String = "clientId" in [Authentication];
        /// Its secret.
        client_secret: Secret = "clientSecret" in [Authentication];
        /// The cloud.
        cloud: String = "cloud" in [Metadata];
        /// Resource URL of Cosmos DB in a private cloud.
        resource_url: String = "cosmosDBResourceURL" in [Metadata];
        /// Token endpoint of a private cloud.
        active_directory_endpoint: String = "activeDirectoryEndpoint" in [Metadata];
    }
    check Parameters::check
}

impl Parameters {
    fn check(&mut self, _: &Trigger) -> Result<(), ParseError> {
        if self.threshold <= 0 {
            return Err("changeFeedLagThreshold must be greater than zero".into());
        }
        if self.activation < 0 {
            return Err("activationChangeFeedLagThreshold must be greater than or equal to zero".into());
        }
        if self.activation >= self.threshold {
            return Err("activationChangeFeedLagThreshold must be less than changeFeedLagThreshold".into());
        }
        Ok(())
    }

    /// Uses the monitored account for the leases, too, if no other is given.
    fn share_account(&mut self) {
        if self.lease_connection.reveal().is_empty() && self.lease_endpoint.is_empty() {
            self.lease_connection.clone_from(&self.connection);
            self.lease_endpoint.clone_from(&self.endpoint);
            self.lease_key.clone_from(&self.key);
        }
    }

    fn check_access(&self, trigger: &Trigger) -> Result<(), ParseError> {
        let given = |secret: &Secret| !secret.reveal().is_empty();
        if !given(&self.connection) && self.endpoint.is_empty() {
            return Err("connection string or endpoint is required for the data account".into());
        }
        match &*trigger.identity.provider {
            "" | "none" => {}
            "azure-workload" => return Ok(()),
            other => return Err(format!("pod identity {other} not supported for azure cosmos db").into()),
        }
        let accounts = [(&self.connection, &self.key), (&self.lease_connection, &self.lease_key)];
        if accounts.iter().all(|(connection, key)| given(connection) || given(key)) {
            return Ok(());
        }
        let principal = [!self.tenant.is_empty(), !self.client_id.is_empty(), given(&self.client_secret)];
        match (principal.contains(&true), principal.contains(&false)) {
            (true, false) => return Ok(()),
            (true, true) => {
                return Err(
                    "tenantId, clientId and clientSecret must all be provided for service-principal \
                            authentication"
                        .into(),
                );
            }
            (false, _) => {}
        }
        Err("a connection string, account key, or complete service-principal credentials are required for both data \
             and lease accounts"
            .into())
    }

    fn check_client(&self, trigger: &Trigger) -> Result<(), ParseError> {
        let accounts =
            [("connection string", &self.connection), ("lease connection string", &self.lease_connection)];
        for (what, connection) in accounts {
            if !connection.reveal().is_empty() && !is_account(connection.reveal()) {
                let why = "invalid connection string: missing AccountEndpoint or AccountKey";
                return Err(format!("error parsing {what}: {why}").into());
            }
        }
        // Tokens are needed for accounts without connection string and key.
        let keys = [(&self.connection, &self.key), (&self.lease_connection, &self.lease_key)];
        let by_token = |(connection, key): &(&Secret, &Secret)| {
            connection.reveal().is_empty() && key.reveal().is_empty()
        };
        if !keys.iter().any(by_token) {
            return Ok(());
        }
        check_cloud_of(trigger, "cosmosDBResourceURL")
            .map_err(|error| format!("error resolving cosmos db resource URL: {error}"))?;
        if trigger.identity.provider == "azure-workload" {
            return Ok(());
        }
        check_cloud_of(trigger, "activeDirectoryEndpoint")
            .map_err(|error| format!("error resolving active directory endpoint: {error}"))?;
        check_tenant(&self.tenant)
            .map_err(|error| format!("error creating service-principal credential: {error}").into())
    }
}

/// Whether a connection string has an endpoint and a key.
fn is_account(connection: &str) -> bool {
    let has = |wanted: &str| {
        let mut pairs = connection.split(';').filter_map(|pair| pair.split_once('='));
        pairs.any(|(key, value)| key.trim() == wanted && !value.trim().is_empty())
    };
    has("AccountEndpoint") && has("AccountKey")
}

/// A container, and how requests for it are authorized.
struct CosmosAccount {
    container: CosmosContainer,
    /// The key; a token is used without one.
    key: Option<Secret>,
}

/// A change feed processor.
struct ChangeFeed {
    spec: MetricSpec,
    monitored: CosmosAccount,
    leases: CosmosAccount,
    processor: String,
    threshold: i64,
    activation: i64,
    identity: AzureIdentity,
    resource_url: String,
    identities: Arc<Identities>,
    within: Duration,
    web: Arc<SharedHttpClient>,
}

fn build(trigger: &Trigger, backends: &Backends) -> Result<Arc<dyn Scaler>, ScalerError> {
    target_type(trigger)?;
    let mut parameters = Parameters::read(trigger)?;
    parameters.share_account();
    parameters.check_access(trigger).map_err(|error| ScalerError::new(error).inside(PREFIX))?;
    let fail = |error: ParseError| ScalerError::new(error).inside("error creating cosmos db client");
    parameters.check_client(trigger).map_err(fail)?;
    let name = format!("azure-cosmosdb-{}-{}", parameters.lease_container, parameters.processor);
    let spec = external(trigger, &name, whole(parameters.threshold));
    Ok(Arc::new(ChangeFeed::new(spec, parameters, trigger, backends)))
}

/// The container of an account that is given by a connection string, or by an endpoint and perhaps a key.
fn account(
    connection: &Secret,
    endpoint: &str,
    key: &Secret,
    (database, container): (&str, &str),
) -> CosmosAccount {
    let (endpoint, key) = match query::account(connection.reveal()) {
        Some((endpoint, key)) => (endpoint, Some(key)),
        None => (endpoint.to_owned(), Some(key.clone()).filter(|key| !key.reveal().is_empty())),
    };
    let endpoint = endpoint.trim_end_matches('/').to_owned();
    let (database, container) = (database.to_owned(), container.to_owned());
    CosmosAccount { container: CosmosContainer { endpoint, database, container }, key }
}

impl ChangeFeed {
    fn new(spec: MetricSpec, given: Parameters, trigger: &Trigger, backends: &Backends) -> Self {
        let principal = AzurePrincipal {
            client: &given.client_id,
            tenant: &given.tenant,
            secret: &given.client_secret,
            cloud: &given.cloud,
            authority: &given.active_directory_endpoint,
        };
        let identity = principal.identity(trigger);
        let monitored = (&*given.database, &*given.container);
        let leases = (&*given.lease_database, &*given.lease_container);
        Self {
            spec,
            monitored: account(&given.connection, &given.endpoint, &given.key, monitored),
            leases: account(&given.lease_connection, &given.lease_endpoint, &given.lease_key, leases),
            processor: given.processor,
            threshold: given.threshold,
            activation: given.activation,
            identity,
            resource_url: given.resource_url,
            identities: backends.state(),
            within: trigger.http_timeout,
            web: Arc::clone(&backends.web),
        }
    }

    async fn access(&self, account: &CosmosAccount) -> Result<CosmosAccess, ScalerError> {
        if let Some(key) = &account.key {
            return Ok(CosmosAccess::Key(key.clone()));
        }
        let is_operators = matches!(self.identity, AzureIdentity::Workload { .. });
        // The host comes first: a token of the operator is not even requested if it would be sent elsewhere.
        let scope = query::token_scope(&account.container.endpoint, is_operators, &self.resource_url)?;
        Ok(CosmosAccess::Token(self.identities.azure(&self.identity, &scope, &self.web).await?))
    }

    async fn leases(&self) -> Result<Vec<Lease>, ScalerError> {
        let access = self.access(&self.leases).await?;
        let prefix = query::lease_prefix(&self.processor, &self.monitored.container.endpoint);
        let (mut leases, mut page) = (Vec::new(), String::new());
        for _ in 0..MAX_LEASE_PAGES {
            let date = storage_date(self.web.now());
            let call = self.leases.container.leases(&prefix, &page, &access, &date, self.within)?;
            let answer = self.web.send(call).await?;
            leases.extend(query::leases(answer.status.as_u16(), &answer.body)?);
            match answer.headers.get("x-ms-continuation").and_then(|next| next.to_str().ok()) {
                Some(next) if !next.is_empty() => next.clone_into(&mut page),
                _ => return Ok(leases),
            }
        }
        Err(scaler_error!("there are more than {MAX_LEASE_PAGES} pages of leases"))
    }

    async fn lags(&self) -> Result<Vec<(Lease, RangeLag)>, ScalerError> {
        let leases = self.leases().await?;
        if leases.is_empty() {
            return Ok(Vec::new());
        }
        let access = &self.access(&self.monitored).await?;
        let lags: Vec<_> = leases.into_iter().map(|lease| self.lag(access, lease)).collect();
        futures::stream::iter(lags).buffer_unordered(CONCURRENT_RANGES).try_collect().await
    }

    async fn lag(&self, access: &CosmosAccess, lease: Lease) -> Result<(Lease, RangeLag), ScalerError> {
        let date = storage_date(self.web.now());
        let call = self.monitored.container.changes(&lease, access, &date, self.within)?;
        let answer = self.web.send(call).await?;
        let lag = query::lag(answer.status.as_u16(), &answer.headers, &answer.body)
            .map_err(|error| error.inside(format!("range {}", lease.range)))?;
        Ok((lease, lag))
    }

    /// The lag of the processor. After a split everything is read once more: its processor may have replaced the lease meanwhile.
    async fn feed_lag(&self) -> Result<FeedLag, ScalerError> {
        let mut lags = self.lags().await?;
        if lags.iter().any(|(_, lag)| *lag == RangeLag::Split) {
            lags = self.lags().await?;
        }
        Ok(FeedLag::sum(&lags, self.activation))
    }
}

impl Scaler for ChangeFeed {
    fn specs(&self) -> ScalerFuture<'_, Vec<MetricSpec>> {
        Box::pin(async { Ok(vec![self.spec.clone()]) })
    }

    fn read<'a>(&'a self, metric: &'a str) -> ScalerFuture<'a, Reading> {
        Box::pin(async move {
            let lag = self.feed_lag().await?;
            let served = lag.served(self.threshold);
            Ok(Reading::one(metric, milli(served as f64), lag.total > self.activation))
        })
    }
}
