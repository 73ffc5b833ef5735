//! Whether somebody may do something: the API server is asked, and its answers are kept for a moment.

mod attributes;

use futures::FutureExt as _;
use k8s_openapi::api::authorization::v1::{
    FieldSelectorAttributes, LabelSelectorAttributes, NonResourceAttributes, ResourceAttributes,
    SubjectAccessReview, SubjectAccessReviewSpec,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{FieldSelectorRequirement, LabelSelectorRequirement};
use kube::Client;

pub use attributes::{RequestAttributes, RequestTarget, RequestedResource, SelectorRequirement};

use crate::cache::{Cache, Life};
use crate::identity::User;
use crate::review::{self, ReviewError};
use crate::server::ReviewTtls;
use crate::status::Status;

/// Who may do what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Access {
    /// What the API server says: who asks (front proxy, client certificates, TokenReview) and whether he may
    /// (SubjectAccessReview).
    #[default]
    Delegated,
    /// Anyone may do everything, and nobody is asked who he is. For tests and for one's own desk.
    Anyone,
}

/// How many answers are kept.
const CAPACITY: usize = 8192;

/// Questions with more text than this are asked each time.
const LONGEST: usize = 10_000;

/// The group whose members may do everything.
const MASTERS: &str = "system:masters";

/// A question, whole: two that are equal have the same answer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Question {
    user: User,
    wanted: RequestAttributes,
}

/// What the API server said.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Verdict {
    allowed: bool,
    reason: String,
}

/// Asks the API server who may do what.
pub(crate) struct Authorizer {
    client: Client,
    open: Vec<String>,
    known: Cache<Question, Verdict, ReviewError>,
}

impl Authorizer {
    /// `open` are paths that everybody may get: exact, or the beginning of one and `*`.
    pub(crate) fn new(client: Client, open: Vec<String>, reviews: ReviewTtls) -> Self {
        let life = move |verdict: &Verdict| {
            if verdict.allowed {
                Life { whole: reviews.allowed, fresh: reviews.allowed / 3 * 2 }
            } else {
                Life::of(reviews.denied)
            }
        };
        Self { client, open, known: Cache::new(CAPACITY, life) }
    }

    /// An error if the user may not.
    pub(crate) async fn check(&self, user: &User, wanted: &RequestAttributes) -> Result<(), Status> {
        if user.is_in(MASTERS) || is_open(&self.open, wanted) {
            return Ok(());
        }
        // Whoever may see all may see some: so autoscalers with selectors of their own share one answer.
        if let Some(broader) = wanted.broader()
            && self.verdict(user, &broader).await?.allowed
        {
            return Ok(());
        }
        match self.verdict(user, wanted).await? {
            Verdict { allowed: true, .. } => Ok(()),
            Verdict { reason, .. } => Err(wanted.refusal(user, &reason)),
        }
    }

    async fn verdict(&self, user: &User, wanted: &RequestAttributes) -> Result<Verdict, Status> {
        let question = Question { user: user.clone(), wanted: wanted.clone() };
        let ask = || ask(self.client.clone(), question.clone()).boxed();
        let verdict = if question.length() < LONGEST {
            self.known.get(question.clone(), ask).await
        } else {
            ask().await
        };
        verdict.map_err(|error| {
            tracing::warn!(%error, "failed to ask the API server who may do what");
            Status::internal("the API server could not be asked whether this is allowed")
        })
    }
}

fn is_open(open: &[String], wanted: &RequestAttributes) -> bool {
    let RequestTarget::Path(path) = &wanted.target else { return false };
    open.iter().any(|open| match open.strip_suffix('*') {
        Some(beginning) => path.starts_with(beginning),
        None => path == open,
    })
}

impl Question {
    fn length(&self) -> usize {
        let extra = self.user.extra.iter().map(|(key, values)| key.len() + total(values));
        self.user.name.len() + total(&self.user.groups) + extra.sum::<usize>() + self.wanted.length()
    }

    fn review(&self) -> SubjectAccessReview {
        let User { name, uid, groups, extra } = self.user.clone();
        let verb = Some(self.wanted.verb.clone());
        let given = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let (resource_attributes, non_resource_attributes) = match &self.wanted.target {
            RequestTarget::Path(path) => {
                (None, Some(NonResourceAttributes { path: Some(path.clone()), verb }))
            }
            RequestTarget::Resource(resource) => {
                let attributes = ResourceAttributes {
                    group: given(&resource.group),
                    version: given(&resource.version),
                    namespace: given(&resource.namespace),
                    resource: given(&resource.resource),
                    subresource: given(&resource.subresource),
                    name: given(&resource.name),
                    verb,
                    label_selector: (!resource.labels.is_empty()).then(|| LabelSelectorAttributes {
                        raw_selector: None,
                        requirements: Some(resource.labels.iter().map(label).collect()),
                    }),
                    field_selector: (!resource.fields.is_empty()).then(|| FieldSelectorAttributes {
                        raw_selector: None,
                        requirements: Some(resource.fields.iter().map(field).collect()),
                    }),
                };
                (Some(attributes), None)
            }
        };
        let spec = SubjectAccessReviewSpec {
            user: Some(name),
            uid: given(&uid),
            groups: Some(groups),
            extra: (!extra.is_empty()).then_some(extra),
            resource_attributes,
            non_resource_attributes,
        };
        SubjectAccessReview { spec, ..SubjectAccessReview::default() }
    }
}

fn label(of: &SelectorRequirement) -> LabelSelectorRequirement {
    let values = (!of.values.is_empty()).then(|| of.values.clone());
    LabelSelectorRequirement { key: of.key.clone(), operator: of.operator.to_owned(), values }
}

fn field(of: &SelectorRequirement) -> FieldSelectorRequirement {
    let values = Some(of.values.clone());
    FieldSelectorRequirement { key: of.key.clone(), operator: of.operator.to_owned(), values }
}

fn total(texts: &[String]) -> usize {
    texts.iter().map(String::len).sum()
}

async fn ask(client: Client, question: Question) -> Result<Verdict, ReviewError> {
    let status = review::post(&client, &question.review()).await?.status;
    // No opinion is no permission.
    Ok(status.map_or(Verdict { allowed: false, reason: String::new() }, |status| Verdict {
        allowed: status.allowed && !status.denied.unwrap_or_default(),
        reason: status.reason.unwrap_or_default(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Method;

    use crate::request::Query;

    #[test]
    fn some_paths_are_open_to_all() {
        let open = ["/healthz".to_owned(), "/pages/*".to_owned()];
        let path = |path: &str| is_open(&open, &RequestAttributes::of(&Method::GET, path, &Query::default()));
        assert!(path("/healthz") && path("/pages/a/b"));
        assert!(!path("/healthz/x") && !path("/metrics") && !path("/apis/g/v/healthz"));
    }

    #[test]
    fn a_question_says_all() {
        let mut user = User { name: "u".into(), groups: vec!["g".into()], ..User::default() };
        user.extra.insert("k".into(), vec!["v".into()]);
        let uri = "/apis/g/v1/namespaces/ns/things/x/scale";
        let wanted = RequestAttributes::of(&Method::GET, uri, &Query::default());
        let question = Question { user, wanted };
        let json = serde_json::to_value(question.review().spec).unwrap();
        assert_eq!(
            json,
            serde_json::json!({
                "user": "u", "groups": ["g"], "extra": {"k": ["v"]},
                "resourceAttributes": {"group": "g", "version": "v1", "namespace": "ns", "resource": "things",
                    "subresource": "scale", "name": "x", "verb": "get"},
            })
        );
        assert!(question.length() > 10 && question.length() < 60);
    }
}
