//! Causes that concern the triggers of ScaledObjects and ScaledJobs, and the jobs of the latter.

use engine::failure::{RequestFailure, TriggerFailure};
use engine::trigger_poll::{PolledTrigger, ReconcileFailure};
use engine::{ActivationVerdict, TriggerPoll};
use jiff::Timestamp;

use super::words::quoted;
use super::{AccessCause, Concern, Described, Diagnosis, DiagnosisFacts};

/// What to do if the API server carries out no request.
const API_SERVER_REMEDY: &str = "the operator tries again; if that does not help, check health and load of the API server, and the \
                                 network between it and the operator";

/// A cause that concerns a trigger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TriggerCause {
    /// A trigger could not be polled.
    Failed {
        /// Name or type of the trigger.
        trigger: String,
        /// Class of the error, where it is known.
        failure: Option<TriggerFailure>,
        /// The text.
        text: String,
    },
    /// A fallback replaces a failed trigger.
    Fallback {
        /// Name or type of the trigger.
        trigger: String,
        /// Replicas of the fallback.
        replicas: i32,
    },
    /// The formula cannot be computed.
    Formula(String),
    /// Nothing is active, and the cooldown has not ended.
    Cooldown(Timestamp),
    /// Nothing is active.
    Idle(i32),
    /// Nothing is active, and a ScaledJob has no count to rest at.
    NoJobs,
    /// Jobs could not be created: how many, and the text of the first error.
    NotCreated(i64, String),
    /// The spec is invalid: the error text.
    InvalidSpec(String),
    /// The API server carried out no request of the operator, whatever the request was.
    ApiServer {
        /// What the API server does instead.
        state: &'static str,
        /// The object of the request.
        object: String,
        /// The error text.
        text: String,
    },
    /// A request of the operator was refused: the error text, with the object of the request.
    NotManaged(String),
    /// Authorization denied a request of the operator.
    Denied(AccessCause),
}

/// Why triggers failed in a poll, and why the reconcile before it did.
pub fn poll_causes(poll: &TriggerPoll) -> Vec<Diagnosis> {
    let reconcile = poll.reconcile.as_ref().map(not_reconciled);
    reconcile.into_iter().chain(failures(poll)).map(|cause| Diagnosis::of(&cause)).collect()
}

/// Why these triggers failed.
pub fn trigger_causes(triggers: &[PolledTrigger]) -> Vec<Diagnosis> {
    trigger_failures(triggers).iter().map(|cause| Diagnosis::of(cause)).collect()
}

pub(super) fn find(facts: &DiagnosisFacts<'_>) -> Vec<TriggerCause> {
    let mut found = Vec::new();
    if let Some(poll) = facts.poll {
        found.extend(poll.reconcile.as_ref().map(not_reconciled));
        found.extend(failures(poll));
        let counts = poll.jobs.as_ref();
        found.extend(counts.and_then(|counts| {
            let missing = counts.wanted.saturating_sub(counts.created);
            Some(TriggerCause::NotCreated(missing, counts.failure.clone()?))
        }));
    }
    if let Some(activation) = &facts.decision.activation {
        match &activation.verdict {
            ActivationVerdict::Cooling { until } => found.push(TriggerCause::Cooldown(*until)),
            ActivationVerdict::Resting
                if found.is_empty() && facts.poll.is_some_and(|poll| poll.jobs.is_some()) =>
            {
                found.push(TriggerCause::NoJobs);
            }
            ActivationVerdict::Resting if found.is_empty() => {
                found.push(TriggerCause::Idle(activation.rest.get()));
            }
            _ => {}
        }
    }
    found
}

fn not_reconciled(failure: &ReconcileFailure) -> TriggerCause {
    let (object, error) = match failure {
        ReconcileFailure::InvalidSpec(text) => return TriggerCause::InvalidSpec(text.clone()),
        ReconcileFailure::Request { object, error } => (object, error),
    };
    let state = match error.failure() {
        // A webhook denies requests with the same code, but names no user.
        Some(RequestFailure::Forbidden(denied)) if !denied.user.is_empty() => {
            return TriggerCause::Denied(AccessCause { denied: denied.clone(), subject: object.clone() });
        }
        Some(RequestFailure::Unreachable) => "gives no usable answer",
        Some(RequestFailure::Unavailable) => "is not available",
        Some(RequestFailure::Timeout) => "does not answer in time",
        Some(RequestFailure::TooManyRequests) => "limits requests",
        _ => return TriggerCause::NotManaged(failure.to_string()),
    };
    TriggerCause::ApiServer { state, object: object.clone(), text: error.text().to_owned() }
}

fn failures(poll: &TriggerPoll) -> Vec<TriggerCause> {
    let mut found = trigger_failures(&poll.triggers);
    if let Some(Err(error)) = poll.formula.as_ref().map(|formula| formula.value.as_ref()) {
        found.push(TriggerCause::Formula(error.text().to_owned()));
    }
    found
}

fn trigger_failures(triggers: &[PolledTrigger]) -> Vec<TriggerCause> {
    let mut found = Vec::new();
    for trigger in triggers {
        let name = trigger.label().to_owned();
        if let Some(text) = &trigger.failure {
            found.push(TriggerCause::Failed {
                trigger: name.clone(),
                failure: trigger.cause,
                text: text.clone(),
            });
        }
        for metric in &trigger.metrics {
            if let Some(text) = &metric.failure {
                found.push(TriggerCause::Failed {
                    trigger: name.clone(),
                    failure: metric.cause,
                    text: text.clone(),
                });
            }
            if let Some(replicas) = metric.fallback {
                found.push(TriggerCause::Fallback { trigger: name.clone(), replicas: replicas.get() });
            }
        }
    }
    found
}

