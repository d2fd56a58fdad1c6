#![doc = include_str!("../README.md")]
#![cfg_attr(
    test,
    allow(clippy::pedantic, clippy::string_slice, reason = "tests are read for what they check, not for style")
)]

use aegis_conversation::{equality, surface, trajectory};
use aegis_identity::identity;
use aegis_injection::{manipulator, plan};
use aegis_recording::{recording, ruling};
use aegis_statistics::proof;
use aegis_wire::{budget, proxy, replay};

pub mod launch;
pub mod verify;
pub mod execution;
pub mod example;
