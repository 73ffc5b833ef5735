//! What the variables of a container are (spec 1.3).
