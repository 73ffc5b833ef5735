//! metrics-api: a number in the answer of any HTTP server.
