//! A scripted gRPC server: a function answers the messages of all methods.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Buf as _, BufMut as _};
use futures::future::BoxFuture;
use tokio::net::TcpListener;
use tonic::body::Body;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::codegen::Service;
use tonic::metadata::MetadataMap;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status};

/// Answers a message of a method, given its path and headers.
type GrpcAnswer = dyn Fn(&str, &MetadataMap, &[u8]) -> Result<Vec<u8>, Status> + Send + Sync;

/// Starts a server; returns `127.0.0.1:port`.
pub(crate) async fn grpc_server(
    answer: impl Fn(&str, &MetadataMap, &[u8]) -> Result<Vec<u8>, Status> + Send + Sync + 'static,
) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let service = GrpcScript(Arc::new(answer));
    tokio::spawn(async move {
        let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
        let never = std::future::pending();
        tonic::transport::Server::builder()
            .serve_with_incoming_shutdown(service, incoming, never)
            .await
            .unwrap();
    });
    address
}

#[derive(Clone)]
struct GrpcScript(Arc<GrpcAnswer>);

impl Service<http::Request<Body>> for GrpcScript {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let method = ScriptedMethod { path: request.uri().path().to_owned(), answer: Arc::clone(&self.0) };
        Box::pin(async move { Ok(tonic::server::Grpc::new(BytesCodec).unary(method, request).await) })
    }
}

struct ScriptedMethod {
    path: String,
    answer: Arc<GrpcAnswer>,
}

impl tonic::server::UnaryService<Vec<u8>> for ScriptedMethod {
    type Response = Vec<u8>;
    type Future = std::future::Ready<Result<Response<Vec<u8>>, Status>>;

    fn call(&mut self, request: Request<Vec<u8>>) -> Self::Future {
        let answer = (self.answer)(&self.path, request.metadata(), request.get_ref());
        std::future::ready(answer.map(Response::new))
    }
}

/// Messages as bytes.
struct BytesCodec;

impl Codec for BytesCodec {
    type Encode = Vec<u8>;
    type Decode = Vec<u8>;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for BytesCodec {
    type Item = Vec<u8>;
    type Error = Status;

    fn encode(&mut self, item: Vec<u8>, out: &mut EncodeBuf<'_>) -> Result<(), Status> {
        out.put_slice(&item);
        Ok(())
    }
}

impl Decoder for BytesCodec {
    type Item = Vec<u8>;
    type Error = Status;

    fn decode(&mut self, bytes: &mut DecodeBuf<'_>) -> Result<Option<Vec<u8>>, Status> {
        let length = bytes.remaining();
        Ok(Some(bytes.copy_to_bytes(length).to_vec()))
    }
}
