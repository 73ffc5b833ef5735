//! The language of formulas, as expr 1.17 reads it (spec 4.5).
