//! The operator on a cluster in memory, with scripted sources, in paused time.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod admission;
mod authentication_users;
mod cached_metrics;
mod client_faults;
mod clocks;
mod concurrency;
mod cooldowns;
mod direct;
mod env;
mod external_metrics;
mod failures;
mod fallbacks;
mod faults;
mod formulas;
mod hostile_tenant;
mod hpa_observations;
mod hpas;
mod jobs;
mod label_selector;
mod lifecycle;
mod pauses;
mod random_sources;
mod raw_metrics;
mod records;
mod secret_access;
mod soak;
mod sources;
mod split_brain;
mod stale_reads;
mod strict;
mod supervision;
mod targets;
mod unpolled;
mod wake;
