//! Decodes the replies of a server, for fuzzing.

use std::collections::HashMap;

use redis::{FromRedisValue, Value};

use super::query;

/// Decodes a reply as each request does. Returns whether it is a reply at all.
pub fn is_reply(bytes: &[u8]) -> bool {
    let Ok(value) = redis::parse_redis_value(bytes) else { return false };
    let _ = i64::from_redis_value_ref(&value);
    let _ = Vec::<Value>::from_redis_value_ref(&value);
    let _ = Vec::<HashMap<String, Value>>::from_redis_value_ref(&value);
    if let Ok(text) = String::from_redis_value_ref(&value) {
        let _ = (query::knows_lag(&text), query::counts("key", &text), query::host_and_port(&text));
    }
    true
}
