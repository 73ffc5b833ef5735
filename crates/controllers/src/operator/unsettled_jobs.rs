//! Jobs whose creation had no clear response.

use std::collections::BTreeMap;

/// How often a name must be found taken before it is given up. By then the watch has shown a job that an earlier request created.
const MAX_TAKEN_COUNTS: u32 = 3;

/// Names of jobs whose creation had no clear response: they may exist, or come to exist when a late request is carried out. Each with
/// how often it was found taken by a job that could not be read.
#[derive(Debug, Default)]
pub(crate) struct UnsettledJobs(BTreeMap<String, u32>);

impl UnsettledJobs {
    /// Adds a name.
    pub(crate) fn insert(&mut self, name: &str) {
        self.0.entry(name.to_owned()).or_default();
    }

    /// Removes a name that is settled.
    pub(crate) fn remove(&mut self, name: &str) {
        self.0.remove(name);
    }

    /// All names.
    pub(crate) fn names(&self) -> Vec<String> {
        self.0.keys().cloned().collect()
    }

    /// Counts that a name was found taken; returns whether the name is given up, because the job must belong to another owner.
    pub(crate) fn count_taken(&mut self, name: &str) -> bool {
        let taken = self.0.entry(name.to_owned()).or_default();
        *taken += 1;
        *taken >= MAX_TAKEN_COUNTS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_stay_taken_are_given_up() {
        let mut jobs = UnsettledJobs::default();
        jobs.insert("a");
        jobs.insert("b");
        assert_eq!([jobs.count_taken("a"), jobs.count_taken("a")], [false, false]);
        // A further attempt does not begin anew.
        jobs.insert("a");
        assert!(jobs.count_taken("a") && !jobs.count_taken("b"));
        jobs.remove("a");
        assert_eq!(jobs.names(), ["b"]);
        assert!(!jobs.count_taken("a"));
    }
}
