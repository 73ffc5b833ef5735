//! Shares equal lists of conditions between objects, to save memory.

use std::collections::HashSet;

use api::keda::{Conditions, ScaledObject};

/// Lists that are held before unused ones are dropped.
const MIN_LISTS: usize = 64;

/// Lists of conditions. Thousands of healthy objects have the same.
#[derive(Debug, Default)]
pub(super) struct ConditionInterner {
    conditions: HashSet<Conditions>,
    /// Number of lists at which unused ones are dropped.
    max_lists: usize,
}

impl ConditionInterner {
    /// Replaces the conditions of an object by an equal, shared list.
    pub(super) fn intern(&mut self, object: &mut ScaledObject) {
        let conditions = &mut object.status.conditions;
        if let Some(known) = self.conditions.get(conditions) {
            *conditions = known.clone();
            return;
        }
        if self.conditions.len() >= self.max_lists {
            self.conditions.retain(Conditions::are_shared);
            self.max_lists = MIN_LISTS.max(2 * self.conditions.len());
        }
        self.conditions.insert(conditions.clone());
    }
}

#[cfg(test)]
mod tests {
    use api::keda::{Condition, ConditionStatus, types};

    use super::*;

    fn object(message: &str) -> ScaledObject {
        let mut object = ScaledObject::default();
        object.status.conditions.set(Condition::new(types::READY, ConditionStatus::True, "", message));
        object
    }

    #[test]
    fn equal_conditions_are_shared_and_unused_ones_dropped() {
        let mut interner = ConditionInterner::default();
        let (mut one, mut other) = (object("well"), object("well"));
        interner.intern(&mut one);
        interner.intern(&mut other);
        assert!(std::ptr::eq(
            one.status.conditions.iter().as_slice(),
            other.status.conditions.iter().as_slice()
        ));
        for number in 0..10 * MIN_LISTS {
            interner.intern(&mut object(&number.to_string()));
        }
        assert!(interner.conditions.len() <= MIN_LISTS, "{}", interner.conditions.len());
        assert!(interner.conditions.contains(&one.status.conditions));

        // A change of one object does not change the others.
        one.status.conditions.set(Condition::new(types::READY, ConditionStatus::False, "", "ill"));
        assert_eq!(other.status.conditions.state(types::READY), ConditionStatus::True);
    }
}
