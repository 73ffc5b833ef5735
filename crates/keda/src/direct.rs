//! A ScaledObject for our own engine, without an HPA.
