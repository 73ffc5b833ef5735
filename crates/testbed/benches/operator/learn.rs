//! A little of everything that the operator does all day, for a binary that notes what it does: `make learn`.

use std::time::Duration;

use crate::questions::Questions;
use crate::source::Source;
use crate::stage::{Stage, register};
use crate::subject::Subject;
use crate::world::{Queries, World};
use crate::{INTERVAL, table};

const OBJECTS: usize = 300;
/// How long it may take to write down what it has noted.
const PATIENCE: Duration = Duration::from_mins(1);

pub(crate) async fn run() -> bool {
    let source = Source::start(5).await;
    let stage = Stage::start().await;
    let world = World::new("learn", OBJECTS, &source.url, Queries::Distinct);
    world.make(&stage.client).await;
    let mut subject = Subject::start(&stage.kubeconfig, world.namespace).await;
    source.until_asked(3 * OBJECTS as u64, OBJECTS).await;
    register(&stage.client, world.namespace, subject.port).await;
    let questions = Questions::start(&stage.client, &world);
    tokio::time::sleep(INTERVAL * 2).await;
    let (answered, failed) = questions.counts();
    subject.check();
    println!("\nwhat was learned from, with {OBJECTS} ScaledObjects");
    table::told("queries", source.asked() as f64, 0);
    table::told("questions answered", answered as f64, 0);
    // It writes when it ends, unless it is killed.
    subject.end(PATIENCE).await;
    failed == 0
}
