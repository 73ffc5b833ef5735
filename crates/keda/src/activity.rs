//! Whether a ScaledObject is active, and why (spec 3.4).
