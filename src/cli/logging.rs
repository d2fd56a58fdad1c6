//! The program's own log: a line an event on standard error, in JSON where `--format json` asks for it.

use std::{
    io::{self, Write},
    sync::atomic::{AtomicBool, Ordering},
};

use serde_json::json;

use super::{Global, OutputFormat, screen::Screen, terminal};

/// Sends it to standard error.
pub(super) fn start(global: &Global) {
    let level = match (global.quiet, global.verbose) {
        (true, _) => "error",
        (false, 0) => "warn",
        (false, 1) => "aegis=info,warn",
        (false, _) => "aegis=debug,info",
    };
    let filter = tracing_subscriber::EnvFilter::try_from_env("AEGIS_LOG").unwrap_or_else(|_| level.into());
    let ansi = Screen::of_talk(global.color).has_colours();
    let subscriber = tracing_subscriber::fmt().with_env_filter(filter).with_target(false);
    // A library user may have set a subscriber of their own; theirs stays.
    let _ = match global.format {
        OutputFormat::Json => subscriber.json().flatten_event(true).with_writer(|| MaskedStderr).try_init(),
        OutputFormat::Text => subscriber.with_ansi(ansi).with_writer(|| MaskedStderr).try_init(),
    };
}

/// Says that the process is a server: its lines have the form of its log, so that one reader takes both.
pub(super) fn serves(is_json: bool) {
    IS_JSON.store(is_json, Ordering::Relaxed);
}

/// Whether lines are JSON.
static IS_JSON: AtomicBool = AtomicBool::new(false);

/// Writes a line to standard error, in the form of the log's. Where it takes none, on a full disk, the line is lost, and the server
/// goes on.
pub(super) fn line(words: std::fmt::Arguments<'_>) {
    let _ = if IS_JSON.load(Ordering::Relaxed) {
        write_json("INFO", &words.to_string())
    } else {
        writeln!(terminal::stderr(), "{words}")
    };
}

/// The same of what ends the process.
pub(super) fn failed(words: &str, colour: clap::ColorChoice) {
    if IS_JSON.load(Ordering::Relaxed) {
        let _ = write_json("ERROR", words.trim_start_matches("error: "));
    } else {
        super::screen::say(colour, words);
    }
}

fn write_json(level: &str, message: &str) -> io::Result<()> {
    let timestamp = jiff::Timestamp::now().to_string();
    writeln!(terminal::stderr(), "{}", json!({"timestamp": timestamp, "level": level, "message": message}))
}

/// Standard error without secrets: each line comes in one write.
struct MaskedStderr;

impl Write for MaskedStderr {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        // Its file may be on a disk that is full: a line is lost then, and no call with it.
        let _ = terminal::stderr().write_all(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        terminal::stderr().flush()
    }
}
