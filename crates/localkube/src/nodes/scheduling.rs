//! Scheduling: chooses a node that has room and that the pod tolerates, the least loaded first.

use std::collections::BTreeMap;

use super::template::{PodTemplate, ResourceAmounts};
use super::view::{Taint, Toleration};

/// A node as the scheduler sees it.
#[derive(Clone, Debug, Default)]
pub(crate) struct SchedulableNode {
    pub(crate) name: String,
    /// Whether the node object exists.
    pub(crate) exists: bool,
    /// Whether the machine is gone, although the object still exists.
    pub(crate) lost: bool,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) taints: Vec<Taint>,
    pub(crate) unschedulable: bool,
    pub(crate) room: ResourceAmounts,
    pub(crate) used: ResourceAmounts,
}

impl ResourceAmounts {
    pub(crate) fn add(&mut self, other: Self) {
        self.cpu = self.cpu.saturating_add(other.cpu);
        self.memory = self.memory.saturating_add(other.memory);
        self.pods = self.pods.saturating_add(other.pods);
    }

    pub(crate) fn remove(&mut self, other: Self) {
        self.cpu = self.cpu.saturating_sub(other.cpu);
        self.memory = self.memory.saturating_sub(other.memory);
        self.pods = self.pods.saturating_sub(other.pods);
    }
}

/// No node can run a pod; the text is the scheduler's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Unschedulable(pub(crate) String);

/// The node for a pod of this template, or the scheduler's message why there is none.
pub(crate) fn choose(
    schedulable: &[SchedulableNode],
    template: &PodTemplate,
) -> Result<usize, Unschedulable> {
    let fitting = schedulable
        .iter()
        .enumerate()
        .filter(|(_, node)| node.exists && !node.lost && node.objections(template).is_empty());
    let least = fitting.min_by_key(|(index, node)| (node.load(template.request), *index));
    least.map(|(index, _)| index).ok_or_else(|| Unschedulable(reason(schedulable, template)))
}

fn reason(schedulable: &[SchedulableNode], template: &PodTemplate) -> String {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let existing = schedulable.iter().filter(|node| node.exists);
    for objection in existing.clone().flat_map(|node| node.objections(template)) {
        *counts.entry(objection).or_default() += 1;
    }
    if counts.is_empty() {
        return "no nodes available to schedule pods".to_owned();
    }
    let mut reasons: Vec<String> =
        counts.into_iter().map(|(reason, count)| format!("{count} {reason}")).collect();
    reasons.sort();
    format!("0/{} nodes are available: {}.", existing.count(), reasons.join(", "))
}

impl SchedulableNode {
    /// All reasons against this node; if the pod must not run there at all, only the first of those.
    fn objections(&self, template: &PodTemplate) -> Vec<String> {
        if self.unschedulable {
            return vec!["node(s) were unschedulable".to_owned()];
        }
        if let Some(taint) = self.taints.iter().find(|taint| taint.repels(&template.tolerations)) {
            let value = taint.value.as_deref().unwrap_or_default();
            return vec![format!("node(s) had untolerated taint {{{}: {value}}}", taint.key)];
        }
        if template.node_selector.iter().any(|(name, value)| self.labels.get(name) != Some(value)) {
            return vec!["node(s) didn't match Pod's node affinity/selector".to_owned()];
        }
        let ResourceAmounts { cpu, memory, pods } = template.request;
        let lacks = |asked: i64, used: i64, room: i64| asked > 0 && used.saturating_add(asked) > room;
        let mut objections = Vec::new();
        if lacks(pods, self.used.pods, self.room.pods) {
            objections.push("Too many pods".to_owned());
        }
        if lacks(cpu, self.used.cpu, self.room.cpu) {
            objections.push("Insufficient cpu".to_owned());
        }
        if lacks(memory, self.used.memory, self.room.memory) {
            objections.push("Insufficient memory".to_owned());
        }
        objections
    }

    /// The utilization of the node's scarcest resource with this pod, in millionths.
    fn load(&self, request: ResourceAmounts) -> i128 {
        let share = |asked: i64, used: i64, room: i64| {
            (i128::from(used) + i128::from(asked)) * 1_000_000 / i128::from(room.max(1))
        };
        let cpu = share(request.cpu, self.used.cpu, self.room.cpu);
        let memory = share(request.memory, self.used.memory, self.room.memory);
        cpu.max(memory).max(share(request.pods, self.used.pods, self.room.pods))
    }
}

