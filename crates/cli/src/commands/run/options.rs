//! Validates the flags of `plimsoll run`.

use std::net::SocketAddr;

use cluster::connect::ConnectTarget;

use super::flags::{Role, RoleFlags};
use crate::certificates::Shared;
use crate::commands::controller::{self, ControllerArgs};
use crate::commands::metrics::{self, MetricsOptions};
use crate::commands::operator::{self, OperatorOptions};
use crate::failure::Failure;
use crate::instance::own_namespace;
use crate::serving::{self, ListenAddress, Pair};

/// The Service in front of a process with several roles.
const SERVICE: &str = "plimsoll";
const DEFAULT_ADDRESS: &str = "0.0.0.0";

/// The validated options.
pub(super) struct RunOptions {
    pub(super) target: ConnectTarget,
    pub(super) serving: CommonServing,
    pub(super) controller: Option<ControllerArgs>,
    pub(super) metrics: Option<MetricsOptions>,
    pub(super) operator: Option<OperatorOptions>,
}

/// Options of the one server.
pub(super) struct CommonServing {
    pub(super) address: SocketAddr,
    pub(super) certificate: Option<Pair>,
    /// Where the certificate is stored that replicas share.
    pub(super) shared: Shared,
    /// The names in a certificate that we issue.
    pub(super) names: Vec<String>,
    /// The address of probes without TLS.
    pub(super) probes: Option<ListenAddress>,
}

impl RunOptions {
    pub(super) fn of(
        roles: &[Role],
        flags: &RoleFlags,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, Failure> {
        flags.check(roles)?;
        let has = |role: Role| roles.contains(&role);
        let controller =
            has(Role::Controller).then(|| flags.of_role::<ControllerArgs>(Role::Controller)).transpose()?;
        if let Some(args) = &controller {
            let options = args.merged_options()?;
            options.settings()?;
            controller::traces(&options)?;
        }
        let metrics = has(Role::Metrics)
            .then(|| flags.of_role::<metrics::flags::MetricsFlags>(Role::Metrics))
            .transpose()?;
        let mut metrics = metrics.map(|flags| MetricsOptions::of(&flags)).transpose()?;
        // The operator runs in this process, so its metrics need no request. Its APIService leads to this process, so no other operator could
        // be meant.
        if has(Role::Operator)
            && let Some(metrics) = &mut metrics
            && metrics.operator.take().is_some()
        {
            metrics.idle.push("operator");
        }
        let operator = has(Role::Operator)
            .then(|| flags.of_role::<operator::flags::OperatorFlags>(Role::Operator))
            .transpose()?;
        let operator = operator.map(|flags| OperatorOptions::of(&flags, variable)).transpose()?;
        let target = ConnectTarget { kubeconfig: flags.file("kubeconfig"), context: flags.text("context") };
        let mut options = Self {
            target,
            serving: CommonServing::of(flags, operator.as_ref())?,
            controller,
            metrics,
            operator,
        };
        options.use_common_certificate();
        Ok(options)
    }

    /// The roles use the certificate of the one server, also to recognize their replicas.
    fn use_common_certificate(&mut self) {
        if let Some(metrics) = &mut self.metrics {
            metrics.serving.shared = self.serving.shared.clone();
        }
        if let Some(operator) = &mut self.operator {
            operator.serving.shared = self.serving.shared.clone();
        }
    }

    /// The roles, in their order.
    pub(super) fn roles(&self) -> Vec<Role> {
        let runs = [self.controller.is_some(), self.metrics.is_some(), self.operator.is_some()];
        Role::ALL.into_iter().zip(runs).filter(|(_, runs)| *runs).map(|(role, _)| role).collect()
    }
}

impl CommonServing {
    fn of(flags: &RoleFlags, operator: Option<&OperatorOptions>) -> Result<Self, Failure> {
        let address =
            serving::address(&flags.text("bind-address").unwrap_or_else(|| DEFAULT_ADDRESS.into()))?;
        let port = flags.text("secure-port").unwrap_or_default();
        let port =
            port.parse().map_err(|_| Failure::input(format!("--secure-port={port}: write a number")))?;
        let certificate = serving::pair(flags.file("tls-cert-file"), flags.file("tls-private-key-file"))?;
        let rotates = flags.text("enable-cert-rotation").is_some_and(|text| text == "true");
        let shared = match (rotates && certificate.is_none(), flags.text("cert-secret-name")) {
            (true, Some(name)) => Shared::Secret { namespace: own_namespace(), name },
            _ => Shared::Nothing,
        };
        let probes = flags.text(serving::HEALTH_PROBE_FLAG).unwrap_or_default();
        let probes = serving::place(serving::HEALTH_PROBE_FLAG, &probes)?;
        let wanted = flags.is_given(serving::HEALTH_PROBE_FLAG);
        Ok(Self {
            address: SocketAddr::new(address, serving::port(port)?),
            certificate,
            shared,
            names: names(operator),
            probes: probes.map(|address| ListenAddress { address, wanted }),
        })
    }
}

/// The Service of the process, and those of the roles: clients may keep the names that they have.
fn names(operator: Option<&OperatorOptions>) -> Vec<String> {
    let namespace = own_namespace();
    let services = [SERVICE, controller::SERVICE, metrics::SERVICE, operator::SERVICE];
    let mut names: Vec<String> =
        services.iter().flat_map(|service| serving::names(service, &namespace)).collect();
    names.extend(operator.into_iter().flat_map(|options| options.serving.names.iter().cloned()));
    let mut seen = std::collections::HashSet::new();
    names.retain(|name| seen.insert(name.clone()));
    names
}
