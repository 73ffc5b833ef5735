use super::page::*;
use super::*;

const HOSTILE: &str = "</script><script>alert(1)</script><!--\"'><img src=x onerror=alert(1)>&amp;\u{0}\u{7}";

fn series(values: &[f64]) -> Series {
    Series::complete(values.iter().enumerate().map(|(i, v)| (i as f64 * 15.0, *v)))
}

fn autoscaler(name: &str, why: &str) -> PageAutoscaler {
    let span = Span { from: 15.0, to: 30.0, limit: Limit::Rate, decisions: 1, why: format!("{why} (span)") };
    PageAutoscaler {
        name: name.to_owned(),
        min: 1,
        max: 10,
        dry_run: false,
        desired: series(&[1.0, 4.0, 7.0, 7.0]),
        metrics: vec![Metric {
            name: "cpu".to_owned(),
            unit: PageUnit::Percent,
            target: Some(50.0),
            series: [(0.0, Some(10.0)), (15.0, None), (30.0, Some(76.0))].into_iter().collect(),
        }],
        changes: vec![
            PageChange {
                at: 15.0,
                from: 1,
                to: 4,
                wanted: Some(7),
                why: format!("{why} first"),
                limit: Some(Limit::Rate),
            },
            PageChange { at: 30.0, from: 4, to: 7, wanted: None, why: format!("{why} second"), limit: None },
        ],
        more_changes: Vec::new(),
        limits: vec![span.clone()],
        limit_sums: vec![LimitSum { times: 1, seconds: 15.0, longest: span }],
        problems: vec![PageProblem {
            from: 15.0,
            to: 15.0,
            times: 1,
            reason: "FailedGetResourceMetric".to_owned(),
            message: format!("{why} (problem)"),
        }],
    }
}

fn page(runs: usize, name: &str) -> ReportPage {
    let track = |run: usize| PageTrack {
        totals: RunTotals {
            pod_hours: 2.0 + run as f64,
            unserved_share: Some(0.1),
            short_seconds: Some(30.0),
            worst_reaction_seconds: Some(30.0),
            changes: 2,
            ..RunTotals::default()
        },
        load: Some(Load {
            at: vec![0.0, 15.0, 30.0],
            offered: vec![1.0, 9.0, 9.0],
            served: vec![1.0, 5.0, 9.0],
            unserved: vec![0.0, 4.0, 0.0],
            backlog: vec![0.0, 0.0, 0.0],
        }),
        ready: series(&[1.0, 1.0, 4.0, 7.0]),
        autoscalers: vec![autoscaler(name, &format!("{name} why {run}"))],
    };
    ReportPage {
        title: name.to_owned(),
        question: vec![format!("Question of {name}?")],
        start: "2026-01-05T09:00:00Z".parse().unwrap(),
        seconds: 60.0,
        runs: (0..runs)
            .map(|run| Run { name: format!("{name} {run}"), about: format!("{name} about") })
            .collect(),
        workloads: vec![PageWorkload { name: name.to_owned(), tracks: (0..runs).map(track).collect() }],
        notes: vec![format!("Note on {name}.")],
        reproduce: Reproduce {
            command: format!("plimsoll simulate {name}"),
            version: name.to_owned(),
            seed: Some(7),
            files: vec![File { name: name.to_owned(), text: format!("# {name}\n") }],
        },
    }
}

/// The page without scripts and styles that are always the same.
fn own(html: &str) -> String {
    [SCRIPT, STYLE, CHARTS_SCRIPT, CHARTS_STYLE, CHARTS_LICENSE.trim_end()].iter().fold(
        html.to_owned(),
        |html, part| {
            assert_eq!(html.matches(part).count(), 1);
            html.replacen(part, "", 1)
        },
    )
}

fn data(html: &str) -> serde_json::Value {
    let begin = html.find("id=\"data\">").unwrap() + "id=\"data\">".len();
    let length = html[begin..].find("</script>").unwrap();
    serde_json::from_str(&html[begin..begin + length]).unwrap()
}

/// Names of elements that are open at the end, or the first tag that closes another.
fn unclosed(html: &str) -> Vec<String> {
    const VOID: [&str; 3] = ["meta", "path", "!doctype"];
    let mut open: Vec<String> = Vec::new();
    let mut rest = html;
    while let Some(begin) = rest.find('<') {
        rest = &rest[begin + 1..];
        if let Some(comment) = rest.strip_prefix("!--") {
            rest = &comment[comment.find("-->").unwrap()..];
            continue;
        }
        let end = rest.find('>').unwrap();
        let tag = &rest[..end];
        let name: String = tag.trim_start_matches('/').split([' ', '/']).next().unwrap().to_owned();
        if let Some(closed) = tag.strip_prefix('/') {
            if open.pop().as_deref() != Some(closed) {
                return vec![format!("{open:?} closed by {closed}")];
            }
        } else if !VOID.contains(&name.as_str()) {
            open.push(name);
        }
    }
    open
}

