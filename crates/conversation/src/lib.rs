#![doc = include_str!("../README.md")]
#![cfg_attr(
    test,
    allow(clippy::pedantic, clippy::string_slice, reason = "tests are read for what they check, not for style")
)]

pub mod trajectory;
pub mod surface;
pub mod equality;
