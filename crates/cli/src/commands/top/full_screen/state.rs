//! What the full-screen view shows, and what keys change.

use engine::explain::Explanation;

use super::super::Sort;
use super::super::overview::{AutoscalerLine, Overview, sorted};
use super::chart::{MetricTrend, ReplicaPoint};

/// What is shown.
pub(super) struct TopState {
    pub(super) overview: Overview,
    /// Which namespaces are shown, in words.
    pub(super) place: String,
    /// Whether lines have a namespace.
    pub(super) all_namespaces: bool,
    pub(super) sort: Sort,
    pub(super) page: TopPage,
    /// The page that the help covers.
    behind_help: TopPage,
    /// Namespace and name of the selected line; the first if it is gone.
    selected: Option<(String, String)>,
    /// Lines that contain this text are shown.
    pub(super) filter: String,
    pub(super) input: Option<TextInput>,
    /// How many lines of a page without a selection are above the screen.
    pub(super) scroll: usize,
    pub(super) details: Option<AutoscalerDetails>,
    /// The answer to the last command.
    pub(super) notice: Option<String>,
    /// Why the cluster could not be read.
    pub(super) lost: Option<String>,
    /// Lines of a page, by the last drawing.
    pub(super) page_rows: usize,
}

/// A page of the view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TopPage {
    /// All autoscalers.
    List,
    /// Causes, with the autoscalers that have them.
    Problems,
    /// One autoscaler.
    Details,
    /// The keys.
    Help,
}

/// A line that is being typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TextInput {
    /// `/` or `:`.
    pub(super) prompt: char,
    pub(super) text: String,
}

/// What is known of one autoscaler.
#[derive(Clone, Debug)]
pub(super) struct AutoscalerDetails {
    pub(super) namespace: String,
    pub(super) name: String,
    /// Why its count is what it is, or why that is not known.
    pub(super) why: Result<Explanation, ExplanationError>,
    pub(super) points: Vec<ReplicaPoint>,
    pub(super) trends: Vec<MetricTrend>,
}

/// Why an autoscaler cannot be explained.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ExplanationError {
    /// The name is that of no kind of autoscaler.
    #[error("{0} cannot be explained")]
    UnknownName(String),
    /// The controller has no decision about it.
    #[error("nothing was decided about it yet")]
    NoDecision,
    /// Neither its decisions nor the object could be read.
    #[error("{0}")]
    ReadFailed(String),
}

/// A key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TopKey {
    Char(char),
    Enter,
    Escape,
    Backspace,
    Up,
    Down,
    PageUp,
    PageDown,
    Home,
    End,
    /// Ctrl-C.
    Interrupt,
}

/// What the caller has to do after a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyOutcome {
    Draw,
    /// Read the details of the selected autoscaler.
    Open,
    Quit,
}

impl TopState {
    pub(super) fn new(overview: Overview, place: String, all_namespaces: bool, sort: Sort) -> Self {
        Self {
            overview,
            place,
            all_namespaces,
            sort,
            page: TopPage::List,
            behind_help: TopPage::List,
            selected: None,
            filter: String::new(),
            input: None,
            scroll: 0,
            details: None,
            notice: None,
            lost: None,
            page_rows: 1,
        }
    }

    /// Takes what was read anew. The selected autoscaler stays selected.
    pub(super) fn update(&mut self, mut overview: Overview) {
        sorted(&mut overview.autoscalers, self.sort);
        self.overview = overview;
    }

    /// The lines that the filter leaves.
    pub(super) fn visible(&self) -> Vec<&AutoscalerLine> {
        let wanted = self.filter.to_lowercase();
        let has = |line: &&AutoscalerLine| {
            let text = format!("{}/{} {}", line.namespace, line.name, line.decision);
            text.to_lowercase().contains(&wanted)
        };
        self.overview.autoscalers.iter().filter(has).collect()
    }

    /// The place of the selected line among the visible ones.
    pub(super) fn selected_row(&self) -> usize {
        let Some((namespace, name)) = &self.selected else { return 0 };
        let is_selected = |line: &&AutoscalerLine| line.namespace == *namespace && line.name == *name;
        self.visible().iter().position(is_selected).unwrap_or(0)
    }

    /// Namespace and name of the autoscaler whose details are wanted.
    pub(super) fn open(&self) -> Option<(String, String)> {
        let page = if self.page == TopPage::Help { self.behind_help } else { self.page };
        self.selected.clone().filter(|_| page == TopPage::Details)
    }

