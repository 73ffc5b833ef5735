use engine::explain::Row;

use super::*;

fn page(width: usize) -> Page {
    Page { width: Some(width), colour: false }
}

fn table() -> Table {
    let mut table = Table::new(["Name", "Reference", "Targets", "Why"]);
    let row = |cells: [&str; 4]| cells.map(str::to_owned).to_vec();
    table.rows.push(row([
        "hpa/web",
        "Deployment/web",
        "cpu: 305%/50%",
        "cpu wants 7; scale-up limit is 4 this time",
    ]));
    table.rows.push(row([
        "hpa/checkout",
        "Deployment/checkout",
        "cpu: 51%/50%",
        "cpu 51 % of 50 %: close enough",
    ]));
    table
}

#[test]
fn words_are_broken_only_if_too_long() {
    assert_eq!(wrap("cpu wants 7; limit is 4", 12), ["cpu wants 7;", "limit is 4"]);
    assert_eq!(wrap("two  spaces stay", 40), ["two  spaces stay"]);
    assert_eq!(wrap("abcdefgh ij", 3), ["abc", "def", "gh", "ij"]);
    assert_eq!(wrap("", 10), [""]);
    assert_eq!(wrap("é é é", 3), ["é é", "é"]);
}

#[test]
fn wide_terminal_keeps_the_table() {
    assert_eq!(page(140).table(&table()), table().to_string());
    assert_eq!(Page { width: None, colour: false }.table(&table()), table().to_string());
}

#[test]
fn last_column_is_wrapped_in_its_column() {
    assert_eq!(
        page(86).table(&table()),
        "\
NAME           REFERENCE             TARGETS         WHY
hpa/web        Deployment/web        cpu: 305%/50%   cpu wants 7; scale-up limit is 4
                                                     this time
hpa/checkout   Deployment/checkout   cpu: 51%/50%    cpu 51 % of 50 %: close enough
"
    );
}

#[test]
fn narrow_terminal_prints_the_last_column_below() {
    assert_eq!(
        page(44).table(&table()),
        "\
NAME          REFERENCE        TARGETS
hpa/web       Deployment/web   cpu: 305%/50%
  cpu wants 7; scale-up limit is 4 this time
hpa/checkout  Deployment/che…  cpu: 51%/50%
  cpu 51 % of 50 %: close enough
"
    );
}

#[test]
fn single_lines_are_cut() {
    let lines: Vec<String> = page(64).single_lines(&table()).into_iter().map(|line| line.text).collect();
    assert_eq!(
        lines,
        [
            "NAME          REFERENCE    TARGETS      WHY",
            "hpa/web       Deployment…  cpu: 305%/…  cpu wants 7; scale-up l…",
            "hpa/checkout  Deployment…  cpu: 51%/5…  cpu 51 % of 50 %: close…",
        ]
    );
}

#[test]
fn every_terminal_width_is_supported() {
    for width in 1..120 {
        assert_eq!(page(width).single_lines(&table()).len(), 3, "{width}");
        let lines = page(width).lines(&table());
        assert!(lines.iter().any(|line| line.row == Some(1)), "{width}");
        if width >= 40 {
            assert!(lines.iter().all(|line| length(&line.text) <= width), "{width}: {lines:?}");
        }
    }
}

#[test]
fn explanations_keep_their_label_column() {
    let row = |label: &str, text: &str, decided| Row { label: label.into(), text: text.into(), decided };
    let explanation = Explanation {
        headline: "hpa/web in shop".into(),
        rows: vec![
            row("limits", "at most max(2 × 1, 4) = 4 in one step", true),
            row("next", "not before 15 s are over", true),
        ],
    };
    assert_eq!(
        page(40).explanation(&explanation),
        "\
hpa/web in shop

limits     at most max(2 × 1, 4) = 4 in
           one step  ← this decided
next       not before 15 s are over
           ← this decided
"
    );
    let painted = Page { width: Some(80), colour: true }.explanation(&explanation);
    assert!(
        painted.contains("\x1b[1mlimits     at most max(2 × 1, 4) = 4 in one step  ← this decided\x1b[0m\n")
    );
}
