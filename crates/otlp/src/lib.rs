//! Exports metrics and traces to an OpenTelemetry collector, over HTTP or gRPC (OTLP 1).
//!
//! ```text
//! settings     where telemetry is sent: variables OTEL_…                     pure
//! exposition   reads the text of /metrics, so that both exports are equal    pure
//! metrics      families as messages                                          pure
//! wire         messages of the protocol                                      pure
//! transport    sends a message to a collector                                needs a network
//! exporter     exports metrics again and again; logs changes of its state    needs a network
//! traces       queues traces and exports them                                needs a network
//! ```

mod exporter;
pub mod exposition;
mod metrics;
pub mod settings;
#[cfg(test)]
mod tests;
pub mod traces;
mod transport;
pub mod wire;

pub use exporter::MetricsExport;
pub use transport::{Collector, CollectorError, ExportError};
