//! CloudEventSource and ClusterCloudEventSource (docs/spec/keda.md 1.4).

use api::keda::EVENT_TYPES;

use super::{Column, Definition, authentication_ref, conditions};
use crate::generate::schema::{Schema, list, object, text, word};

pub(super) fn definitions() -> [Definition; 2] {
    let status = || object("How it fares.", [("conditions", conditions())]);
    [
        Definition {
            group: api::keda::EVENTING_GROUP,
            kind: "CloudEventSource",
            plural: "cloudeventsources",
            short_names: &[],
            namespaced: true,
            columns: vec![Column::condition("Active")],
            about: "Where events are told to.",
            schema: (spec().required(), status()),
        },
        Definition {
            group: api::keda::EVENTING_GROUP,
            kind: "ClusterCloudEventSource",
            plural: "clustercloudeventsources",
            short_names: &[],
            namespaced: false,
            columns: vec![Column::condition("Active")],
            about: "Where events of the whole cluster are told to.",
            schema: (spec().required(), status()),
        },
    ]
}

fn spec() -> Schema {
    let types = |about: &str| list(about, word("A type of event.", &EVENT_TYPES));
    let destination = object(
        "To whom.",
        [
            ("http", object("A server that takes events.", [("uri", text("Where it is.").required())])),
            (
                "azureEventGridTopic",
                object("A topic of Azure Event Grid.", [("endpoint", text("Where it is.").required())]),
            ),
        ],
    );
    let subscription = object(
        "What is told; without it, everything. Only one of both can be given.",
        [
            ("includedEventTypes", types("Only these types.")),
            ("excludedEventTypes", types("All but these types.")),
        ],
    );
    object(
        "What is told, and to whom.",
        [
            ("clusterName", text("The cluster's name; without it, as the operator was told.")),
            ("destination", destination.required()),
            ("authenticationRef", authentication_ref()),
            ("eventSubscription", subscription),
        ],
    )
}
