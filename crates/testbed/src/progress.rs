//! The progress of builds on a terminal or in a log.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

/// Shows the progress of a build: a changing line on a terminal, otherwise a line at the start and one at the end.
pub struct Progress {
    // The output is written directly, so that the test runner does not capture it during builds of minutes.
    out: Box<dyn Write + Send>,
    terminal: bool,
    now: Option<Current>,
}

struct Current {
    title: String,
    since: Instant,
    drawn: bool,
}

/// The maximum width of a line; terminals may be no wider.
const MAX_LINE_WIDTH: usize = 78;

impl Progress {
    /// Progress on standard error.
    pub fn stderr() -> Self {
        Self { out: Box::new(io::stderr()), terminal: io::stderr().is_terminal(), now: None }
    }

    /// No progress at all.
    pub fn silent() -> Self {
        Self { out: Box::new(io::sink()), terminal: false, now: None }
    }

    /// Prints a separate line.
    pub(crate) fn note(&mut self, text: &str) {
        self.line(text);
    }

    pub(crate) fn begin(&mut self, title: &str) {
        if !self.terminal {
            self.line(&format!("{title}: building"));
        }
        self.now = Some(Current { title: title.to_owned(), since: Instant::now(), drawn: false });
    }

    /// Sets the current activity.
    pub(crate) fn doing(&mut self, what: &str) {
        let Some(current) = self.now.as_mut().filter(|_| self.terminal) else { return };
        current.drawn = true;
        let text = shorten(
            &format!("{}  {}  {what}", current.title, human(current.since.elapsed())),
            MAX_LINE_WIDTH,
        );
        // Errors are ignored, because the build does not depend on its progress output.
        let _ = write!(self.out, "\r\x1b[K{text}");
        let _ = self.out.flush();
    }

    pub(crate) fn end(&mut self, well: bool) {
        let Some(current) = self.now.take() else { return };
        if current.drawn {
            let _ = write!(self.out, "\r\x1b[K");
        }
        let how = if well { "ready after" } else { "failed after" };
        self.line(&format!("{}: {how} {}", current.title, human(current.since.elapsed())));
    }

    fn line(&mut self, text: &str) {
        let _ = writeln!(self.out, "{text}");
        let _ = self.out.flush();
    }
}

/// Formats a duration for people.
pub fn human(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0..10 => format!("{:.1} s", duration.as_secs_f64()),
        10..60 => format!("{seconds} s"),
        _ => format!("{} min {:02} s", seconds / 60, seconds % 60),
    }
}

fn shorten(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Page(Arc<Mutex<Vec<u8>>>);

    impl Write for Page {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn session(terminal: bool) -> String {
        let page = Page::default();
        let mut progress = Progress { out: Box::new(page.clone()), terminal, now: None };
        progress.begin("etcd 3.6.5");
        progress.doing("compiling go.etcd.io/bbolt");
        progress.end(true);
        progress.doing("nothing");
        String::from_utf8(page.0.lock().unwrap().clone()).unwrap()
    }

    #[test]
    fn terminal_line_is_redrawn_and_file_gets_two_lines() {
        assert_eq!(session(false), "etcd 3.6.5: building\netcd 3.6.5: ready after 0.0 s\n");
        let shown = session(true);
        assert!(shown.starts_with("\r\x1b[Ketcd 3.6.5  0.0 s  compiling go.etcd.io/bbolt"), "{shown:?}");
        assert!(shown.ends_with("\r\x1b[Ketcd 3.6.5: ready after 0.0 s\n"), "{shown:?}");
    }

    #[test]
    fn durations_and_long_lines_are_readable() {
        assert_eq!(human(Duration::from_millis(4321)), "4.3 s");
        assert_eq!(human(Duration::from_secs(59)), "59 s");
        assert_eq!(human(Duration::from_secs(340)), "5 min 40 s");
        assert_eq!(shorten("abc", 3), "abc");
        assert_eq!(shorten("äbcd", 3), "äb…");
    }
}
