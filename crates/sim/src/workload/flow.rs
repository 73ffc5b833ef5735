//! Work that arrives, is done, waits or is lost.

/// Capacity of pods and of the queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ServiceCapacity {
    /// Units of work per second that one ready pod can do; absent: unlimited.
    pub per_pod: Option<f64>,
    /// Units that can wait; zero: work that is not served at once is lost.
    pub queue: f64,
}

/// Sums since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FlowTotals {
    /// Units that arrived.
    pub offered: f64,
    /// Units that were done.
    pub served: f64,
    /// Units that were lost.
    pub lost: f64,
    /// Units that a pod would have done if it had been ready all the time.
    pub per_pod: f64,
}

/// The work of one workload.
#[derive(Clone, Debug)]
pub struct WorkloadFlow {
    service: ServiceCapacity,
    /// Units per second that arrive now.
    pub rate: f64,
    /// Units that wait.
    pub backlog: f64,
    /// Sums since the start.
    pub totals: FlowTotals,
}

impl ServiceCapacity {
    /// Capacity of this many ready pods, in units per second.
    pub fn capacity(&self, ready: usize) -> f64 {
        match self.per_pod {
            _ if ready == 0 => 0.0,
            Some(per_pod) => per_pod * ready as f64,
            None => f64::INFINITY,
        }
    }
}

impl WorkloadFlow {
    /// A flow without work.
    pub fn new(service: ServiceCapacity) -> Self {
        Self { service, rate: 0.0, backlog: 0.0, totals: FlowTotals::default() }
    }

    /// Advances by `seconds` with this many ready pods, which share the work evenly.
    pub fn advance(&mut self, seconds: f64, ready: usize) {
        let arrived = self.rate * seconds;
        let waiting = self.backlog + arrived;
        let done = waiting.min(self.service.capacity(ready) * seconds);
        let rest = waiting - done;
        self.backlog = rest.min(self.service.queue);
        self.totals.offered += arrived;
        self.totals.served += done;
        self.totals.lost += rest - self.backlog;
        if ready > 0 {
            self.totals.per_pod += done / ready as f64;
        }
    }

    /// Rates with this many ready pods, without the backlog.
    pub fn rates(&self, ready: usize) -> FlowTotals {
        let served = self.rate.min(self.service.capacity(ready));
        let lost = if self.service.queue > 0.0 { 0.0 } else { self.rate - served };
        let per_pod = if ready > 0 { served / ready as f64 } else { 0.0 };
        FlowTotals { offered: self.rate, served, lost, per_pod }
    }

    /// Whether more work arrives than this many ready pods can do.
    pub fn is_short(&self, ready: usize) -> bool {
        // The tolerance covers rounding errors, since capacities are sums of fractions.
        self.rate > self.service.capacity(ready) * (1.0 + 1e-9)
    }

    /// Capacity of pods and of the queue.
    pub fn service(&self) -> ServiceCapacity {
        self.service
    }
}

impl FlowTotals {
    /// Mean rates from `earlier` until now.
    pub fn rates_since(&self, earlier: &Self, seconds: f64) -> Self {
        let rate = |now: f64, then: f64| if seconds > 0.0 { (now - then).max(0.0) / seconds } else { 0.0 };
        Self {
            offered: rate(self.offered, earlier.offered),
            served: rate(self.served, earlier.served),
            lost: rate(self.lost, earlier.lost),
            per_pod: rate(self.per_pod, earlier.per_pod),
        }
    }

    /// Sums of a constant load before the start.
    pub fn steady(rates: &Self, seconds: f64) -> Self {
        Self {
            offered: rates.offered * seconds,
            served: rates.served * seconds,
            lost: rates.lost * seconds,
            per_pod: rates.per_pod * seconds,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_queue_excess_work_is_lost() {
        let mut flow = WorkloadFlow::new(ServiceCapacity { per_pod: Some(10.0), queue: 0.0 });
        flow.rate = 30.0;
        flow.advance(2.0, 2);
        assert_eq!(flow.totals, FlowTotals { offered: 60.0, served: 40.0, lost: 20.0, per_pod: 20.0 });
        assert!(flow.is_short(2) && !flow.is_short(3));
        flow.advance(1.0, 0);
        assert_eq!((flow.totals.lost, flow.totals.per_pod, flow.backlog), (50.0, 20.0, 0.0));
    }

    #[test]
    fn a_queue_keeps_up_to_its_size() {
        let mut flow = WorkloadFlow::new(ServiceCapacity { per_pod: Some(10.0), queue: 50.0 });
        flow.rate = 30.0;
        flow.advance(2.0, 1);
        assert_eq!((flow.backlog, flow.totals.lost), (40.0, 0.0));
        flow.advance(1.0, 1);
        assert_eq!((flow.backlog, flow.totals.lost), (50.0, 10.0));
        flow.rate = 0.0;
        flow.advance(2.0, 2);
        assert_eq!((flow.backlog, flow.totals.served), (10.0, 70.0));
    }

    #[test]
    fn without_a_capacity_one_pod_serves_all_work() {
        let mut flow = WorkloadFlow::new(ServiceCapacity { per_pod: None, queue: 0.0 });
        flow.rate = 1e9;
        flow.advance(1.0, 1);
        assert_eq!((flow.totals.served, flow.totals.lost), (1e9, 0.0));
        assert!(!flow.is_short(1) && flow.is_short(0));
    }
}
