#![doc = include_str!("../README.md")]
#![cfg_attr(
    test,
    allow(clippy::pedantic, clippy::string_slice, reason = "tests are read for what they check, not for style")
)]

use aegis_conversation::{equality, surface, trajectory};
use aegis_dataset::dataset;
use aegis_execution::{execution, launch};
use aegis_injection::{mode, plan};
use aegis_recording::{recording, ruling, watch};
use aegis_statistics::{proof, score};
use aegis_wire::{budget, proxy, replay};

pub mod attribution;
