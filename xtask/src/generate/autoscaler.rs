//! The definition of `autoscalers.plimsoll.dev`, from `autoscaler.schema` and the defaults of `api::plimsoll` that do not
//! depend on other fields. The controller fills in the other defaults when it reads an object.

use api::autoscaling::Defaults;
use api::autoscaling::v2::HorizontalPodAutoscalerBehavior;
use api::plimsoll::AutoscalerSpec;
use serde_json::json;

use super::definition::{Definition, definitions};
use super::schema::SchemaReader;

pub(super) fn definition() -> anyhow::Result<Vec<Definition>> {
    let (mut spec, mut behavior) = (AutoscalerSpec::default(), HorizontalPodAutoscalerBehavior::default());
    spec.set_defaults();
    behavior.set_defaults();
    let values = json!({"spec": spec, "behavior": behavior});
    definitions(include_str!("autoscaler.schema"), &mut SchemaReader::new(values))
}
