//! Prometheus: the rules of prometheus-adapter, what they discover, and the queries they become.
//!
//! ```text
//! config     the file, read strictly
//! template   Go templates between << and >>
//! mapper     which resource a word means: pod, pods, deployment.apps
//! rule       one rule, ready to be used: filters, names, labels of resources
//! registry   what discovery found: (resource, metric) -> (series, rule)
//! query      a question becomes PromQL
//! lint       what is wrong with a file, and what a rule does, step by step
//! client     asks Prometheus; identical questions are asked once
//! discovery  asks for series, rule by rule, without storms
//! answer     what Prometheus said becomes values
//! provider   answers custom, external and resource metrics
//! reload     watches the file
//! ```

pub mod answer;
pub mod client;
pub mod config;
pub mod discovery;
pub mod lint;
pub mod mapper;
pub mod names;
pub mod provider;
pub mod query;
pub mod registry;
pub mod reload;
pub mod rule;
pub mod template;
