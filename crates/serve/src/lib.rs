//! All that is served.
