//! Opens what was made in the browser, as the desktop does.

use std::process::{Command, Stdio};

/// Opens an address or a file; says so where there is nothing to open it with.
pub(super) fn open(what: &str) {
    let opened = ["xdg-open", "open"].into_iter().any(|program| {
        let mut command = Command::new(program);
        command.arg(what).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().is_ok()
    });
    if !opened {
        talkln!("no browser was found to open it with");
    }
}
