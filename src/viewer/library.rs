//! What the page may ask for: one path, one answer. Nothing is ever written, and a name in a path is looked up in the
//! list of what was found, never on disk.

use std::{
    fs,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use bytes::Bytes;
use serde_json::{Value, json};

use super::{
    compare, data,
    listing::{KnownEntry, Listing, RunRow, report_of},
    opened::{OpenedRun, Shelf},
    sample, skeleton,
    step::{self, StepBody},
    traced::TRACE_FILE,
};
use crate::{
    recording,
    replay::{Comparison, Rules},
};

/// What lies below the directories that were named.
#[derive(Debug)]
pub struct ViewerLibrary {
    dirs: Vec<PathBuf>,
    listing: Mutex<Arc<Listing>>,
    known: Mutex<KnownEntry>,
    shelf: Shelf,
}

/// An answer.
#[derive(Debug, Clone, PartialEq)]
pub enum LibraryAnswer {
    /// Data.
    Json(Value),
    /// A body as it is stored, to be saved under this name.
    File(String, Bytes),
}

/// Why there is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoAnswer {
    /// Nothing has this name.
    #[error("{0}")]
    Unknown(String),
    /// It is there and cannot be read.
    #[error("{0}")]
    Unreadable(String),
}

type LibraryAnswered = Result<LibraryAnswer, NoAnswer>;

fn unknown(what: &str) -> NoAnswer {
    NoAnswer::Unknown(format!("there is no {what}"))
}

fn unreadable(error: impl std::fmt::Display) -> NoAnswer {
    NoAnswer::Unreadable(error.to_string())
}

impl ViewerLibrary {
    /// The library of some directories.
    pub fn of(dirs: Vec<PathBuf>) -> Self {
        let mut known = KnownEntry::default();
        let listing = Mutex::new(Arc::new(Listing::again(&dirs, &mut known)));
        Self { dirs, listing, known: Mutex::new(known), shelf: Shelf::default() }
    }

    /// What was found when it was looked last.
    pub fn listing(&self) -> Arc<Listing> {
        Arc::clone(&self.listing.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Looks again.
    fn look(&self) -> Arc<Listing> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let found = Arc::new(Listing::again(&self.dirs, &mut known));
        *self.listing.lock().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&found);
        found
    }

    /// The run of a name, which may be newer than the list.
    fn run(&self, key: &str) -> Result<RunRow, NoAnswer> {
        let known = self.listing().run(key).cloned();
        known.or_else(|| self.look().run(key).cloned()).ok_or_else(|| unknown("such run"))
    }

    /// The recording of a run, as it is now.
    ///
    /// # Errors
    /// There is no such run, or it cannot be read.
    pub fn open(&self, key: &str) -> Result<Arc<OpenedRun>, NoAnswer> {
        self.shelf.open(&self.run(key)?.dir).map_err(unreadable)
    }

    /// Answers a path below `/api/`.
    ///
    /// # Errors
    /// Nothing has this name, or it cannot be read.
    pub fn answer(&self, path: &str) -> LibraryAnswered {
        let parts: Vec<&str> = path.split('/').collect();
        match parts.as_slice() {
            ["tree"] => Ok(LibraryAnswer::Json(json!(*self.look()))),
            ["run", run] => {
                let opened = self.open(run)?;
                Ok(LibraryAnswer::Json(skeleton::run(&opened, &self.listing())))
            }
            ["run", run, "step", number] => {
                let found = self.open(run)?.step(position(number)?).ok_or_else(|| unknown("such step"))?;
                Ok(LibraryAnswer::Json(data::step_of(&found, true)))
            }
            ["run", run, "told", number] => {
                let opened = self.open(run)?;
                step::step(&opened, position(number)?).map(LibraryAnswer::Json).ok_or_else(|| unknown("such step"))
            }
            ["run", run, "trace"] => self.trace(run),
            ["run", run, what @ ("raw" | "file"), number, rest @ ..] => self.body(run, what, number, rest),
            ["diff", a, b] => self.diff(a, b),
            ["campaign", campaign] => {
                let listing = self.listing();
                let place = listing.campaign(campaign).ok_or_else(|| unknown("such campaign"))?;
                report_of(&place.dir).map(LibraryAnswer::Json).ok_or_else(|| unknown("report of it"))
            }
            ["dataset", dataset] => {
                let listing = self.listing();
                let place = listing.dataset(dataset).ok_or_else(|| unknown("such dataset"))?;
                sample::dataset(place, &listing).map(LibraryAnswer::Json).map_err(unreadable)
            }
            ["sample", dataset, rest @ ..] => self.sample(dataset, rest),
            _ => Err(unknown("such page")),
        }
    }

    fn trace(&self, run: &str) -> LibraryAnswered {
        let path = self.run(run)?.dir.join(TRACE_FILE);
        let text = fs::read(path).map_err(|_| unknown("trace of it"))?;
        serde_json::from_slice(&text).map(LibraryAnswer::Json).map_err(unreadable)
    }

    fn body(&self, run: &str, what: &str, number: &str, rest: &[&str]) -> LibraryAnswered {
        let body = match *rest {
            [which] => StepBody::parse(which, None),
            [which, attempt] => StepBody::parse(which, Some(attempt)),
            _ => None,
        };
        let found = self.open(run)?.step(position(number)?).ok_or_else(|| unknown("such step"))?;
        let bytes = body.and_then(|body| body.of(&found)).ok_or_else(|| unknown("such body"))?;
        if what == "raw" {
            return Ok(LibraryAnswer::Json(step::raw(&bytes)));
        }
        Ok(LibraryAnswer::File(format!("{run}-{number}-{}.txt", rest.join("-")), bytes))
    }

    fn diff(&self, a: &str, b: &str) -> LibraryAnswered {
        let read = |key| recording::read(&self.run(key)?.dir).map_err(unreadable);
        let (a, b) = (read(a)?, read(b)?);
        let comparison = Comparison::of(&a.trajectory, &b.trajectory, &Rules::default());
        Ok(LibraryAnswer::Json(compare::compared(&comparison, &a, &b)))
    }

    fn sample(&self, dataset: &str, rest: &[&str]) -> LibraryAnswered {
        let listing = self.listing();
        let place = listing.dataset(dataset).ok_or_else(|| unknown("such dataset"))?;
        let found = |number: &str| {
            let at = position(number)? as usize;
            sample::at(place, at).map_err(unreadable)?.ok_or_else(|| unknown("such sample"))
        };
        match *rest {
            [number] => Ok(LibraryAnswer::Json(sample::run(&found(number)?))),
            [number, "told", step] => {
                let told = sample::step(&found(number)?, position(step)?);
                told.map(LibraryAnswer::Json).ok_or_else(|| unknown("such step"))
            }
            _ => Err(unknown("such page")),
        }
    }
}

fn position(text: &str) -> Result<u32, NoAnswer> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| digits).ok_or_else(|| unknown("such step"))
}
