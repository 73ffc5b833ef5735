//! Draws on the alternate screen of a terminal and restores it.

use std::io::Write as _;

use crate::failure::{Failure, Outcome};

const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";
const HOME: &str = "\x1b[H";
const CLEAR_LINE: &str = "\x1b[K";
const CLEAR_REST: &str = "\x1b[J";

/// The alternate screen without a cursor. Dropping it restores the terminal.
pub(crate) struct Screen {
    last: String,
}

impl Screen {
    /// Enters the alternate screen.
    pub(crate) fn enter() -> Result<Self, Failure> {
        write(ENTER)?;
        Ok(Self { last: String::new() })
    }

    /// Replaces the shown text, cut to the height of the terminal.
    pub(crate) fn draw(&mut self, text: &str) -> Outcome {
        let height = terminal_size::terminal_size().map_or(usize::MAX, |(_, height)| usize::from(height.0));
        text.clone_into(&mut self.last);
        write(&frame(text, height))
    }

    /// Restores the terminal and prints the last text on it.
    pub(crate) fn leave(mut self) -> Outcome {
        let last = std::mem::take(&mut self.last);
        drop(self);
        write(&last)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // A failure to restore cannot be reported.
        let _ = write(LEAVE);
    }
}

/// The escape sequences that replace a text without flicker.
fn frame(text: &str, height: usize) -> String {
    let lines: Vec<String> = text.lines().take(height).map(|line| format!("{line}{CLEAR_LINE}")).collect();
    format!("{HOME}{}{CLEAR_REST}", lines.join("\r\n"))
}

fn write(text: &str) -> Outcome {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

/// Waits for SIGINT or SIGTERM.
pub(crate) async fn asked_to_stop() {
    #[cfg(unix)]
    if let Ok(mut terminate) = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
        tokio::select! {
            _ = tokio::signal::ctrl_c() => {}
            _ = terminate.recv() => {}
        }
        return;
    }
    // Without signal handlers the process ends by default.
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frame_overwrites_the_previous_and_fits_the_screen() {
        assert_eq!(frame("a\nb\nc\n", 2), "\x1b[Ha\x1b[K\r\nb\x1b[K\x1b[J");
        assert_eq!(frame("", 2), "\x1b[H\x1b[J");
    }
}
