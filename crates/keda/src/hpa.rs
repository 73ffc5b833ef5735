//! The HPA that is made of a ScaledObject (spec 2.6).
