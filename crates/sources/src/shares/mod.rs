//! Which replica scrapes which node, and what replicas tell each other.
