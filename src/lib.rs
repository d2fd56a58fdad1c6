#![doc = include_str!("ARCHITECTURE.md")]
#![cfg_attr(
    test,
    allow(clippy::pedantic, clippy::string_slice, reason = "tests are read for what they check, not for style")
)]

// Pure: no IO, no clock, no ambient randomness.
pub mod trajectory;
pub mod surface;
pub mod equality;
pub mod identity;
pub mod manipulator;
pub mod mode;
pub mod fault;
pub mod plan;
pub mod score;
pub mod proof;
pub mod budget;
// IO.
pub mod recording;
pub mod ruling;
pub mod verdict;
pub mod monitor;
pub mod watch;
pub mod proxy;
pub mod replay;
pub mod simulator;
pub mod launch;
pub mod verify;
pub mod dataset;
pub mod foreign;
pub mod execution;
pub mod attribution;
pub mod example;
pub mod campaign;
pub mod demo;
pub mod capability;
pub mod viewer;
pub mod cli;
