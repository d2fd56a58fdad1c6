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

use aegis_conversation::trajectory;

pub mod proof;
pub mod score;
