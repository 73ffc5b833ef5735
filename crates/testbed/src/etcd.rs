//! Writes objects directly to the store of a real cluster, without admission and validation.
//!
//! An older version of Kubernetes may have stored objects that validation rejects today, and a controller has to handle them. Tests create
//! such objects with this module.

use std::io;

use ::base64::Engine as _;
use ::base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};

use crate::access::Access;
use crate::components::local;
use crate::error::{Attempt as _, Error};

/// The store of a real cluster.
#[derive(Clone, Debug)]
pub struct Etcd {
    url: String,
    client: Client<HttpConnector, Full<Bytes>>,
}

/// The key of an object, such as `/registry/horizontalpodautoscalers/shop/web`.
pub fn key(resource: &str, namespace: &str, name: &str) -> String {
    format!("/registry/{resource}/{namespace}/{name}")
}

impl Etcd {
    /// Connects to the store of a cluster.
    pub fn of(access: &Access) -> Self {
        let client = Client::builder(TokioExecutor::new()).build_http();
        Self { url: local("http", access.ports.etcd), client }
    }

    /// Stores an object as JSON without validation. The API server can read it only if it has `apiVersion` and `kind`.
    pub async fn put(&self, key: &str, object: &Value) -> Result<(), Error> {
        let value = STANDARD.encode(object.to_string());
        self.call("put", &json!({"key": STANDARD.encode(key), "value": value})).await.map(|_| ())
    }

    /// Stores objects, each under its key, in one transaction; etcd accepts at most 128.
    pub async fn put_all(&self, objects: &[(String, Value)]) -> Result<(), Error> {
        let put = |(key, object): &(String, Value)| json!({"requestPut": {"key": STANDARD.encode(key), "value": STANDARD.encode(object.to_string())}});
        let puts: Vec<Value> = objects.iter().map(put).collect();
        self.call("txn", &json!({"success": puts})).await.map(|_| ())
    }

    /// The stored bytes, which are protobuf if the API server wrote them.
    pub async fn get(&self, key: &str) -> Result<Option<Vec<u8>>, Error> {
        let found = self.call("range", &json!({"key": STANDARD.encode(key)})).await?;
        let value = found.pointer("/kvs/0/value").and_then(Value::as_str);
        let bytes = value.map(|text| STANDARD.decode(text)).transpose();
        bytes.map_err(io::Error::other).attempt(|| format!("read {key} from etcd"))
    }

    /// Removes a key, and returns whether it was there.
    pub async fn delete(&self, key: &str) -> Result<bool, Error> {
        let found = self.call("deleterange", &json!({"key": STANDARD.encode(key)})).await?;
        Ok(found.get("deleted").and_then(Value::as_str).is_some_and(|count| count != "0"))
    }

    async fn call(&self, verb: &str, body: &Value) -> Result<Value, Error> {
        let answer = async {
            let request = Request::post(format!("{}/v3/kv/{verb}", self.url));
            let request = request.body(Full::new(Bytes::from(body.to_string()))).map_err(io::Error::other)?;
            let answer = self.client.request(request).await.map_err(io::Error::other)?;
            let code = answer.status();
            let body = answer.into_body().collect().await.map_err(io::Error::other)?.to_bytes();
            if !code.is_success() {
                return Err(io::Error::other(format!("{code}: {}", String::from_utf8_lossy(&body))));
            }
            serde_json::from_slice(&body).map_err(io::Error::other)
        };
        answer.await.attempt(|| format!("ask etcd for {verb}"))
    }
}
