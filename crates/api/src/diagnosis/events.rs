//! Causes in events: annotations in addition to the texts of Kubernetes and KEDA, which alerts match.

use std::collections::BTreeMap;

use super::{Concern, Diagnosis};

/// The annotation with the identifiers of the problems, separated by commas.
pub const CAUSES_ANNOTATION: &str = "plimsoll.dev/causes";
/// The annotation with the first problem and what to do about it.
pub const REMEDY_ANNOTATION: &str = "plimsoll.dev/remedy";

/// Problems that an event names.
const MAX_NAMED_CAUSES: usize = 4;

/// The annotations of warnings about a decision with these causes; none without a problem.
pub fn event_annotations(causes: &[Diagnosis]) -> BTreeMap<&'static str, String> {
    let mut problems = causes.iter().filter(|one| one.concern == Concern::Problem).peekable();
    let Some(first) = problems.peek() else { return BTreeMap::new() };
    let remedy = format!("{}: {} ({})", first.sentence, first.remedy, first.link);
    let mut ids: Vec<&str> = Vec::new();
    for problem in problems {
        if !ids.contains(&problem.id) && ids.len() < MAX_NAMED_CAUSES {
            ids.push(problem.id);
        }
    }
    BTreeMap::from([(CAUSES_ANNOTATION, ids.join(",")), (REMEDY_ANNOTATION, remedy)])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cause(id: &'static str, concern: Concern) -> Diagnosis {
        let (sentence, remedy, link) =
            (format!("{id} is wrong"), format!("repair {id}"), format!("page#{id}"));
        Diagnosis { id, concern, sentence, remedy, link }
    }

    #[test]
    fn annotations_name_problems_once_and_the_first_remedy() {
        let problem = |id| cause(id, Concern::Problem);
        let causes = [cause("limit", Concern::Limit), problem("a"), problem("b"), problem("a")];
        let expected = BTreeMap::from([
            (CAUSES_ANNOTATION, "a,b".to_owned()),
            (REMEDY_ANNOTATION, "a is wrong: repair a (page#a)".to_owned()),
        ]);
        assert_eq!(event_annotations(&causes), expected);
        assert!(event_annotations(&causes[..1]).is_empty());
    }
}
