//! Pages of samples that replicas of the metrics server exchange.

use sources::sharding::reencoded_page;

/// A page.
pub fn run(data: &[u8]) {
    let Some(once) = reencoded_page(data) else { return };
    let twice = reencoded_page(&once).expect("what was encoded can be decoded");
    assert_eq!(once, twice);
    // A page cannot say more than it has bytes.
    assert!(once.len() <= data.len());
}