impl Described for TriggerCause {
    fn id(&self) -> &'static str {
        match self {
            Self::Failed { failure, .. } => match failure {
                Some(TriggerFailure::Parameters) => "trigger-parameters",
                Some(TriggerFailure::Refused) => "trigger-connection-refused",
                Some(TriggerFailure::UnknownHost) => "trigger-unknown-host",
                Some(TriggerFailure::Timeout) => "trigger-timeout",
                Some(TriggerFailure::Authentication) => "trigger-authentication",
                Some(TriggerFailure::ApiServer) => "api-server-unavailable",
                Some(TriggerFailure::UnknownName) => "trigger-unknown-name",
                Some(TriggerFailure::Source) | None => "trigger-failed",
            },
            Self::Fallback { .. } => "trigger-fallback",
            Self::Formula(_) => "formula-failed",
            Self::Cooldown(_) => "cooldown",
            Self::Idle(_) | Self::NoJobs => "nothing-active",
            Self::NotCreated(..) => "jobs-not-created",
            Self::InvalidSpec(_) => "spec-invalid",
            Self::ApiServer { .. } => "api-server-unavailable",
            Self::NotManaged(_) => "object-not-managed",
            Self::Denied(cause) => cause.id(),
        }
    }

    fn concern(&self) -> Concern {
        match self {
            Self::Failed { .. }
            | Self::Formula(_)
            | Self::NotCreated(..)
            | Self::InvalidSpec(_)
            | Self::ApiServer { .. }
            | Self::NotManaged(_)
            | Self::Denied(_) => Concern::Problem,
            Self::Fallback { .. } | Self::Cooldown(_) => Concern::Limit,
            Self::Idle(_) | Self::NoJobs => Concern::Normal,
        }
    }

    fn sentence(&self) -> String {
        match self {
            Self::Failed { trigger, failure, text } => {
                let what = match failure {
                    Some(TriggerFailure::Parameters) => format!("trigger {trigger} is not usable"),
                    Some(TriggerFailure::Refused) => {
                        format!("the source of trigger {trigger} refuses the connection")
                    }
                    Some(TriggerFailure::UnknownHost) => {
                        format!("the host of trigger {trigger} does not resolve")
                    }
                    Some(TriggerFailure::Timeout) => {
                        format!("the source of trigger {trigger} does not answer in time")
                    }
                    Some(TriggerFailure::Authentication) => {
                        format!("the credentials of trigger {trigger} are missing or not accepted")
                    }
                    Some(TriggerFailure::ApiServer) => {
                        format!("the API server does not serve what trigger {trigger} needs")
                    }
                    Some(TriggerFailure::UnknownName) => {
                        format!("the source of trigger {trigger} does not know the name")
                    }
                    Some(TriggerFailure::Source) | None => {
                        format!("the source of trigger {trigger} reports an error")
                    }
                };
                format!("{what}: {}", quoted(text))
            }
            Self::Fallback { trigger, replicas } => {
                format!("trigger {trigger} failed too often: the fallback of {replicas} replicas is used")
            }
            Self::Formula(text) => format!("the formula cannot be computed: {}", quoted(text)),
            Self::Cooldown(until) => {
                format!("nothing is active; cooldown until {}", engine::explain::clock(*until))
            }
            Self::Idle(rest) => format!("no trigger is active, so the target rests at {rest}"),
            Self::NoJobs => "no trigger is active, so no jobs are created".to_owned(),
            Self::NotCreated(1, text) => format!("a job could not be created: {}", quoted(text)),
            Self::NotCreated(missing, text) => {
                format!("{missing} jobs could not be created: {}", quoted(text))
            }
            Self::InvalidSpec(text) => format!("the spec is invalid: {}", quoted(text)),
            Self::ApiServer { state, object, text } => {
                format!("the API server {state}, so {object} is not managed: {}", quoted(text))
            }
            Self::NotManaged(text) => quoted(text),
            Self::Denied(cause) => cause.sentence(),
        }
    }

    fn remedy(&self) -> String {
        match self {
            Self::Failed { failure, .. } => match failure {
                Some(TriggerFailure::Parameters) => "correct the trigger's parameters and its TriggerAuthentication; `plimsoll validate FILE` names the field",
                Some(TriggerFailure::Refused) => "check address and port of the source, and that it runs",
                Some(TriggerFailure::UnknownHost) => "correct the host name; names of other namespaces need .NAMESPACE.svc",
                Some(TriggerFailure::Timeout) => "check that the operator's pods can reach the source (network policy, firewall)",
                Some(TriggerFailure::Authentication) => "correct the Secret of the TriggerAuthentication, and the rights of that user",
                Some(TriggerFailure::ApiServer) => API_SERVER_REMEDY,
                Some(TriggerFailure::UnknownName) => "create the queue, topic, table or metric, or correct its name or the path of the address",
                Some(TriggerFailure::Source) | None => "`plimsoll scalers check FILE` asks the source and says what is wrong",
            },
            Self::Fallback { .. } => "repair the source; the fallback ends with the next successful poll",
            Self::Formula(_) => "correct advanced.scalingModifiers.formula; `plimsoll validate FILE` checks it",
            Self::Cooldown(_) => "nothing: shorten cooldownPeriod if it is too long",
            Self::NotCreated(..) => "correct jobTargetRef, and check quotas and admission webhooks of the namespace",
            Self::Idle(_) | Self::NoJobs => "nothing: lower the activation threshold if this is too few",
            Self::InvalidSpec(_) => "correct the object; `plimsoll validate FILE` names the field",
            Self::ApiServer { .. } => API_SERVER_REMEDY,
            Self::NotManaged(_) => "check admission webhooks and quotas of the namespace, and who else manages the object",
            Self::Denied(cause) => return cause.remedy(),
        }
        .to_owned()
    }
}
