//! Scaling behavior of autoscalers.

use serde_json::{Value, json};

use super::random::RandomSource;

/// A behavior, and the length of its windows in seconds.
///
/// Windows and periods are so short that they have ended when a step is compared. All policies of an autoscaler have one
/// period: with several, the intermediate replica counts would depend on the exact time of each controller's sync.
#[derive(Clone, Debug)]
pub(crate) struct Behavior {
    pub(crate) json: Value,
    pub(crate) memory: i64,
}

impl Behavior {
    pub(crate) fn any(random: &mut RandomSource) -> Self {
        let period = random.between(1, 2);
        let (mut json, mut memory) = (json!({}), 0);
        for direction in ["scaleUp", "scaleDown"] {
            if random.once_in(4) {
                continue;
            }
            let (rules, remembers) = rules(random, period);
            memory = memory.max(remembers);
            if let Some(json) = json.as_object_mut() {
                json.insert(direction.to_owned(), rules);
            }
        }
        // Absent policies default to those of Kubernetes: 100 % or 4 pods in 15 seconds, longer than a step may take.
        let fast = json!({"policies": [{"type": "Percent", "value": 900, "periodSeconds": period}]});
        if let Some(json) = json.as_object_mut() {
            for direction in ["scaleUp", "scaleDown"] {
                json.entry(direction).or_insert_with(|| fast.clone());
            }
        }
        Self { json, memory: memory.max(period) }
    }
}

fn rules(random: &mut RandomSource, period: i64) -> (Value, i64) {
    let mut rules = serde_json::Map::new();
    let mut memory = 0;
    if random.once_in(2) {
        let window = random.of([0, 0, 1, 2]);
        rules.insert("stabilizationWindowSeconds".to_owned(), window.into());
        memory = window;
    }
    let policy = |random: &mut RandomSource| {
        let (kind, value) = if random.once_in(2) {
            ("Pods", random.of([1, 2, 4, 100]))
        } else {
            ("Percent", random.of([10, 50, 100, 900]))
        };
        json!({"type": kind, "value": value, "periodSeconds": period})
    };
    let first = policy(random);
    let mut policies = vec![first];
    if random.once_in(2) {
        policies.push(policy(random));
    }
    rules.insert("policies".to_owned(), policies.into());
    match random.below(8) {
        0 | 4 => rules.insert("selectPolicy".to_owned(), "Disabled".into()),
        1 | 2 => rules.insert("selectPolicy".to_owned(), "Min".into()),
        3 => rules.insert("selectPolicy".to_owned(), "Max".into()),
        _ => None,
    };
    if random.once_in(3) {
        rules.insert("tolerance".to_owned(), random.of(["0", "50m", "0.2", "500m", "3"]).into());
    }
    (rules.into(), memory)
}
