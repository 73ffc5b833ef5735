//! Delegated authorization: SubjectAccessReviews, whose results are cached for a short time.

mod attributes;

use futures::FutureExt as _;
use k8s_openapi::api::authorization::v1::{
    FieldSelectorAttributes, LabelSelectorAttributes, NonResourceAttributes, ResourceAttributes,
    SubjectAccessReview, SubjectAccessReviewSpec,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{FieldSelectorRequirement, LabelSelectorRequirement};
use kube::Client;

pub use attributes::{RequestAttributes, RequestTarget, RequestedResource, SelectorRequirement};

use crate::cache::{Cache, CacheTtl};
use crate::identity::User;
use crate::peer_address::PeerAddress;
use crate::review::{
    self, FAILED_REVIEWS_PER_SECOND, MAX_FAILED_REVIEWS, ReviewError, ReviewQueue, ReviewTtls,
};
use crate::status::Status;
use crate::throttle::Throttle;

/// How requests are authorized.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Access {
    /// Users are authenticated by front proxy, client certificate or TokenReview, and authorized by
    /// SubjectAccessReview.
    #[default]
    Delegated,
    /// Every request is allowed without authentication. For tests and local use.
    Anyone,
}

/// How many review results are cached.
const MAX_CACHED_REVIEWS: usize = 8192;

/// Reviews with more text than this are not cached.
const MAX_CACHED_REVIEW_BYTES: usize = 10_000;

/// The group whose members are allowed everything.
const MASTERS_GROUP: &str = "system:masters";

/// The complete input of a review: equal queries have equal results.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct AccessQuery {
    user: User,
    wanted: RequestAttributes,
}

/// The result of a SubjectAccessReview.
#[derive(Clone, Debug, PartialEq, Eq)]
struct AccessDecision {
    allowed: bool,
    reason: String,
}

/// Why a request is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Permission {
    /// Its path is public, or anonymous users are allowed it.
    OfAnonymous,
    /// Its user was allowed it.
    OfUser,
}

/// The client whose limit counts reviews that end in a refusal.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ReviewedClient {
    /// A user without credentials, by address.
    Address(PeerAddress),
    /// A user.
    User(String),
}

/// Authorizes requests by SubjectAccessReviews.
pub(crate) struct Authorizer {
    client: Client,
    open: Vec<String>,
    known: Cache<AccessQuery, AccessDecision, ReviewError>,
    failures: Throttle<ReviewedClient>,
}

impl Authorizer {
    /// `open` are paths that everybody may get: exact, or the beginning of one and `*`.
    pub(crate) fn new(client: Client, open: Vec<String>, reviews: ReviewTtls) -> Self {
        let life = move |decision: &AccessDecision| {
            if decision.allowed {
                CacheTtl { whole: reviews.allowed, fresh: reviews.allowed / 3 * 2 }
            } else {
                CacheTtl::of(reviews.denied)
            }
        };
        let known = Cache::new(MAX_CACHED_REVIEWS, life);
        Self { client, open, known, failures: Throttle::new(MAX_FAILED_REVIEWS, FAILED_REVIEWS_PER_SECOND) }
    }

    /// An error if the user is not allowed the request. A refusal counts against the limit of the client, if there is one.
    pub(crate) async fn check(
        &self,
        client: Option<ReviewedClient>,
        user: &User,
        wanted: &RequestAttributes,
    ) -> Result<Permission, Status> {
        if user.is_in(MASTERS_GROUP) {
            return Ok(Permission::OfUser);
        }
        if is_open(&self.open, wanted) {
            return Ok(Permission::OfAnonymous);
        }
        let permission = if user.is_anonymous() { Permission::OfAnonymous } else { Permission::OfUser };
        // A user who may read all objects may read those of a selector, so autoscalers with different selectors share one review.
        if let Some(broader) = wanted.broader()
            && self.decision(client.as_ref(), user, &broader).await?.allowed
        {
            return Ok(permission);
        }
        match self.decision(client.as_ref(), user, wanted).await? {
            AccessDecision { allowed: true, .. } => Ok(permission),
            AccessDecision { reason, .. } => Err(wanted.refusal(user, &reason)),
        }
    }

    async fn decision(
        &self,
        client: Option<&ReviewedClient>,
        user: &User,
        wanted: &RequestAttributes,
    ) -> Result<AccessDecision, Status> {
        let query = AccessQuery { user: user.clone(), wanted: wanted.clone() };
        let client = client.filter(|_| !self.known.holds(&query));
        if client.is_some_and(|client| !self.failures.take(client)) {
            return Err(Status::too_many());
        }
        let review = || review_access(self.client.clone(), query.clone()).boxed();
        let decision = if query.length() < MAX_CACHED_REVIEW_BYTES {
            self.known.get(query.clone(), review).await
        } else {
            review().await
        };
        if let (Some(client), Ok(AccessDecision { allowed: true, .. })) = (client, &decision) {
            self.failures.give_back(client);
        }
        decision.map_err(|error| {
            tracing::warn!(%error, "failed to ask the API server who may do what");
            Status::internal("the API server could not be asked whether this is allowed")
        })
    }
}

impl ReviewedClient {
    /// The client of a user: its address if the user is anonymous, else its name. None inside this process.
    pub(crate) fn of(user: &User, address: Option<PeerAddress>) -> Option<Self> {
        if user.is_anonymous() { address.map(Self::Address) } else { Some(Self::User(user.name.clone())) }
    }
}

fn is_open(open: &[String], wanted: &RequestAttributes) -> bool {
    let RequestTarget::Path(path) = &wanted.target else { return false };
    open.iter().any(|open| match open.strip_suffix('*') {
        Some(beginning) => path.starts_with(beginning),
        None => path == open,
    })
}

impl AccessQuery {
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

async fn review_access(client: Client, query: AccessQuery) -> Result<AccessDecision, ReviewError> {
    let queue = if query.user.is_anonymous() { ReviewQueue::Anonymous } else { ReviewQueue::Users };
    let status = review::post(&client, queue, &query.review()).await?.status;
    // No opinion is no permission.
    Ok(status.map_or(AccessDecision { allowed: false, reason: String::new() }, |status| AccessDecision {
        allowed: status.allowed && !status.denied.unwrap_or_default(),
        reason: status.reason.unwrap_or_default(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Method;

    use crate::query::Query;

    #[test]
    fn some_paths_are_open_to_all() {
        let open = ["/healthz".to_owned(), "/pages/*".to_owned()];
        let path = |path: &str| is_open(&open, &RequestAttributes::of(&Method::GET, path, &Query::default()));
        assert!(path("/healthz") && path("/pages/a/b"));
        assert!(!path("/healthz/x") && !path("/metrics") && !path("/apis/g/v/healthz"));
    }

    #[test]
    fn request_has_all_parameters() {
        let mut user = User { name: "u".into(), groups: vec!["g".into()], ..User::default() };
        user.extra.insert("k".into(), vec!["v".into()]);
        let uri = "/apis/g/v1/namespaces/ns/things/x/scale";
        let wanted = RequestAttributes::of(&Method::GET, uri, &Query::default());
        let query = AccessQuery { user, wanted };
        let json = serde_json::to_value(query.review().spec).unwrap();
        assert_eq!(
            json,
            serde_json::json!({
                "user": "u", "groups": ["g"], "extra": {"k": ["v"]},
                "resourceAttributes": {"group": "g", "version": "v1", "namespace": "ns", "resource": "things",
                    "subresource": "scale", "name": "x", "verb": "get"},
            })
        );
        assert!(query.length() > 10 && query.length() < 60);
    }
}
