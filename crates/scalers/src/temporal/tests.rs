use api::keda::KedaProfile;

use super::*;
use crate::parameters::notices;
use crate::test_support::{build, texts, trigger};

fn temporal(changed: &[(&str, &str)], profile: KedaProfile) -> Trigger {
    let mut given = trigger("temporal", &[("endpoint", "t:7233"), ("taskQueue", "q")]);
    given.metadata.extend(texts(changed));
    Trigger { profile, ..given }
}

fn error(trigger: &Trigger) -> String {
    build(trigger).err().map(|error| error.message).unwrap_or_default()
}

#[test]
fn rules_based_versioning_is_deprecated_in_2_20_and_removed_in_2_21() {
    let old = temporal(&[("buildId", "b")], KedaProfile::V2_20);
    assert_eq!(error(&old), "");
    assert_eq!(notices(TYPE.parameters, &old).len(), 1);
    let new = Trigger { profile: KedaProfile::V2_21, ..old };
    assert!(error(&new).contains("The 'buildId' setting is DEPRECATED and is removed in v2.21"));
    assert_eq!(notices(TYPE.parameters, &new), []);
}

#[test]
fn names_in_visibility_queries_have_no_quotes() {
    let running = ("includeRunningWorkflowCount", "true");
    assert_eq!(error(&temporal(&[running], KedaProfile::V2_21)), "");
    let quoted = temporal(&[running, ("workflowTaskQueueForCount", "w'x")], KedaProfile::V2_21);
    assert!(error(&quoted).contains("value \"w'x\" contains characters not allowed"));
    let alone = [("workflowTaskQueueForCount", "w")];
    assert!(error(&temporal(&alone, KedaProfile::V2_21)).contains("has no effect unless"));
    assert_eq!(error(&temporal(&alone, KedaProfile::V2_20)), "");
}
