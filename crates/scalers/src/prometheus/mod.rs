//! prometheus: the result of a PromQL query.
