#![doc = include_str!("../README.md")]
#![cfg_attr(
    test,
    allow(
        clippy::pedantic,
        clippy::string_slice,
        clippy::disallowed_methods,
        clippy::disallowed_types,
        reason = "tests are read for what they check, not for style, and may read files"
    )
)]

use aegis_conversation::{surface, trajectory};
use aegis_statistics::proof;

pub mod mode;
pub mod fault;
pub mod manipulator;
pub mod plan;
