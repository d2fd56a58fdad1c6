//! Lists the ready-made plans, so that they become part of the program.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a build script reads the files that the pure crate holds"
)]

use std::{env, fs, io, path::Path};

fn main() -> io::Result<()> {
    let names_none = |name: &str| io::Error::other(format!("cargo names no {name}"));
    // As the script runs, not as it was compiled: one that a cache holds may stand for another checkout.
    let crate_dir = env::var_os("CARGO_MANIFEST_DIR").ok_or_else(|| names_none("CARGO_MANIFEST_DIR"))?;
    let folder = Path::new(&crate_dir).join("../../plans");
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut plans = Vec::new();
    list(&folder, "", &mut plans)?;
    plans.sort();
    let out = env::var_os("OUT_DIR").ok_or_else(|| names_none("OUT_DIR"))?;
    fs::write(Path::new(&out).join("plans.rs"), format!("&[{}]", plans.join(",\n")))
}

/// The plans below a folder as pairs of name and text. Templates have a format of their own.
fn list(folder: &Path, prefix: &str, plans: &mut Vec<String>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if path.is_dir() && name != "templates" {
            list(&path, &format!("{prefix}{name}/"), plans)?;
        } else if let Some(name) = name.strip_suffix(".toml") {
            let (name, file) = (format!("{prefix}{name}"), path.to_string_lossy());
            plans.push(format!("({name:?}, include_str!({file:?}))"));
        }
    }
    Ok(())
}
