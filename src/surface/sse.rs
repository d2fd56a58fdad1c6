//! Event streams: bytes ↔ events.
