//! The index against a model that looks at everything every time.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::tests::{pod, selector};
use super::*;

const NAMESPACES: [&str; 2] = ["shop", "bank"];
const NAMES: [&str; 6] = ["p0", "p1", "p2", "p3", "p4", "p5"];
const KEYS: [&str; 3] = ["a", "b", "c"];
const VALUES: [&str; 3] = ["", "1", "2"];
const PHASES: [&str; 4] = ["Pending", "Running", "Succeeded", "Failed"];

#[derive(Default)]
struct Model {
    pods: BTreeMap<(String, String), api::pod::Pod>,
    seen: Option<BTreeSet<(String, String)>>,
    selectors: BTreeMap<AutoscalerKey, Selector>,
}

#[derive(Clone, Debug)]
enum Step {
    Apply(Box<api::pod::Pod>),
    Remove(&'static str, &'static str),
    Listing,
    Listed,
    Register(AutoscalerKey),
    Select(AutoscalerKey, Selector),
    Forget(AutoscalerKey),
}

impl Model {
    fn take(&mut self, step: &Step) {
        match step.clone() {
            Step::Apply(pod) => {
                let key = (pod.metadata.namespace.clone(), pod.metadata.name.clone());
                self.seen.iter_mut().for_each(|seen| _ = seen.insert(key.clone()));
                self.pods.insert(key, *pod);
            }
            Step::Remove(namespace, name) => _ = self.pods.remove(&(namespace.to_owned(), name.to_owned())),
            Step::Listing => self.seen = Some(BTreeSet::new()),
            Step::Listed => {
                if let Some(seen) = self.seen.take() {
                    self.pods.retain(|key, _| seen.contains(key));
                }
            }
            Step::Register(key) => _ = self.selectors.entry(key).or_insert_with(Selector::nothing),
            Step::Select(key, selector) => {
                _ = self.selectors.entry(key).and_modify(|known| *known = selector);
            }
            Step::Forget(key) => _ = self.selectors.remove(&key),
        }
    }

    fn matching(&self, namespace: &str, selector: &Selector) -> Vec<engine::Pod> {
        let pods = self.pods.values().filter(|pod| pod.metadata.namespace == namespace);
        let matching = pods.filter(|pod| selector.matches_map(&pod.metadata.labels));
        matching.map(|pod| pod.view(pod.spec.shape().into())).collect()
    }

    fn selected(&self, key: &AutoscalerKey) -> Vec<engine::Pod> {
        self.selectors.get(key).map_or_else(Vec::new, |selector| self.matching(&key.namespace, selector))
    }

    fn sharing(&self, key: &AutoscalerKey) -> Vec<AutoscalerKey> {
        let Some(own) = self.selectors.get(key) else { return Vec::new() };
        let pods = self.pods.values().filter(|pod| *pod.metadata.namespace == *key.namespace);
        let pods: Vec<_> = pods.filter(|pod| own.matches_map(&pod.metadata.labels)).collect();
        let shares = |(other, selector): &(&AutoscalerKey, &Selector)| {
            other.namespace == key.namespace && pods.iter().any(|p| selector.matches_map(&p.metadata.labels))
        };
        let found: Vec<AutoscalerKey> =
            self.selectors.iter().filter(shares).map(|(other, _)| other.clone()).collect();
        if found.len() > 1 { found } else { Vec::new() }
    }

    /// Namespaces, label sets, shapes, autoscalers and audiences that the index must have, no more and no less.
    fn counts(&self) -> [usize; 5] {
        let in_use = self.pods.keys().map(|(namespace, _)| namespace.as_str());
        let namespaces: BTreeSet<&str> =
            in_use.chain(self.selectors.keys().map(|key| &*key.namespace)).collect();
        let sets: BTreeSet<_> =
            self.pods.values().map(|pod| (&pod.metadata.namespace, &pod.metadata.labels)).collect();
        let mut shapes: Vec<_> = Vec::new();
        for pod in self.pods.values() {
            let shape = pod.spec.shape();
            if !shapes.contains(&shape) {
                shapes.push(shape);
            }
        }
        let audience =
            |(namespace, labels): &(&String, &BTreeMap<String, String>)| -> BTreeSet<&AutoscalerKey> {
                let here = self.selectors.iter().filter(|(key, _)| *key.namespace == **namespace);
                here.filter(|(_, selector)| selector.matches_map(labels)).map(|(key, _)| key).collect()
            };
        let audiences: BTreeSet<_> =
            sets.iter().map(audience).filter(|members| !members.is_empty()).collect();
        [namespaces.len(), sets.len(), shapes.len(), self.selectors.len(), audiences.len()]
    }
}

impl PodIndex {
    fn take(&mut self, step: &Step) {
        match step {
            Step::Apply(pod) => self.apply(pod),
            Step::Remove(namespace, name) => self.remove(namespace, name),
            Step::Listing => self.listing(),
            Step::Listed => self.listed(),
            Step::Register(key) => self.register(key),
            Step::Select(key, selector) => self.select(key, selector),
            Step::Forget(key) => self.forget(key),
        }
    }

    fn counts(&self) -> [usize; 5] {
        let [namespaces, _, sets] = self.labels.counts();
        let [autoscalers, audiences] = self.selections.counts();
        [namespaces, sets, self.templates.len(), autoscalers, audiences]
    }
}

