//! Listen, exchange, forward.
pub mod upstream;
