//! 0 ↔ 1: what is written, told and remembered (spec 3.6, 3.7, 3.9).
