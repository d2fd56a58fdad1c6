//! Names the commit of the source for `aegis --version` and `run.json`.
//!
//! An optimised build takes it from `AEGIS_COMMIT`, else from git, else from what `cargo package` noted. A development build
//! has none, so that a commit does not rebuild all crates.

use std::{env, fs, path::Path, process::Command};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=AEGIS_COMMIT");
    let commit = env::var("AEGIS_COMMIT").ok().or_else(|| {
        let optimised = env::var("PROFILE").is_ok_and(|profile| profile == "release");
        optimised.then(checked_out).flatten()
    });
    let commit = commit.filter(|commit| commit.len() >= 7 && commit.bytes().all(|byte| byte.is_ascii_hexdigit()));
    let version = env::var("CARGO_PKG_VERSION").unwrap_or_default();
    match commit.as_ref().map(|commit| commit.get(..12).unwrap_or(commit)) {
        Some(commit) => {
            println!("cargo::rustc-env=BUILD_COMMIT={commit}");
            println!("cargo::rustc-env=BUILD_VERSION={version} ({commit})");
        }
        None => println!("cargo::rustc-env=BUILD_VERSION={version}"),
    }
}

/// The commit that is checked out, or that the package was made from.
fn checked_out() -> Option<String> {
    if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]).filter(|log| Path::new(log).exists()) {
        println!("cargo::rerun-if-changed={log}");
    }
    git(&["rev-parse", "HEAD"]).or_else(|| {
        let noted = fs::read_to_string(".cargo_vcs_info.json").ok()?;
        let sha1 = noted.split("\"sha1\"").nth(1)?;
        Some(sha1.split('"').nth(1)?.to_owned())
    })
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}
