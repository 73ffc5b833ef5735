//! The cost of recording: 10,000 autoscalers on localkube whose values change at every sync, first with every pass in memory and in files
//! (`--history 1h --record FOLDER`), then without recording (`--history 0s`).

use std::time::Duration;

use testbed::program::TempFolder;

use crate::alone::{MAX_MEMORY_MIB, WORKLOADS};
use crate::measure::{ControllerMeasurement, MeasuredController};
use crate::shared::server::ServerProcess;
use crate::shared::table;
use crate::workloads::Workloads;
use crate::{MEASUREMENT_WINDOW, SYNC_PERIOD, start_controller_with};

/// The maximum of the CPU time per sync with recording, divided by that without recording.
const MAX_CPU_RATIO: f64 = 1.1;
const END_TIMEOUT: Duration = Duration::from_mins(1);

pub(crate) async fn run() -> bool {
    eprintln!("creating {} autoscalers and their pods on localkube", WORKLOADS.autoscalers);
    let mut server = ServerProcess::start().await;
    server.command("change");
    let folder = TempFolder::new().unwrap();
    let (off, on) = (["--history=0s".to_owned()], flags(&folder));
    // The controller without recording is measured before and after, so that a machine whose speed changes meanwhile does not distort the ratio.
    let before = measure(&server, WORKLOADS, &off).await;
    let recorded = measure(&server, WORKLOADS, &on).await;
    let after = measure(&server, WORKLOADS, &off).await;
    println!("\n{} autoscalers × 10 pods on localkube, values change at every sync", WORKLOADS.autoscalers);
    let without = before.cpu_per_sync().midpoint(after.cpu_per_sync());
    table::row("CPU per sync without recording, µs", before.cpu_per_sync(), 1);
    table::row("… measured again afterwards, µs", after.cpu_per_sync(), 1);
    table::row("CPU per sync with recording, µs", recorded.cpu_per_sync(), 1);
    table::row("resident memory without recording, MiB", table::mebibytes(before.usage.resident), 1);
    let exported = |name: &str| recorded.after.get(name).unwrap_or(0.0);
    table::row("passes kept in memory, MiB", exported("plimsoll_record_bytes") / f64::from(1 << 20), 1);
    let kept = [
        table::at_most("CPU with recording, ratio", recorded.cpu_per_sync() / without, 3, MAX_CPU_RATIO),
        table::at_most("resident memory, MiB", table::mebibytes(recorded.usage.resident), 1, MAX_MEMORY_MIB),
        table::at_most(
            "… at most since the start, MiB",
            table::mebibytes(recorded.usage.peak),
            1,
            MAX_MEMORY_MIB,
        ),
        table::at_most(
            "passes that were not recorded",
            exported("plimsoll_recording_lost_passes_total"),
            0,
            0.0,
        ),
        table::at_most("recording ended by an error", exported("plimsoll_recording_stopped"), 0, 0.0),
    ];
    kept.into_iter().all(|kept| kept)
}

/// The flags of a controller that keeps every pass in memory and in files.
pub(crate) fn flags(folder: &TempFolder) -> [String; 2] {
    ["--history=1h".to_owned(), format!("--record={}", folder.path("passes").display())]
}

/// Measures one controller from its start to its end.
pub(crate) async fn measure(
    server: &ServerProcess,
    workloads: Workloads,
    flags: &[String],
) -> ControllerMeasurement {
    eprintln!("measuring {}", flags.join(" "));
    let mut ours = start_controller_with(&server.kubeconfig, flags);
    let controller = MeasuredController::new(ours.pid(), ours.port, None);
    controller.until_reconciled_twice(workloads.autoscalers).await;
    tokio::time::sleep(SYNC_PERIOD).await;
    let measured = controller.measure(MEASUREMENT_WINDOW).await;
    ours.check();
    ours.end(END_TIMEOUT).await;
    measured
}
