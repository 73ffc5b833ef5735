//! The words of client-go.
