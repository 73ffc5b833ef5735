use ratatui_core::backend::TestBackend;
use ratatui_core::buffer::Cell;
use serde_json::json;

use super::super::Sort;
use super::state::TopPage;
use super::*;
use crate::commands::get::Entry;
use crate::live::objects::sample as object;
use crate::live::page::Page;
use crate::live::sample::{at, record_of};

const NOW: &str = "2026-01-05T09:15:00Z";
const MADE: &str = "2026-01-05T09:14:45Z";

fn entry(name: &str, replicas: i32, usages: &[i64]) -> Entry {
    let status = json!({"currentReplicas": replicas, "desiredReplicas": replicas});
    Entry { object: object(name, status), record: Some(record_of(name, MADE, replicas, usages)) }
}

fn overview(sort: Sort) -> Overview {
    let entries = [
        entry("busy", 4, &[150; 4]),
        entry("calm", 2, &[50; 2]),
        entry("blind", 3, &[]),
        entry("full", 10, &[400; 10]),
    ];
    Overview::of(&entries, None, sort, at(NOW))
}

fn state() -> TopState {
    TopState::new(overview(Sort::Pressure), "namespace shop".to_owned(), false, Sort::Pressure)
}

/// The screen as text.
fn screen(state: &mut TopState, width: u16, height: u16) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw::draw(frame, state, false, at(NOW))).unwrap();
    let cells: Vec<&str> = terminal.backend().buffer().content.iter().map(Cell::symbol).collect();
    cells.chunks(usize::from(width)).map(|row| row.concat().trim_end().to_owned()).collect()
}

fn press(state: &mut TopState, keys: &str) -> KeyOutcome {
    let key = |typed: char| if typed == '\n' { TopKey::Enter } else { TopKey::Char(typed) };
    keys.chars().fold(KeyOutcome::Draw, |_, typed| state.press(key(typed)))
}

fn selected(state: &TopState) -> String {
    state.visible()[state.selected_row()].name.clone()
}

#[test]
fn list_fits_a_terminal_of_80_columns() {
    let head = format!("{:<68}09:15:00 UTC", "4 autoscalers in namespace shop · 2 problems");
    assert_eq!(
        screen(&mut state(), 80, 10),
        [
            head.as_str(),
            "",
            "NAME       PRESSURE  REPLICAS    LAST DECISION",
            "hpa/blind  -         3 of 1–10   held: cpu cannot be read: metrics.k8s.io is no…",
            "hpa/full   4.00×     10 of 1–10  cpu wants 40; max is 10",
            "hpa/busy   1.50×     4 of 1–10   4 → 6: cpu 75 % of 50 %",
            "hpa/calm   0.50×     2 of 1–10   cpu wants 1; window holds 2 until 09:19:45",
            "",
            "",
            "enter why · / filter · p problems · : command · ? keys · q quit",
        ]
    );
}

#[test]
fn selection_moves_stays_on_its_autoscaler_and_is_always_visible() {
    let mut state = state();
    assert_eq!(selected(&state), "hpa/blind");
    press(&mut state, "jj");
    assert_eq!(selected(&state), "hpa/busy");
    press(&mut state, ":sort name\n");
    assert_eq!(selected(&state), "hpa/busy");
    state.update(overview(Sort::Pressure));
    let names: Vec<&str> = state.visible().iter().map(|line| line.name.as_str()).collect();
    assert_eq!(names, ["hpa/blind", "hpa/busy", "hpa/calm", "hpa/full"], "the order stays as well");
    press(&mut state, "G");
    assert_eq!(selected(&state), "hpa/full");
    // Three lines are for the head and the foot, one for the heading, and two for autoscalers.
    let shown = screen(&mut state, 80, 6);
    assert!(shown[3].starts_with("hpa/calm") && shown[4].starts_with("hpa/full"), "{shown:?}");
    press(&mut state, "kg");
    assert_eq!(selected(&state), "hpa/blind");
}

