//! An older revision of the controller and this one, one after the other on the same localkube with 10,000 autoscalers. The old one
//! runs before and after the new one, so that a machine that becomes slower or faster meanwhile does not count.

use std::time::Duration;

use crate::alone::WORKLOADS;
use crate::measure::{ControllerMeasurement, MeasuredController};
use crate::shared::plimsoll::PlimsollProcess;
use crate::shared::server::ServerProcess;
use crate::shared::table::{ComparisonTable, mebibytes};
use crate::shared::versions::{COLUMNS, NO_HISTORY, RATIO_LIMIT, Version};
use crate::{MEASUREMENT_WINDOW, SYNC_PERIOD, controller_flags};

const END_TIMEOUT: Duration = Duration::from_mins(1);

/// What one process used while values were constant, and while they changed in every period.
struct Measurements {
    constant: ControllerMeasurement,
    changing: ControllerMeasurement,
}

pub(crate) async fn run() -> bool {
    eprintln!("creating {} autoscalers and their pods on localkube", WORKLOADS.autoscalers);
    let mut server = ServerProcess::start().await;
    let before = measure(&mut server, Version::Old).await;
    let new = measure(&mut server, Version::New).await;
    let after = measure(&mut server, Version::Old).await;
    let title =
        format!("controller, {} autoscalers × 10 pods on localkube: two revisions", WORKLOADS.autoscalers);
    let mut table = ComparisonTable::with_columns(&title, COLUMNS);
    for (name, of) in [
        ("constant values", (|all| &all.constant) as fn(&Measurements) -> &ControllerMeasurement),
        ("values that change", |all| &all.changing),
    ] {
        let mean = |value: fn(&ControllerMeasurement) -> f64| value(of(&before)).midpoint(value(of(&after)));
        let mut row = |what: &str, value: fn(&ControllerMeasurement) -> f64, limit| {
            table.row(&format!("{name}: {what}"), mean(value), value(of(&new)), 1, limit);
        };
        row("CPU per sync, µs", ControllerMeasurement::cpu_per_sync, Some(RATIO_LIMIT));
        row("memory, MiB", |measured| mebibytes(measured.usage.resident), Some(RATIO_LIMIT));
    }
    table.good()
}

async fn measure(server: &mut ServerProcess, version: Version) -> Measurements {
    eprintln!("measuring the {version:?} revision");
    server.command("constant");
    let flags = version.known_flags("controller", &controller_flags(&[NO_HISTORY.to_owned()]));
    let mut process =
        PlimsollProcess::start_program(&version.binary(), "controller", &server.kubeconfig, &flags);
    let controller = MeasuredController::new(process.pid(), process.port, None);
    controller.until_reconciled_twice(WORKLOADS.autoscalers).await;
    tokio::time::sleep(SYNC_PERIOD).await;
    let constant = controller.measure(MEASUREMENT_WINDOW).await;
    server.command("change");
    tokio::time::sleep(SYNC_PERIOD * 2).await;
    let changing = controller.measure(MEASUREMENT_WINDOW).await;
    process.check();
    process.end(END_TIMEOUT).await;
    Measurements { constant, changing }
}
