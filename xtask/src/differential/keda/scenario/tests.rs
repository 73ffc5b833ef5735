#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use super::*;

fn places() -> Places {
    Places { scaler: "127.0.0.1:6000".into(), http: "127.0.0.1:6001".into() }
}

fn played(seed: u64, number: u64) -> Vec<String> {
    let mut scenario = Scenario::new(seed, number, places());
    while !scenario.is_over() {
        scenario.step();
    }
    scenario.done.iter().flat_map(|step| step.deeds.iter().map(Deed::to_string)).collect()
}

#[test]
fn a_seed_and_a_number_say_it_all() {
    assert_eq!(played(1, 3), played(1, 3));
    assert_ne!(played(1, 3), played(2, 3));
}

#[test]
fn every_card_is_played() {
    for (deck, job) in [(Card::objects(), false), (Card::jobs(), true)] {
        let numbers = (0..60).filter(|number| (number % JOBS == JOBS - 1) == job);
        let drawn: Vec<Card> = numbers.flat_map(|number| Scenario::new(1, number, places()).cards).collect();
        for card in deck {
            assert!(drawn.contains(&card), "{card:?}");
        }
    }
}

#[test]
fn what_is_broken_is_mended_in_the_next_step() {
    for number in 0..60 {
        let mut scenario = Scenario::new(1, number, places());
        let mut before = false;
        while !scenario.is_over() {
            scenario.step();
            let now = scenario.broken.is_some();
            assert!(!(before && now), "{:?}", scenario.done.last());
            before = now;
        }
        assert!(scenario.done.len() > CARDS);
    }
}

#[test]
fn specs_have_no_nulls() {
    for number in 0..60 {
        let text = played(1, number).join("\n");
        let specs = text.lines().filter(|line| line.contains("\"/spec\""));
        specs.for_each(|line| assert!(!line.contains(":null"), "{line}"));
    }
}
