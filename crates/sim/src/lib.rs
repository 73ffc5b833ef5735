//! Virtual time, workload and load models, reports: the engine without a cluster.
