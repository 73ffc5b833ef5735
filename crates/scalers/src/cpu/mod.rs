//! cpu and memory: numbers that the HPA has from metrics-server.
