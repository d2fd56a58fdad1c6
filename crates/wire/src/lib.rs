#![doc = include_str!("../README.md")]
#![cfg_attr(
    test,
    allow(clippy::pedantic, clippy::string_slice, reason = "tests are read for what they check, not for style")
)]

use aegis_conversation::{equality, surface, trajectory};
use aegis_identity::identity;
use aegis_injection::{fault, manipulator, plan};
use aegis_recording::{recording, ruling, watch};

pub mod budget;
pub mod monitor;
pub mod proxy;
pub mod replay;
pub mod simulator;