#[test]
fn hostile_names_stay_text() {
    for runs in [1, 2] {
        let html = own(&html(&page(runs, HOSTILE)));
        assert_eq!(html.matches("<script").count(), 3, "data, charts, page");
        assert!(!html.contains("<img") && !html.contains("onerror=alert(1)>\""));
        assert_eq!(html.matches("<!--").count(), 1, "the licence");
        assert!(!html.contains('\u{0}') && !html.contains('\u{7}'));
        assert!(html.contains("&lt;/script&gt;&lt;script&gt;alert(1)"));
        assert_eq!(unclosed(&html), Vec::<String>::new());
        // The script gets the names as they are.
        assert_eq!(data(&html)["workloads"][0]["name"], HOSTILE);
        assert_eq!(data(&html)["workloads"][0]["tracks"][0]["autoscalers"][0]["name"], HOSTILE);
    }
}

#[test]
fn every_change_and_its_reason_is_in_the_table() {
    let html = html(&page(6, "shop"));
    for run in 0..6 {
        for (place, why) in ["first", "second"].iter().enumerate() {
            assert!(html.contains(&format!("data-change=\"0.{run}.0.{place}\"")));
            assert!(html.contains(&format!("<td class=\"why\">shop why {run} {why}</td>")));
        }
        assert!(html.contains(&format!("shop why {run} (span)")));
        assert!(html.contains(&format!("shop why {run} (problem)")));
    }
    assert!(html.contains("09:00:15") && html.contains("1 → 4") && html.contains("rate limit (wanted 7)"));
}

#[test]
fn the_page_is_well_formed_and_loads_nothing() {
    for page in [page(1, "shop"), page(2, "shop"), page(6, "shop"), page(0, "shop")] {
        let html = own(&html(&page));
        assert_eq!(unclosed(&html), Vec::<String>::new());
        for part in ["://", " src=", "url(", "@import", "{}", "{{"] {
            assert!(!html.contains(part), "{part}");
        }
        for link in html.match_indices("href=\"").map(|(at, text)| &html[at + text.len()..]) {
            assert!(link.starts_with('#'), "{}", &link[..20]);
        }
        assert!(html.contains("default-src 'none'"));
    }
    // The script creates elements by name and sends no requests.
    assert_eq!(SCRIPT.replace("http://www.w3.org/2000/svg", "").matches("://").count(), 0);
    for part in ["fetch(", "XMLHttpRequest", "innerHTML", "eval(", "import("] {
        assert!(!SCRIPT.contains(part), "{part}");
    }
    assert!(!STYLE.contains("url(") && !STYLE.contains("@import"));
}

#[test]
fn missing_values_are_not_zero() {
    let html = html(&page(1, "shop"));
    let metric = &data(&html)["workloads"][0]["tracks"][0]["autoscalers"][0]["metrics"][0];
    assert_eq!(metric["series"]["values"], serde_json::json!([10.0, null, 76.0]));
    assert!(html.contains("<td class=\"n\">missing</td>"));
}

#[test]
fn an_empty_run_has_a_page() {
    let mut page = page(1, "shop");
    page.seconds = 0.0;
    page.workloads[0].tracks[0] = PageTrack::default();
    let html = html(&page);
    assert!(html.contains("The replica count never changed."));
    page.workloads.clear();
    page.runs.clear();
    assert!(super::html(&page).contains("Nothing was run."));
    let none = ReportPage::of(&[], Reproduce::default());
    assert_eq!(unclosed(&own(&super::html(&none))), Vec::<String>::new());
}

#[test]
fn nan_values_are_tolerated() {
    let mut page = page(2, "shop");
    for value in [f64::NAN, f64::INFINITY, -1e308] {
        page.seconds = value;
        let track = &mut page.workloads[0].tracks[0];
        track.totals = RunTotals { pod_hours: value, short_seconds: Some(value), ..RunTotals::default() };
        track.ready = series(&[value; 3]);
        track.load.as_mut().unwrap().offered = vec![value; 3];
        track.autoscalers[0].changes[0].at = value;
        track.autoscalers[0].limits[0].to = value;
        let html = html(&page);
        assert!(data(&html)["workloads"].is_array());
        assert!(!own(&html).contains("NaN"));
    }
}

#[test]
fn the_same_page_gives_the_same_bytes() {
    assert_eq!(html(&page(3, "shop")), html(&page(3, "shop")));
}

