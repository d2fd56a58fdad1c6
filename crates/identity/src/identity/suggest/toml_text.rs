//! Texts as they stand in TOML.

use std::fmt::Write;

/// A pattern as a TOML string: between single quotes, where it may be, so that it reads as it is.
pub(super) fn toml_pattern(pattern: &str) -> String {
    let plain = pattern.chars().all(|sign| sign != '\'' && sign.escape_debug().len() < 3);
    if plain { format!("'{pattern}'") } else { toml_string(pattern) }
}

/// A TOML string. JSON's escapes are TOML's; what could steer a terminal is escaped too.
pub(super) fn toml_string(text: &str) -> String {
    let mut quoted = String::new();
    for sign in serde_json::Value::from(text).to_string().chars() {
        if sign.escape_debug().len() > 3 {
            let _ = write!(quoted, "\\U{:08X}", u32::from(sign));
        } else {
            quoted.push(sign);
        }
    }
    quoted
}
