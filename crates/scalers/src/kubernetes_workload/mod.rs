//! kubernetes-workload: how many pods a selector takes.
