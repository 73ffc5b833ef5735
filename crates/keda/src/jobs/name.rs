//! Names of the jobs to create, such that a creation that is repeated creates nothing.
//!
//! Kubernetes would add a random suffix to `generateName`, so that every request that is repeated, by a client without a
//! response or by another instance, creates one more job. Here the suffix follows from what the decision was made from: the
//! ScaledJob, its existing jobs, and the number of the new job. Decisions from the same jobs have the same names,
//! and the API server refuses the second job.

use std::collections::BTreeSet;

use api::keda::ScaledJob;
use sha2::{Digest as _, Sha256};

use super::{JobView, generate_name};

/// Characters of a suffix. Kubernetes' random ones have five, which are too few to be unique by themselves.
const SUFFIX_CHARS: usize = 10;

/// The longest name of a job, which is the value of a label of its pods.
const MAX_NAME_CHARS: usize = 63;

/// The alphabet of Kubernetes' random suffixes: no vowels, so that they form no words.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// The names of `count` new jobs. `is_used` says whether a job with this name existed not long ago: its name is not used again,
/// so that people and logs can tell jobs apart.
pub fn names(
    object: &ScaledJob,
    jobs: &[JobView],
    count: usize,
    is_used: impl Fn(&str) -> bool,
) -> Vec<String> {
    let existing: BTreeSet<&str> = jobs.iter().map(|job| job.name.as_str()).collect();
    let mut seed = Sha256::new();
    for part in [object.metadata.uid.as_str()].into_iter().chain(existing.iter().copied()) {
        seed.update(part);
        // No name or uid contains this, so that different lists have different bytes.
        seed.update([0]);
    }
    let prefix = generate_name(object);
    let prefix = prefix.get(..MAX_NAME_CHARS - SUFFIX_CHARS).unwrap_or(&prefix);
    let candidates = (0_u64..).map(|number| {
        let mut hash = seed.clone();
        hash.update(number.to_be_bytes());
        format!("{prefix}{}", suffix(&hash.finalize()))
    });
    candidates.filter(|name| !existing.contains(name.as_str()) && !is_used(name)).take(count).collect()
}

fn suffix(digest: &[u8]) -> String {
    let mut number = digest.iter().take(16).fold(0_u128, |number, byte| number << 8 | u128::from(*byte));
    let mut text = String::new();
    for _ in 0..SUFFIX_CHARS {
        let length = ALPHABET.len() as u128;
        let at = usize::try_from(number % length).unwrap_or_default();
        text.extend(ALPHABET.get(at).map(|byte| char::from(*byte)));
        number /= length;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(name: &str, uid: &str) -> ScaledJob {
        let mut object = ScaledJob::default();
        object.metadata.name = name.to_owned();
        object.metadata.uid = uid.to_owned();
        object
    }

    fn view(name: &str) -> JobView {
        JobView { name: name.to_owned(), ..JobView::default() }
    }

    #[test]
    fn the_same_decision_has_the_same_names() {
        let mail = object("mail", "u1");
        let (a, b) = (view("mail-a"), view("mail-b"));
        let first = names(&mail, &[a.clone(), b.clone()], 3, |_| false);
        assert_eq!(first, names(&mail, &[b.clone(), a.clone()], 3, |_| false));
        // A larger number of jobs begins with the same names.
        assert_eq!(first, names(&mail, &[a.clone(), b.clone()], 5, |_| false)[..3]);
        let distinct: BTreeSet<_> = [
            names(&mail, &[a.clone(), b], 1, |_| false),
            names(&mail, &[a], 1, |_| false),
            names(&object("mail", "u2"), &[view("mail-a")], 1, |_| false),
        ]
        .concat()
        .into_iter()
        .chain(first.iter().skip(1).cloned())
        .collect();
        assert_eq!(distinct.len(), 5, "{distinct:?}");
    }

    #[test]
    fn names_have_the_form_of_generated_ones() {
        for name in names(&object("mail", "u"), &[], 100, |_| false) {
            let suffix = name.strip_prefix("mail-").unwrap();
            assert!(suffix.len() == 10 && suffix.bytes().all(|byte| ALPHABET.contains(&byte)), "{name}");
        }
        let long = "x".repeat(60);
        for name in names(&object(&long, "u"), &[], 100, |_| false) {
            assert!(name.len() == 63 && name.starts_with(&long[..53]), "{name}");
        }
    }

    #[test]
    fn names_in_use_are_left_out() {
        let mail = object("mail", "u");
        let free = names(&mail, &[], 3, |_| false);
        assert_eq!(names(&mail, &[], 2, |name| name == free[0]), free[1..]);
    }
}
