#![doc = include_str!("../README.md")]
#![cfg_attr(
    test,
    allow(clippy::pedantic, clippy::string_slice, reason = "tests are read for what they check, not for style")
)]

use aegis_conversation::trajectory;

pub mod proof;
pub mod score;
