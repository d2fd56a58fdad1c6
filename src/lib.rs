#![doc = include_str!("ARCHITECTURE.md")]

// Pure: no IO, no clock, no ambient randomness.
pub mod fault;
pub mod identity;
pub mod manipulator;
pub mod plan;
pub mod surface;
pub mod trajectory;
// IO.
pub mod cli;
pub mod launch;
pub mod proxy;
pub mod recording;
pub mod simulator;
