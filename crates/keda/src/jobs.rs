//! How many jobs are created, and which are deleted (spec 5).
