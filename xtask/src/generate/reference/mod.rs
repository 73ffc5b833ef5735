//! Reference pages of the documentation: `docs/reference/`.
//!
//! ```text
//! commands          the help of every command, as the program prints it
//! exported_metrics  every family that the sources define
//! resources         the fields of our custom resources
//! ```

mod commands;
mod exported_metrics;
mod resources;

use std::path::Path;

use super::definition::Definition;

/// The pages; `definitions` are those of all custom resources.
pub(super) fn files(root: &Path, definitions: &[Definition]) -> anyhow::Result<Vec<(String, String)>> {
    let pages = [
        ("commands", commands::page()?),
        ("exported-metrics", exported_metrics::page(root)?),
        ("resources", resources::page(definitions)),
    ];
    Ok(pages.map(|(name, text)| (format!("docs/reference/{name}.md"), text)).into())
}
