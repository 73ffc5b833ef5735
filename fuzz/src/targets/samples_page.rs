//! Pages of samples that replicas of the metrics server exchange.

use sources::sharding::reencoded_page;

/// The input is a page.
pub fn run(data: &[u8]) {
    let Some(once) = reencoded_page(data) else { return };
    let twice = reencoded_page(&once).expect("what was encoded can be decoded");
    assert_eq!(once, twice);
    // Encoding a page again does not make it longer.
    assert!(once.len() <= data.len());
}
