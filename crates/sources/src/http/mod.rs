//! One way to ask others over HTTP: TLS, tokens and certificates that are read again, deadlines, limits on answers.