fn keys() -> Vec<AutoscalerKey> {
    let names = ["w", "x", "y", "z"];
    let all = NAMESPACES.iter().flat_map(|namespace| {
        let hpas = names.iter().map(|name| AutoscalerKey::hpa(namespace, name));
        hpas.chain([AutoscalerKey::autoscaler(namespace, "w")])
    });
    all.collect()
}

fn pods() -> impl Strategy<Value = api::pod::Pod> {
    let labels = prop::collection::vec(prop::option::of(prop::sample::select(&VALUES[..])), KEYS.len());
    let place = (prop::sample::select(&NAMESPACES[..]), prop::sample::select(&NAMES[..]));
    (place, labels, prop::sample::select(&PHASES[..]), 1..3_u8).prop_map(
        |((namespace, name), labels, phase, cores)| {
            let labels: Vec<_> =
                KEYS.into_iter().zip(labels).filter_map(|(key, value)| Some((key, value?))).collect();
            let mut pod = pod(namespace, name, &labels);
            pod.status.phase = phase.into();
            for container in &mut pod.spec.containers {
                container
                    .resources
                    .requests
                    .insert("cpu".into(), cores.to_string().parse().unwrap_or_default());
            }
            pod
        },
    )
}

fn selectors() -> impl Strategy<Value = Selector> {
    let key = || prop::sample::select(&KEYS[..]);
    let value = || prop::sample::select(&VALUES[..]);
    let requirement = prop_oneof![
        4 => (key(), value()).prop_map(|(key, value)| format!("{key}={value}")),
        2 => (key(), value(), value()).prop_map(|(key, one, two)| format!("{key} in ({one},{two})")),
        1 => (key(), value(), value()).prop_map(|(key, one, two)| format!("{key} notin ({one},{two})")),
        1 => (key(), value()).prop_map(|(key, value)| format!("{key}!={value}")),
        1 => key().prop_map(str::to_owned),
        1 => key().prop_map(|key| format!("!{key}")),
        1 => key().prop_map(|key| format!("{key}>1")),
    ];
    let all_of = prop::collection::vec(requirement, 0..4).prop_map(|parts| selector(&parts.join(",")));
    prop_oneof![12 => all_of, 1 => Just(Selector::nothing())]
}

fn steps() -> impl Strategy<Value = Step> {
    let key = || prop::sample::select(keys());
    let place = || (prop::sample::select(&NAMESPACES[..]), prop::sample::select(&NAMES[..]));
    prop_oneof![
        8 => pods().prop_map(|pod| Step::Apply(Box::new(pod))),
        3 => place().prop_map(|(namespace, name)| Step::Remove(namespace, name)),
        1 => Just(Step::Listing),
        1 => Just(Step::Listed),
        3 => key().prop_map(Step::Register),
        6 => (key(), selectors()).prop_map(|(key, selector)| Step::Select(key, selector)),
        1 => key().prop_map(Step::Forget),
    ]
}

fn by_name(mut pods: Vec<engine::Pod>) -> Vec<engine::Pod> {
    pods.sort_by(|a, b| a.name.cmp(&b.name));
    pods
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn the_index_knows_what_a_scan_finds(
        steps in prop::collection::vec(steps(), 1..80),
        selectors_in_use in prop::collection::vec(selectors(), 4),
    ) {
        let (mut index, mut model) = (PodIndex::default(), Model::default());
        for key in keys().into_iter().take(3) {
            index.register(&key);
            model.take(&Step::Register(key));
        }
        for step in &steps {
            let before: Vec<_> = keys().iter().map(|key| (model.selected(key), index.pods_changed(key))).collect();
            index.take(step);
            model.take(step);
            prop_assert_eq!(index.len(), model.pods.len());
            prop_assert_eq!(index.counts(), model.counts());
            for (key, (pods, changed)) in keys().iter().zip(before) {
                let selected = model.selected(key);
                prop_assert_eq!(&by_name(index.selected(key)), &selected, "{}", key);
                prop_assert_eq!(index.sharing(key), model.sharing(key), "{}", key);
                prop_assert!(pods == selected || index.pods_changed(key) != changed, "{} changed unseen", key);
            }
        }
        for namespace in NAMESPACES {
            for selector in &selectors_in_use {
                let found = by_name(index.matching(namespace, selector));
                prop_assert_eq!(found, model.matching(namespace, selector), "{}", selector);
            }
        }
        index.listing();
        index.listed();
        for key in keys() {
            index.forget(&key);
        }
        prop_assert_eq!(index.counts(), [0; 5]);
        prop_assert_eq!(index.labels.counts(), [0; 3]);
    }

    /// Asked again without a change, the same pods come in the same order.
    #[test]
    fn order_of_selected_pods_is_stable(pods in prop::collection::vec(pods(), 1..30), others in prop::collection::vec(selectors(), 4)) {
        let mut index = PodIndex::default();
        let keys = keys();
        let Some((first, rest)) = keys.split_first() else { return Ok(()) };
        index.register(first);
        index.select(first, &Selector::everything());
        for pod in &pods {
            index.apply(pod);
        }
        let before = index.selected(first);
        for (key, selector) in rest.iter().zip(&others) {
            index.register(key);
            index.select(key, selector);
        }
        index.apply(&pod("bank", "another", &[]));
        prop_assert_eq!(index.selected(first), before);
    }
}