#[test]
fn the_summary_is_a_sentence() {
    let answer = |page: &ReportPage| sentence::sentence(page);
    let one = page(1, "shop");
    assert_eq!(
        answer(&one),
        "Ready pods could not keep up for 30 s of 60 s, and 10 % of the load went unserved; \
         the slowest reaction took 30 s. It took 2 pod-hours and 2 changes."
    );
    let mut kept = one.clone();
    kept.workloads[0].tracks[0].totals.short_seconds = Some(0.0);
    assert!(answer(&kept).starts_with("Ready pods kept up with the load all the time."));
    assert_eq!(
        answer(&page(2, "shop")),
        "shop 1 took 50 % more pod-hours than shop 0 (3 instead of 2), left the same share of the load unserved (10 %), \
         was short of pods for as long (30 s), and made 2 changes instead of 2."
    );
    assert!(answer(&page(3, "shop")).starts_with("Fewest pod-hours: shop 0 (2)."));
    let mut many = one;
    many.workloads.push(many.workloads[0].clone());
    assert!(answer(&many).contains("Together they took 4 pod-hours and 4 changes."));
}

mod simulated {
    use std::path::Path;

    use api::yaml::SourceFile;

    use super::*;
    use crate::{Scenario, Simulation, Summary};

    const EXAMPLE: &str = include_str!("../../../../examples/php-apache.yaml");

    fn run(yaml: &str) -> (Scenario, Summary, ReportRecorder) {
        let files = |_: &Path| Err(std::io::Error::other("there are no files"));
        let scenario = Scenario::load(&[SourceFile::new("example.yaml", yaml)], &files).unwrap();
        let mut recorder = ReportRecorder::new(&scenario);
        let summary = Simulation::new(&scenario).run(&mut recorder);
        (scenario, summary, recorder)
    }

    fn page(yamls: &[&str]) -> ReportPage {
        let runs: Vec<_> = yamls.iter().map(|yaml| run(yaml)).collect();
        let finished: Vec<FinishedRun<'_>> = runs
            .iter()
            .map(|(scenario, summary, recorder)| FinishedRun {
                name: "run",
                about: "",
                scenario,
                summary,
                recorder,
            })
            .collect();
        ReportPage::of(&finished, Reproduce::default())
    }

    #[test]
    fn one_run_becomes_a_page() {
        let page = page(&[EXAMPLE]);
        let [workload] = page.workloads.as_slice() else { panic!("{:?}", page.workloads) };
        let track = &workload.tracks[0];
        let autoscaler = &track.autoscalers[0];
        assert_eq!(
            (workload.name.as_str(), autoscaler.name.as_str()),
            ("deployment/php-apache", "hpa/php-apache")
        );
        assert_eq!(autoscaler.changes.len() as u64, track.totals.changes);
        assert!(
            autoscaler.changes.iter().all(|change| change.why.starts_with("cpu ")),
            "{:?}",
            autoscaler.changes
        );
        assert!(autoscaler.changes.windows(2).all(|pair| pair[0].to == pair[1].from));
        let limits: Vec<Limit> = autoscaler.limit_sums.iter().map(|sum| sum.longest.limit).collect();
        assert_eq!(limits, [Limit::Rate, Limit::Window]);
        let length: f64 = autoscaler.limits.iter().map(|span| span.to - span.from).sum();
        assert_eq!(length, autoscaler.limit_sums.iter().map(|sum| sum.seconds).sum::<f64>());
        let load = track.load.as_ref().unwrap();
        assert_eq!((load.at[0], load.offered.len(), page.seconds), (0.0, load.at.len(), 1200.0));
        assert!(load.offered.iter().all(|offered| (1.0..=32.0).contains(offered)));
        assert_eq!(unclosed(&own(&html(&page))), Vec::<String>::new());
        assert_eq!(html(&page), html(&super::simulated::page(&[EXAMPLE])));
    }

    #[test]
    fn several_runs_are_compared() {
        let other = EXAMPLE.replace("averageUtilization: 50", "averageUtilization: 80");
        let page = page(&[EXAMPLE, &other]);
        let targets = page.workloads[0].tracks.iter().map(|track| track.autoscalers[0].metrics[0].target);
        assert_eq!(targets.collect::<Vec<_>>(), [Some(50.0), Some(80.0)]);
        let hours: Vec<f64> = page.workloads[0].tracks.iter().map(|track| track.totals.pod_hours).collect();
        assert!(hours[1] < hours[0], "{hours:?}");
        assert!(html(&page).contains("fewer pod-hours than run"));
    }

    #[test]
    fn a_long_run_gives_a_small_page_with_a_note() {
        let page = page(&[&EXAMPLE.replace("duration: 20m", "duration: 20d")]);
        assert!(
            page.notes[0].starts_with("One point of a line is the mean of 32 decisions (8 min)."),
            "{:?}",
            page.notes
        );
        let desired = &page.workloads[0].tracks[0].autoscalers[0].desired;
        assert_eq!(desired.at.len(), page.workloads[0].tracks[0].autoscalers[0].changes.len() + 1);
        assert!(html(&page).len() < 400_000, "{}", html(&page).len());
    }
}
