//! Which objects are refused, and in which words (spec 8).
