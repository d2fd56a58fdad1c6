#![doc = include_str!("../README.md")]
#![cfg_attr(
    test,
    allow(clippy::pedantic, clippy::string_slice, reason = "tests are read for what they check, not for style")
)]

use aegis_conversation::{equality, surface, trajectory};
use aegis_identity::identity;
use aegis_injection::{fault, mode, plan};
use aegis_statistics::proof;

pub mod recording;
pub mod ruling;
pub mod verdict;
pub mod watch;
