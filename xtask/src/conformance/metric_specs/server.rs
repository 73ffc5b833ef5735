//! The external scaler that records name `{externalServer}`.

use std::sync::{Arc, Mutex};

use external_scaler::{ExternalScaler, MetricSpec, MetricValue, ScaledObjectRef, Server, Status};
use locks::MutexExt as _;
use scalers::Trigger;
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// The placeholder of its address.
const ADDRESS: &str = "{externalServer}";

/// A server with the responses of a record.
pub(super) struct ExternalServer {
    address: String,
    state: Arc<Mutex<ServerState>>,
}

#[derive(Default)]
struct ServerState {
    specs: Vec<MetricSpec>,
    error: Option<String>,
    asked: Option<ScaledObjectRef>,
}

struct Answering(Arc<Mutex<ServerState>>);

impl ExternalServer {
    /// Listens for as long as the runtime lives.
    pub(super) async fn start() -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?.to_string();
        let state = Arc::<Mutex<ServerState>>::default();
        let server = Server::new(Answering(Arc::clone(&state)));
        tokio::spawn(server.serve_until(listener, std::future::pending()));
        Ok(Self { address, state })
    }

    /// Sets the responses, and puts the address of the server into the trigger.
    pub(super) fn prepare(&self, says: Option<&Value>, trigger: &mut Trigger) {
        let list = says.and_then(|says| says.get("metricSpecs")).and_then(Value::as_array);
        let specs = list.into_iter().flatten().map(|spec| MetricSpec {
            metric_name: spec.get("metricName").and_then(Value::as_str).unwrap_or_default().to_owned(),
            target_size: spec.get("targetSize").and_then(Value::as_i64).unwrap_or_default(),
            target_size_float: spec.get("targetSizeFloat").and_then(Value::as_f64).unwrap_or_default(),
        });
        let error = says.and_then(|says| says.get("error")).and_then(Value::as_str).map(str::to_owned);
        *self.state.locked() = ServerState { specs: specs.collect(), error, asked: None };
        for value in trigger.metadata.values_mut() {
            *value = value.replace(ADDRESS, &self.address);
        }
    }

    /// The request that it received; null if there was none.
    pub(super) fn saw(&self) -> Value {
        let state = self.state.locked();
        let Some(asked) = &state.asked else { return Value::Null };
        let metadata = asked.scaler_metadata.iter();
        let metadata: serde_json::Map<_, _> = metadata
            .map(|(key, value)| (key.clone(), Value::from(value.replace(&self.address, ADDRESS))))
            .collect();
        json!({"name": asked.name, "namespace": asked.namespace, "scalerMetadata": metadata})
    }
}

impl ExternalScaler for Answering {
    async fn metric_specs(&self, object: &ScaledObjectRef) -> Result<Vec<MetricSpec>, Status> {
        let mut state = self.0.locked();
        state.asked = Some(object.clone());
        match &state.error {
            Some(error) => Err(Status::unknown(error)),
            None => Ok(state.specs.clone()),
        }
    }

    async fn metrics(&self, _: &ScaledObjectRef, _: &str) -> Result<Vec<MetricValue>, Status> {
        Err(Status::unimplemented("only specs are recorded"))
    }
}
