//! The index by label gives what a look at every pod would give, and so does the compact form.

use std::collections::BTreeMap;

use api::metrics::{PodMetricsList, resource_samples};
use api::selector::Selector;
use proptest::prelude::*;

use super::super::usage::Usage;
use super::super::wire::WirePodList;
use super::*;

fn pod() -> impl Strategy<Value = Value> {
    let labels = prop::collection::btree_map("[ab]", "[xyz]", 0..3);
    let usage =
        prop::collection::btree_map(prop::sample::select(vec!["cpu", "memory", "gpu"]), 0_u32..9, 0..3);
    let containers = prop::collection::vec(("[cd]", usage), 0..3);
    ("[p-r]", labels, containers).prop_map(|(name, labels, containers)| {
        let containers: Vec<Value> = containers
            .into_iter()
            .map(|(name, usage)| {
                let usage: BTreeMap<_, _> = usage.into_iter().map(|(name, n)| (name, format!("{n}m"))).collect();
                json!({"name": name, "usage": usage})
            })
            .collect();
        json!({"metadata": {"name": name, "labels": labels}, "timestamp": "2026-01-01T00:00:00Z", "window": "1m0s",
            "containers": containers})
    })
}

proptest! {
    #[test]
    fn index_and_scan_select_the_same_pods(
        pods in prop::collection::vec(pod(), 0..8),
        selector in prop::sample::select(vec!["", "a=x", "a in (x)", "a in (x,y)", "a=x,b=y", "!a", "a!=x", "b", "a=q"]),
        resource in prop::sample::select(vec!["cpu", "memory", "gpu", "none"]),
        container in prop::sample::select(vec![None, Some("c"), Some("d")]),
    ) {
        let text = pod_list(&pods).to_string();
        let compact = Usage::from(serde_json::from_str::<WirePodList<'_>>(&text).unwrap());
        let mut list: PodMetricsList = serde_json::from_str(&text).unwrap();
        let stored = Usage::from(provided(&pod_list(&pods)));
        prop_assert_eq!(compact.has_labels(), list.items.iter().any(|item| !item.metadata.labels.is_empty()));
        prop_assert_eq!(compact.all(resource, container), stored.all(resource, container));
        let selector = Selector::parse(selector).unwrap();
        list.items.retain(|item| selector.matches_map(&item.metadata.labels));
        let expected = resource_samples(Ok(&list), resource, container).ok();
        prop_assert_eq!(&compact.selected(&selector, resource, container), &expected);
        prop_assert_eq!(&stored.selected(&selector, resource, container), &expected);
    }
}

#[test]
fn strings_with_escapes_are_decoded() {
    let text = r#"{"items": [{"metadata": {"name": "a\u0062", "labels": {"k\u0065y": "v\/1"}},
        "containers": [{"name": "\u0063", "usage": {"c\u0070u": "5"}}]}]}"#;
    let usage = Usage::from(serde_json::from_str::<WirePodList<'_>>(text).unwrap());
    let samples = usage.all("cpu", Some("c"));
    assert_eq!((&*samples[0].0, samples[0].1.milli.get()), ("ab", 5000));
    assert!(usage.has_labels());
}
