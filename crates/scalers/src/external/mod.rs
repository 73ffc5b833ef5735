//! external and external-push: scalers that others wrote, over gRPC.
