//! Foreign formats, one file each: what they are read from and written to.

mod gold;

pub use gold::gold;
