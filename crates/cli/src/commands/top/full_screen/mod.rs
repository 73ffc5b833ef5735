//! `plimsoll top` on a terminal: a list, one autoscaler with its chart, and why.

mod chart;
mod draw;
mod state;
#[cfg(test)]
mod tests;

use std::io::{self, Stdout};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use ratatui_core::terminal::Terminal;
use ratatui_crossterm::CrosstermBackend;
use ratatui_crossterm::crossterm::cursor::{Hide, Show};
use ratatui_crossterm::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui_crossterm::crossterm::execute;
use ratatui_crossterm::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::{Overview, TopArgs, read_overview};
use crate::commands::get::pause;
use crate::commands::why::{record_explanation, status_explanation};
use crate::failure::{CommandResult, Failure, use_colour};
use crate::live::screen::stop_requested;
use crate::live::{AutoscalerName, ClusterClient, Scope, cluster_facts};
use chart::{MetricTrend, ReplicaPoint};
use state::{AutoscalerDetails, ExplanationError, KeyOutcome, TopKey, TopState};

/// Restores the terminal when it is dropped.
struct RestoredTerminal;

impl RestoredTerminal {
    fn enter() -> io::Result<(Self, Terminal<CrosstermBackend<Stdout>>)> {
        enable_raw_mode()?;
        let restored = Self;
        execute!(io::stdout(), EnterAlternateScreen, Hide)?;
        Ok((restored, Terminal::new(CrosstermBackend::new(io::stdout()))?))
    }
}

impl Drop for RestoredTerminal {
    fn drop(&mut self) {
        // A failure to restore cannot be reported.
        let _ = execute!(io::stdout(), Show, LeaveAlternateScreen);
        let _ = disable_raw_mode();
    }
}

/// What was read of the cluster.
struct Refreshed {
    overview: Result<Overview, Failure>,
    details: Option<AutoscalerDetails>,
    /// The time until the next read.
    wait: Duration,
}

/// Draws until the user quits.
pub(super) async fn run(
    args: &TopArgs,
    client: &ClusterClient,
    first: Overview,
    interval: Duration,
) -> CommandResult {
    let place = match client.scope(args.all_namespaces) {
        Scope::All => "all namespaces".to_owned(),
        Scope::Namespace(namespace) => format!("namespace {namespace}"),
    };
    let mut state = TopState::new(first, place, args.all_namespaces, args.sort);
    let colour = use_colour(&io::stdout());
    let (_restored, mut terminal) = RestoredTerminal::enter().map_err(|error| {
        Failure::Outside(format!("failed to draw on this terminal: {error}\n  remedy: --once prints a table"))
    })?;
    let mut keys = keys();
    let stop = stop_requested();
    tokio::pin!(stop);
    let mut next = Box::pin(refresh(args, client, None, interval, interval));
    loop {
        terminal.draw(|frame| draw::draw(frame, &mut state, colour, Timestamp::now()))?;
        tokio::select! {
            () = &mut stop => return Ok(()),
            event = keys.recv() => {
                let outcome = match event {
                    Some(event) => key(&event).map_or(KeyOutcome::Draw, |key| state.press(key)),
                    // The terminal is gone.
                    None => KeyOutcome::Quit,
                };
                match outcome {
                    KeyOutcome::Draw => {}
                    KeyOutcome::Open => {
                        next = Box::pin(refresh(args, client, state.open(), Duration::ZERO, interval));
                    }
                    KeyOutcome::Quit => return Ok(()),
                }
            }
            refreshed = &mut next => {
                match refreshed.overview {
                    Ok(overview) => {
                        state.update(overview);
                        state.lost = None;
                    }
                    // The last view stays, with its age.
                    Err(failure) => state.lost = Some(failure.to_string()),
                }
                state.details = refreshed.details.or(state.details.take());
                next = Box::pin(refresh(args, client, state.open(), refreshed.wait, interval));
            }
        }
    }
}

/// Reads the list, and one autoscaler if one is open, after a time.
async fn refresh(
    args: &TopArgs,
    client: &ClusterClient,
    open: Option<(String, String)>,
    wait: Duration,
    interval: Duration,
) -> Refreshed {
    tokio::time::sleep(wait).await;
    let began = Instant::now();
    let details = match open {
        Some((namespace, name)) => Some(details(client, namespace, name, Timestamp::now()).await),
        None => None,
    };
    let overview = read_overview(args, client, true).await;
    Refreshed { overview, details, wait: pause(interval, began) }
}

/// Reads one autoscaler.
async fn details(
    client: &ClusterClient,
    namespace: String,
    name: String,
    now: Timestamp,
) -> AutoscalerDetails {
    let (mut points, mut trends) = (Vec::new(), Vec::new());
    let why = match AutoscalerName::parse(&name) {
        None => Err(ExplanationError::UnknownName(name.clone())),
        Some(named) => match client.decisions_of(&namespace, &named).await {
            Ok(found) => {
                let records = &found.records;
                // Nothing is decided about an object that its annotations pause or switch off.
                let object = client.object(&namespace, &named).await.ok();
                let facts = object.map(|object| {
                    cluster_facts::of_annotations(named.kind, &object.hpa.metadata.annotations)
                });
                points = records.iter().map(ReplicaPoint::of).collect();
                trends = MetricTrend::of(records);
                let last = records.last().map(|record| {
                    let mut explanation = record_explanation(&named, record, facts.as_ref(), None, now);
                    explanation.rows.extend(found.warning());
                    explanation
                });
                last.ok_or(ExplanationError::NoDecision)
            }
            Err(missing) => match client.object(&namespace, &named).await {
                Ok(object) => Ok(status_explanation(&named, &object.hpa, &[], &missing, now)),
                Err(error) => {
                    let failure = client.failure("read the autoscaler", &error);
                    Err(ExplanationError::ReadFailed(failure.to_string()))
                }
            },
        },
    };
    AutoscalerDetails { namespace, name, why, points, trends }
}

/// Events of the terminal, read on a thread of their own because reading blocks.
fn keys() -> UnboundedReceiver<Event> {
    let (sender, receiver) = unbounded_channel();
    std::thread::spawn(move || {
        while let Ok(event) = event::read() {
            if sender.send(event).is_err() {
                return;
            }
        }
    });
    receiver
}

/// The key of an event; none if it is another event, such as a new size.
fn key(event: &Event) -> Option<TopKey> {
    let Event::Key(pressed) = event else { return None };
    if pressed.kind == KeyEventKind::Release {
        return None;
    }
    Some(match pressed.code {
        KeyCode::Char('c') if pressed.modifiers.contains(KeyModifiers::CONTROL) => TopKey::Interrupt,
        KeyCode::Char(_) if pressed.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) => {
            return None;
        }
        KeyCode::Char(typed) => TopKey::Char(typed),
        KeyCode::Enter => TopKey::Enter,
        KeyCode::Esc => TopKey::Escape,
        KeyCode::Backspace => TopKey::Backspace,
        KeyCode::Up => TopKey::Up,
        KeyCode::Down => TopKey::Down,
        KeyCode::PageUp => TopKey::PageUp,
        KeyCode::PageDown => TopKey::PageDown,
        KeyCode::Home => TopKey::Home,
        KeyCode::End => TopKey::End,
        _ => return None,
    })
}
