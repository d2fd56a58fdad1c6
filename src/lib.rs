#![doc = include_str!("ARCHITECTURE.md")]
#![cfg_attr(
    test,
    allow(clippy::pedantic, clippy::string_slice, reason = "tests are read for what they check, not for style")
)]

pub use aegis_attribution::attribution;
pub use aegis_campaign::{campaign, demo};
pub use aegis_conversation::{equality, surface, trajectory};
pub use aegis_dataset::{dataset, foreign};
pub use aegis_execution::{example, execution, launch, verify};
pub use aegis_identity::identity;
pub use aegis_injection::{fault, manipulator, mode, plan};
pub use aegis_recording::{recording, ruling, verdict, watch};
pub use aegis_statistics::{proof, score};
pub use aegis_viewer::{capability, viewer};
pub use aegis_wire::{budget, monitor, proxy, replay, simulator};

pub mod cli;

/// The how-to page: its code blocks are compiled and run as documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../docs/add-a-manipulator.md")]
struct HowTo;
