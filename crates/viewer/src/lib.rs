#![doc = include_str!("../README.md")]
#![cfg_attr(
    test,
    allow(clippy::pedantic, clippy::string_slice, reason = "tests are read for what they check, not for style")
)]

use aegis_conversation::{surface, trajectory};
use aegis_dataset::dataset;
use aegis_execution::launch;
use aegis_injection::mode;
use aegis_recording::{recording, ruling};
use aegis_statistics::proof;
use aegis_wire::{proxy, replay};

pub mod capability;
pub mod viewer;
