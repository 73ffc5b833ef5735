//! Jobs whose creation had no clear response.

use std::collections::BTreeMap;

/// How often a name must be found taken before it is given up. By then the watch has shown a job that an earlier request created.
const MAX_TAKEN: u32 = 3;

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

    /// Counts that a name was found taken; whether it was so often that the job must be somebody else's.
    pub(crate) fn is_given_up(&mut self, name: &str) -> bool {
        let taken = self.0.entry(name.to_owned()).or_default();
        *taken += 1;
        *taken >= MAX_TAKEN
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
        assert_eq!([jobs.is_given_up("a"), jobs.is_given_up("a")], [false, false]);
        // A further attempt does not begin anew.
        jobs.insert("a");
        assert!(jobs.is_given_up("a") && !jobs.is_given_up("b"));
        jobs.remove("a");
        assert_eq!(jobs.names(), ["b"]);
        assert!(!jobs.is_given_up("a"));
    }
}
