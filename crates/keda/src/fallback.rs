//! A source that fails too often is replaced by a number (spec 4.4).