    /// Handles a key.
    pub(super) fn press(&mut self, key: TopKey) -> KeyOutcome {
        if key == TopKey::Interrupt {
            return KeyOutcome::Quit;
        }
        if let Some(input) = self.input.take() {
            return self.type_key(input, key);
        }
        self.notice = None;
        match key {
            TopKey::Char('q') => return KeyOutcome::Quit,
            TopKey::Char('?') if self.page != TopPage::Help => {
                self.behind_help = self.page;
                self.go(TopPage::Help);
            }
            TopKey::Char(prompt @ ('/' | ':')) => {
                if prompt == '/' {
                    self.go(TopPage::List);
                }
                let text = if prompt == '/' { self.filter.clone() } else { String::new() };
                self.input = Some(TextInput { prompt, text });
            }
            TopKey::Char('p') => self.go(TopPage::Problems),
            TopKey::Char('a') => self.go(TopPage::List),
            TopKey::Escape => self.back(),
            TopKey::Enter if self.page == TopPage::List => return self.open_selected(),
            TopKey::Down | TopKey::Char('j') => self.move_by(1),
            TopKey::Up | TopKey::Char('k') => self.move_by(-1),
            TopKey::PageDown | TopKey::Char(' ') => self.move_by(self.page_rows.cast_signed()),
            TopKey::PageUp => self.move_by(-self.page_rows.cast_signed()),
            TopKey::Home | TopKey::Char('g') => self.move_by(isize::MIN),
            TopKey::End | TopKey::Char('G') => self.move_by(isize::MAX),
            _ => {}
        }
        KeyOutcome::Draw
    }

    fn go(&mut self, page: TopPage) {
        (self.page, self.scroll) = (page, 0);
    }

    /// Esc: closes the page, or removes the filter of the list.
    fn back(&mut self) {
        match self.page {
            TopPage::Help => self.go(self.behind_help),
            TopPage::Details | TopPage::Problems => self.go(TopPage::List),
            TopPage::List => self.filter.clear(),
        }
    }

    fn open_selected(&mut self) -> KeyOutcome {
        let row = self.selected_row();
        let Some(line) = self.visible().get(row).map(|line| (line.namespace.clone(), line.name.clone()))
        else {
            return KeyOutcome::Draw;
        };
        self.selected = Some(line);
        self.details = None;
        self.go(TopPage::Details);
        KeyOutcome::Open
    }

    /// Moves the selection of the list, or scrolls another page.
    fn move_by(&mut self, rows: isize) {
        if self.page != TopPage::List {
            // The drawing bounds it by the length of the page.
            self.scroll = self.scroll.saturating_add_signed(rows);
            return;
        }
        let row = self.selected_row().saturating_add_signed(rows);
        let visible = self.visible();
        let line = visible.get(row.min(visible.len().saturating_sub(1)));
        self.selected = line.map(|line| (line.namespace.clone(), line.name.clone()));
    }

    fn type_key(&mut self, mut input: TextInput, key: TopKey) -> KeyOutcome {
        match key {
            TopKey::Char(typed) => input.text.push(typed),
            TopKey::Backspace if input.text.pop().is_none() => return KeyOutcome::Draw,
            TopKey::Escape => {
                if input.prompt == '/' {
                    self.filter.clear();
                }
                return KeyOutcome::Draw;
            }
            TopKey::Enter if input.prompt == ':' => return self.command(input.text.trim()),
            TopKey::Enter => return KeyOutcome::Draw,
            _ => {}
        }
        if input.prompt == '/' {
            self.filter.clone_from(&input.text);
        }
        self.input = Some(input);
        KeyOutcome::Draw
    }

    fn command(&mut self, text: &str) -> KeyOutcome {
        let mut words = text.split_whitespace();
        match (words.next().unwrap_or_default(), words.next()) {
            ("q" | "quit", None) => return KeyOutcome::Quit,
            ("", None) => {}
            ("a" | "all", None) => {
                self.filter.clear();
                self.go(TopPage::List);
            }
            (kind @ ("hpa" | "so" | "sj" | "autoscaler"), None) => {
                self.filter = format!("{kind}/");
                self.go(TopPage::List);
            }
            ("p" | "problems", None) => self.go(TopPage::Problems),
            ("help", None) => return self.press(TopKey::Char('?')),
            ("sort", Some(order)) => match <Sort as clap::ValueEnum>::from_str(order, true) {
                Ok(sort) => {
                    self.sort = sort;
                    sorted(&mut self.overview.autoscalers, sort);
                }
                Err(_) => self.notice = Some("sort by pressure, name or replicas".to_owned()),
            },
            _ => self.notice = Some(format!("there is no command {text}; ? shows those there are")),
        }
        KeyOutcome::Draw
    }
}