#[test]
fn filter_leaves_lines_that_contain_the_text() {
    let mut state = state();
    press(&mut state, "/BUS");
    let shown = screen(&mut state, 80, 10);
    assert!(shown[3].starts_with("hpa/busy") && shown[4].is_empty(), "{shown:?}");
    assert_eq!(shown[9], "/BUS▏");
    assert_eq!(press(&mut state, "\n"), KeyOutcome::Draw);
    assert_eq!(screen(&mut state, 80, 10)[9], "/BUS · esc shows all · enter why");
    assert_eq!(press(&mut state, "\n"), KeyOutcome::Open);
    assert_eq!(state.open(), Some(("shop".to_owned(), "hpa/busy".to_owned())));
    state.press(TopKey::Escape);
    assert_eq!((state.page, state.visible().len()), (TopPage::List, 1));
    state.press(TopKey::Escape);
    assert_eq!(state.visible().len(), 4);
    press(&mut state, "/nothing");
    assert_eq!(screen(&mut state, 80, 10)[2], "no line contains this text; esc shows all");
}

#[test]
fn details_show_the_chart_and_why() {
    let mut state = state();
    press(&mut state, "jj\n");
    assert_eq!(screen(&mut state, 80, 24)[2], "reading …");
    let record = record_of("busy", MADE, 4, &[150; 4]);
    let named = AutoscalerName::parse("hpa/busy").unwrap();
    let why = record_explanation(&named, &record, None, None, at(NOW));
    let text = Page { width: Some(80), colour: false }.explanation(&why);
    state.details = Some(AutoscalerDetails {
        namespace: "shop".into(),
        name: "hpa/busy".into(),
        why: Ok(why),
        points: vec![ReplicaPoint::of(&record)],
        trends: MetricTrend::of(std::slice::from_ref(&record)),
    });
    let shown = screen(&mut state, 80, 60);
    let chart = shown.iter().position(|line| line.starts_with("6 │████")).unwrap();
    assert!(shown[chart + 8].contains("09:14:45") && shown[chart + 8].ends_with("09:15:00"), "{shown:?}");
    assert_eq!(shown[chart + 9], "   cpu 75 % of 50 % (▄ is the target)");
    let (above, below) = (&shown[2..chart - 1], &shown[chart + 11..]);
    let expected: Vec<&str> = text.lines().collect();
    let found: Vec<&str> = above.iter().chain(below).map(String::as_str).take(expected.len()).collect();
    assert_eq!(found, expected);

    // Scrolling ends with the last line.
    screen(&mut state, 80, 10);
    press(&mut state, "G");
    let last = screen(&mut state, 80, 10)[8].clone();
    assert_eq!(last, *expected.last().unwrap());
}

#[test]
fn problems_are_shown_by_cause_and_help_lists_the_keys() {
    let mut state = state();
    press(&mut state, "p");
    let shown = screen(&mut state, 100, 20);
    assert!(shown[2].starts_with("✗ cpu cannot be read"), "{shown:?}");
    assert!(shown.iter().any(|line| line.starts_with("✗ more is wanted than max allows")), "{shown:?}");
    press(&mut state, "?");
    assert!(screen(&mut state, 80, 20).iter().any(|line| line.starts_with("q  :q")));
    state.press(TopKey::Escape);
    assert_eq!(state.page, TopPage::Problems);
}

#[test]
fn commands_answer_and_quit() {
    let mut state = state();
    press(&mut state, ":fly\n");
    assert_eq!(screen(&mut state, 80, 10)[9], "there is no command fly; ? shows those there are");
    press(&mut state, ":so\n");
    assert!(state.visible().is_empty());
    press(&mut state, ":all\n");
    assert_eq!(state.visible().len(), 4);
    assert_eq!(press(&mut state, ":q\n"), KeyOutcome::Quit);
    assert_eq!(press(&mut state, "q"), KeyOutcome::Quit);
    press(&mut state, "/q");
    assert_eq!(state.filter, "q", "while a text is typed, q is a letter");
    assert_eq!(state.press(TopKey::Interrupt), KeyOutcome::Quit);
}

#[test]
fn view_reports_a_cluster_that_cannot_be_read() {
    let mut state = state();
    state.lost = Some("connection refused\n  remedy: none".to_owned());
    assert_eq!(screen(&mut state, 80, 10)[1], "connection refused (below: 0s old)");
}

#[test]
fn any_size_of_terminal_is_drawn() {
    for page in [TopPage::List, TopPage::Problems, TopPage::Details, TopPage::Help] {
        for (width, height) in [(1, 1), (5, 2), (20, 3), (300, 4)] {
            let mut state = state();
            state.page = page;
            assert_eq!(screen(&mut state, width, height).len(), usize::from(height));
        }
    }
}