impl Taint {
    fn repels(&self, tolerations: &[Toleration]) -> bool {
        matches!(self.effect.as_deref(), Some("NoSchedule" | "NoExecute"))
            && !tolerations.iter().any(|toleration| toleration.covers(self))
    }
}

impl Toleration {
    fn covers(&self, taint: &Taint) -> bool {
        let says = |mine: &Option<String>, other: &str| {
            mine.as_deref().is_none_or(|mine| mine.is_empty() || mine == other)
        };
        let value = self.value.as_deref().unwrap_or_default() == taint.value.as_deref().unwrap_or_default();
        says(&self.effect, taint.effect.as_deref().unwrap_or_default())
            && says(&self.key, &taint.key)
            && (self.operator.as_deref() == Some("Exists") || value)
    }
}

#[cfg(test)]
mod tests {
    use super::super::template::tests::template;
    use super::*;
    use serde_json::json;

    fn schedulable(count: usize) -> Vec<SchedulableNode> {
        let room = ResourceAmounts { cpu: 1000, memory: 1 << 30, pods: 2 };
        let node = |n: usize| SchedulableNode {
            name: format!("node-{n}"),
            exists: true,
            labels: [("kubernetes.io/hostname".to_owned(), format!("node-{n}"))].into(),
            room,
            ..SchedulableNode::default()
        };
        (1..=count).map(node).collect()
    }

    fn asking(cpu: &str, memory: &str) -> PodTemplate {
        template(json!({"containers": [{"resources": {"requests": {"cpu": cpu, "memory": memory}}}]}))
    }

    fn taint(node: &mut SchedulableNode, key: &str, effect: &str) {
        node.taints.push(serde_json::from_value(json!({"key": key, "effect": effect})).unwrap());
    }

    #[test]
    fn pods_go_to_the_least_loaded_node() {
        let mut schedulable = schedulable(3);
        let template = asking("300m", "1Mi");
        let chosen: Vec<usize> = (0..6)
            .map(|_| {
                let index = choose(&schedulable, &template).unwrap();
                schedulable[index].used.add(template.request);
                index
            })
            .collect();
        assert_eq!(chosen, [0, 1, 2, 0, 1, 2]);
        assert_eq!(
            choose(&schedulable, &template),
            Err(Unschedulable("0/3 nodes are available: 3 Too many pods.".to_owned()))
        );
        schedulable[1].used.remove(template.request);
        assert_eq!(choose(&schedulable, &template), Ok(1));
    }

    #[test]
    fn unschedulable_message_matches_the_scheduler() {
        let mut schedulable = schedulable(4);
        schedulable[0].used.cpu = 500;
        schedulable[1].unschedulable = true;
        taint(&mut schedulable[2], "dedicated", "NoSchedule");
        schedulable[3].exists = false;
        let says = |schedulable: &[SchedulableNode], template: &PodTemplate| {
            choose(schedulable, template).unwrap_err().0
        };
        assert_eq!(
            says(&schedulable, &asking("600m", "2Gi")),
            "0/3 nodes are available: 1 Insufficient cpu, 1 Insufficient memory, \
             1 node(s) had untolerated taint {dedicated: }, 1 node(s) were unschedulable."
        );
        assert_eq!(says(&[], &asking("1", "1")), "no nodes available to schedule pods");
    }

    #[test]
    fn node_selectors_and_tolerations_are_respected() {
        let mut schedulable = schedulable(2);
        let second = template(json!({"nodeSelector": {"kubernetes.io/hostname": "node-2"}}));
        assert_eq!(choose(&schedulable, &second), Ok(1));
        let nowhere = template(json!({"nodeSelector": {"zone": "a"}}));
        let reason = choose(&schedulable, &nowhere).unwrap_err().0;
        assert_eq!(reason, "0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector.");
        for node in &mut schedulable {
            taint(node, "a", "NoExecute");
            taint(node, "b", "PreferNoSchedule");
        }
        assert!(choose(&schedulable, &asking("1m", "1")).is_err());
        for toleration in [
            json!({"key": "a", "operator": "Exists"}),
            json!({"operator": "Exists"}),
            json!({"key": "a", "value": "", "effect": "NoExecute"}),
        ] {
            let tolerant = template(json!({"tolerations": [toleration]}));
            assert_eq!(choose(&schedulable, &tolerant), Ok(0), "{toleration}");
        }
        let other =
            template(json!({"tolerations": [{"key": "a", "operator": "Exists", "effect": "NoSchedule"}]}));
        assert!(choose(&schedulable, &other).is_err());
    }
}
