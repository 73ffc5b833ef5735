//! What many objects say in the same words is kept once.

use std::collections::HashSet;

use api::keda::{Conditions, ScaledObject};

/// Lists that are there at least before it is looked whether they are still needed.
const FEW: usize = 64;

/// Lists of conditions. Thousands of objects that are well have the same.
#[derive(Debug, Default)]
pub(super) struct ConditionInterner {
    conditions: HashSet<Conditions>,
    /// SampleQuery many there may be before those that nobody has any more are forgotten.
    most: usize,
}

impl ConditionInterner {
    /// Replaces what another object has said before by that.
    pub(super) fn share(&mut self, object: &mut ScaledObject) {
        let said = &mut object.status.conditions;
        if let Some(known) = self.conditions.get(said) {
            *said = known.clone();
            return;
        }
        if self.conditions.len() >= self.most {
            self.conditions.retain(Conditions::are_shared);
            self.most = FEW.max(2 * self.conditions.len());
        }
        self.conditions.insert(said.clone());
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
    fn what_is_alike_is_kept_once_and_what_is_gone_not_at_all() {
        let mut interner = ConditionInterner::default();
        let (mut one, mut other) = (object("well"), object("well"));
        interner.share(&mut one);
        interner.share(&mut other);
        assert!(std::ptr::eq(
            one.status.conditions.iter().as_slice(),
            other.status.conditions.iter().as_slice()
        ));
        for number in 0..10 * FEW {
            interner.share(&mut object(&number.to_string()));
        }
        assert!(interner.conditions.len() <= FEW, "{}", interner.conditions.len());
        assert!(interner.conditions.contains(&one.status.conditions));

        // Who changes what it says does not change what others say.
        one.status.conditions.set(Condition::new(types::READY, ConditionStatus::False, "", "ill"));
        assert_eq!(other.status.conditions.state(types::READY), ConditionStatus::True);
    }
}
