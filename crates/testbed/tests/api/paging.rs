//! Lists in pages, with continue tokens.

use http::Method;
use serde_json::json;
use testbed::cases;
use testbed::harness::{Case, Session};

use crate::objects::*;

pub(crate) const CASES: &[Case] = cases![
    piece_by_piece,
    a_piece_as_large_as_all,
    with_a_selector,
    what_changes_meanwhile_is_not_seen,
    tokens_of_nonsense,
    limits_of_nonsense,
    a_token_beside_a_version,
    as_a_table,
];

async fn some(s: &Session, count: usize) {
    for at in 0..count {
        let mut object = lease(&format!("l{at}"));
        object["metadata"]["labels"] = json!({"odd": (at % 2).to_string()});
        s.request(Method::POST, LEASES).json(object).send_unrecorded().await;
    }
}

async fn piece_by_piece(s: Session) {
    some(&s, 5).await;
    let mut page = s.get(&format!("{LEASES}?limit=2")).await;
    loop {
        let token = page.text("/metadata/continue");
        if token.is_empty() {
            break;
        }
        page = s.get_next(&format!("{LEASES}?limit=2"), &token).await;
    }
}

async fn a_piece_as_large_as_all(s: Session) {
    some(&s, 2).await;
    s.get(&format!("{LEASES}?limit=2")).await;
    s.get(&format!("{LEASES}?limit=500")).await;
    s.get(&format!("{LEASES}?limit=0")).await;
}

async fn with_a_selector(s: Session) {
    some(&s, 5).await;
    let page = s.get(&format!("{LEASES}?limit=1&labelSelector=odd%3D0")).await;
    s.get_next(&format!("{LEASES}?limit=1&labelSelector=odd%3D0"), &page.text("/metadata/continue")).await;
}

async fn what_changes_meanwhile_is_not_seen(s: Session) {
    some(&s, 3).await;
    let page = s.get(&format!("{LEASES}?limit=1")).await;
    s.delete(&at(LEASES, "l2")).await;
    s.request(Method::POST, LEASES).json(lease("l9")).send_unrecorded().await;
    s.get_next(&format!("{LEASES}?limit=5"), &page.text("/metadata/continue")).await;
}

async fn tokens_of_nonsense(s: Session) {
    s.get_next(&format!("{LEASES}?limit=5"), "nonsense").await;
    s.get_next(&format!("{LEASES}?limit=5"), "e30").await;
}

async fn limits_of_nonsense(s: Session) {
    some(&s, 1).await;
    s.get(&format!("{LEASES}?limit=many")).await;
    s.get(&format!("{LEASES}?limit=-1")).await;
}

async fn a_token_beside_a_version(s: Session) {
    some(&s, 2).await;
    let page = s.get(&format!("{LEASES}?limit=1")).await;
    s.get_next(&format!("{LEASES}?limit=1&resourceVersion=1"), &page.text("/metadata/continue")).await;
    s.get_next(&format!("{LEASES}?limit=1&resourceVersion=0"), &page.text("/metadata/continue")).await;
}

async fn as_a_table(s: Session) {
    some(&s, 2).await;
    s.get_as_table(&format!("{LEASES}?limit=1")).await;
}
