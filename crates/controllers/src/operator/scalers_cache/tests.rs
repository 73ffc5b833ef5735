#![allow(clippy::unwrap_used)]

use std::time::Duration;

use super::owner::interval;

#[test]
fn intervals_make_sense_whatever_is_written() {
    for (written, expected) in [(None, 30), (Some(5), 5), (Some(0), 1), (Some(-3), 1)] {
        assert_eq!(interval(written), Duration::from_secs(expected));
    }
}
