//! postgresql: the result of an SQL query.
