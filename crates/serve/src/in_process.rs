//! The router without connections and authentication, for tests, conformance runs and recordings.

use std::fmt;
use std::sync::Arc;

use http::{Request, Response};
use tokio::sync::watch;

use crate::app::App;
use crate::response::Body;
use crate::router::Router;
use crate::tls::{Activity, Caller, ServerLimits};

/// Handles requests for an app's APIs, exported metrics and routes; health paths are not served.
pub struct InProcessServer {
    router: Arc<Router>,
    _running: watch::Sender<bool>,
}

impl fmt::Debug for InProcessServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Local")
    }
}

impl InProcessServer {
    /// A server for this app.
    pub fn new(app: App) -> Self {
        let (running, stop) = watch::channel(false);
        let router = Arc::new(Router::new(app, None, ServerLimits::default(), stop).without_health());
        Self { router, _running: running }
    }

    /// Handles one request.
    pub async fn respond(&self, request: Request<Body>) -> Response<Body> {
        let caller = Caller { certificate: None, address: None, activity: Activity::new() };
        Arc::clone(&self.router).respond(request, caller).await
    }
}
