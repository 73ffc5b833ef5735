//! Rules over several parameters (docs/spec/keda.md 7.2).

use sources::http::Endpoint;

use super::Parameters;
use super::query::{self, Mode};
use crate::encrypted_key::opened;
use crate::parameters::InvalidParameters;
use crate::parameters::groups::HttpAuth;
use crate::{ParseError, Trigger, oauth};

/// The protocol to use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RabbitmqProtocol {
    /// AMQP 0-9-1.
    Amqp,
    /// The management API.
    Http,
}

/// The mode and its target value per replica.
pub(super) struct Measured {
    pub(super) mode: Mode,
    pub(super) value: f64,
}

impl Parameters {
    /// Checks the rules in KEDA's order, because only the first error is reported.
    pub(super) fn check(&mut self, trigger: &Trigger) -> Result<(), ParseError> {
        self.key = opened(&self.key, &self.key_password);
        if !trigger.behavior().checks_auth_modes {
            return self.check_rules(None);
        }
        // The authentication is a group with its own check; its error is reported together with the first of the rules.
        let (auth, mut problems) = HttpAuth::with_problems(trigger);
        // This parameter has been read already.
        problems.retain(|problem| problem.parameter != Some("endpointParams"));
        problems.extend(self.check_rules(Some(&auth)).err().map(Into::into));
        if problems.is_empty() { Ok(()) } else { Err(InvalidParameters(problems).to_string().into()) }
    }

    /// `auth` are the modes that KEDA has since 2.21.
    fn check_rules(&self, auth: Option<&HttpAuth>) -> Result<(), ParseError> {
        let fail = |text: &str| Err(text.into());
        // The scheme of the address is checked later.
        if self.protocol != "auto" {
            self.protocol()?;
        }
        if !matches!(&*self.tls, "enable" | "disable") {
            return Err(format!("incorrect value for TLS given: {}", self.tls).into());
        }
        if self.certificate.is_empty() != self.key.reveal().is_empty() {
            return fail("both key and certificate must be provided");
        }
        if self.page_size < 1 {
            return fail("pageSize should be 1 or greater");
        }
        if self.username.is_empty() != self.password.reveal().is_empty() {
            return fail("username and password must be given together");
        }
        let amqp = self.protocol()? == RabbitmqProtocol::Amqp;
        if amqp && !self.workload_identity.is_empty() {
            return fail("workload identity is not supported for the AMQP protocol at the moment");
        }
        self.check_oauth(auth, amqp)?;
        if amqp && self.use_regex {
            return fail("configure useRegex=true only with HTTP protocol");
        }
        if amqp && self.exclude_unacknowledged {
            return fail("configure excludeUnacknowledged=true only with HTTP protocol");
        }
        self.measured().map(|_| ())
    }

    fn check_oauth(&self, auth: Option<&HttpAuth>, amqp: bool) -> Result<(), ParseError> {
        let fail = |text: &str| Err(text.into());
        let wanted = self.requires_oauth();
        if let Some(auth) = auth {
            let mut auth = auth.clone();
            // OAuth parameters imply the mode.
            if wanted && !auth.is_enabled() {
                auth.modes.push("oauth".to_owned());
            }
            auth.check_supported(&["oauth", "basic", "tls"])?;
        }
        if !wanted {
            return Ok(());
        }
        // Since 2.21 the other two are part of the mode.
        let incomplete = auth.is_none() && (self.oauth_token_uri.is_empty() || self.client_id.is_empty());
        if incomplete || self.client_secret.reveal().is_empty() {
            return fail(
                "OAuth2 requires tokenUrl clientId and clientSecret to be configured in TriggerAuthentication",
            );
        }
        if amqp {
            return fail("OAuth2 authentication is only supported with HTTP protocol, not AMQP");
        }
        if !self.username.is_empty() || !self.workload_identity.is_empty() {
            return fail(
                "OAuth2 authentication cannot be combined with username/password authentication or Azure Workload \
                 Identity",
            );
        }
        Ok(())
    }

    /// The OAuth2 client, if one is configured.
    pub(super) fn client(&self) -> Option<oauth::OAuthClient> {
        let token_endpoint = (&*self.oauth_token_uri, Endpoint::default());
        let own = (&*self.client_id, &self.client_secret);
        self.requires_oauth()
            .then(|| oauth::OAuthClient::new(token_endpoint, own, &self.scopes, &self.endpoint_params))
    }

    fn requires_oauth(&self) -> bool {
        !(self.oauth_token_uri.is_empty()
            && self.client_id.is_empty()
            && self.client_secret.reveal().is_empty())
    }

    /// The protocol, as configured or from the scheme of the address.
    pub(super) fn protocol(&self) -> Result<RabbitmqProtocol, ParseError> {
        match &*self.protocol {
            "amqp" => Ok(RabbitmqProtocol::Amqp),
            "http" => Ok(RabbitmqProtocol::Http),
            "auto" => {
                let scheme = query::scheme(self.host.reveal())
                    .map_err(|reason| format!("can't parse host to find protocol: {reason}"))?;
                match &*scheme.to_ascii_lowercase() {
                    "amqp" | "amqps" => Ok(RabbitmqProtocol::Amqp),
                    "http" | "https" => Ok(RabbitmqProtocol::Http),
                    other => Err(format!("unknown host URL scheme: `{other}`").into()),
                }
            }
            other => {
                Err(format!("the protocol has to be either `amqp`, `http`, or `auto` but is `{other}`")
                    .into())
            }
        }
    }

    /// Mode and target value: by default a queue length of 20; `queueLength` alone is a queue length.
    pub(super) fn measured(&self) -> Result<Measured, ParseError> {
        let fail = |text: &str| Err(text.into());
        // `Unknown` is KEDA's name of a missing mode.
        let (mode, value) = (!matches!(&*self.mode, "" | "Unknown"), self.value != 0.0);
        if self.queue_length != 0.0 {
            if mode || value {
                return fail("queueLength is deprecated; use mode and value");
            }
            return Ok(Measured { mode: Mode::QueueLength, value: self.queue_length });
        }
        match (mode, value) {
            (false, false) => return Ok(Measured { mode: Mode::QueueLength, value: 20.0 }),
            (false, true) => return fail("mode must be specified"),
            (true, false) => return fail("value must be specified"),
            (true, true) => {}
        }
        let Some(mode) = Mode::parse(&self.mode) else {
            return Err(format!(
                "trigger mode {} must be one of QueueLength, MessageRate, DeliverGetRate, PublishedToDeliveredRatio or \
                 ExpectedQueueConsumptionTime",
                self.mode
            ).into());
        };
        if self.protocol()? == RabbitmqProtocol::Amqp {
            if mode != Mode::QueueLength {
                let name = &self.mode;
                return Err(
                    format!("protocol amqp not supported; must be HTTP to use trigger mode {name}").into()
                );
            }
            if !self.timeout.is_zero() {
                let nanoseconds = self.timeout.as_nanos();
                return Err(format!("AMQP protocol doesn't support custom timeouts: {nanoseconds}").into());
            }
        }
        Ok(Measured { mode, value: self.value })
    }
}
