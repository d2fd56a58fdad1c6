//! Recordings that are looked at: opened once, and again when their files change.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use serde_json::{Value, value::RawValue};

use super::{
    blind,
    origin::ReplyOrigins,
    stamp::{Stamp, stamp},
    suspected::Suspected,
    traced::Traced,
};
use crate::{
    capability::Capabilities,
    recording::{self, Recording, RecordingError, Requests},
    ruling,
    surface::account::{self, RunAccount},
    trajectory::{Step, StepIndex},
};

/// Recordings that are kept open beside the one that was opened last, and how many bytes they may hold together.
const BESIDE: usize = 5;
const BESIDE_BYTES: usize = 32 << 20;
/// Requests of one run that its page looks at, in bytes: once where it is sealed, after each change where it is being written.
const SEALED_MAX: u64 = 32 << 20;
const OPEN_MAX: u64 = 2 << 20;

/// A recording in memory, its requests as they stand in the log: what they share is held once.
#[derive(Debug)]
pub struct OpenedRun {
    /// The recording; the requests of its steps are empty.
    pub recording: Recording,
    /// Where it lies.
    pub dir: PathBuf,
    requests: Requests,
    /// Asked for when it is shown.
    whole_run: OnceLock<WholeRun>,
    origins: OnceLock<ReplyOrigins>,
    /// How much of each step was read; it is looked at when it is shown.
    accounts: OnceLock<ReadSteps>,
    /// Whether what is known about the run is left out.
    pub(super) is_blind: bool,
    /// The rows of its page as they are sent, once they were asked for.
    pub(super) rows: OnceLock<Box<RawValue>>,
}

/// What follows from the whole of a recording.
#[derive(Debug, Default)]
struct WholeRun {
    /// Why it has no label, or one that does not hold.
    no_label: Option<String>,
    /// What can be done with it, by verb.
    can: Value,
}

impl OpenedRun {
    /// Reads a recording.
    ///
    /// # Errors
    /// As [`recording::read`].
    pub fn read(dir: &Path) -> Result<Self, RecordingError> {
        let (recording, requests) = recording::read_apart(dir)?;
        Ok(Self {
            recording,
            dir: dir.to_owned(),
            requests,
            whole_run: OnceLock::new(),
            origins: OnceLock::new(),
            accounts: OnceLock::new(),
            is_blind: false,
            rows: OnceLock::new(),
        })
    }

    /// The same without what is known about the run.
    pub(super) fn blinded(mut self) -> Self {
        blind::recording(&mut self.recording);
        self.is_blind = true;
        self
    }

    /// What follows from the whole of it, as far as it may be seen. The gates read the requests too, so the run is read whole,
    /// once.
    fn whole_run(&self) -> &WholeRun {
        self.whole_run.get_or_init(|| {
            let whole = (!self.is_blind).then(|| recording::read(&self.dir).ok()).flatten();
            whole.map_or_else(WholeRun::default, |whole| WholeRun {
                no_label: ruling::objection(&whole),
                can: Capabilities::new(&whole, &self.dir).data(),
            })
        })
    }

    /// Why the run has no label, or one that does not hold.
    pub(super) fn no_label(&self) -> Option<&str> {
        self.whole_run().no_label.as_deref()
    }

    /// What can be done with the run, by verb.
    pub(super) fn can(&self) -> &Value {
        &self.whole_run().can
    }

    /// Where its replies came from, as far as it may be seen.
    pub(super) fn origins(&self) -> &ReplyOrigins {
        let known = || ReplyOrigins::read(&self.recording, &self.dir);
        self.origins.get_or_init(|| if self.is_blind { ReplyOrigins::default() } else { known() })
    }

    /// How much of each step was read.
    pub(super) fn accounts(&self) -> &ReadSteps {
        self.accounts.get_or_init(|| ReadSteps::for_page(self))
    }

    /// What a trace found, as far as it may be seen.
    pub(super) fn traced(&self) -> Option<Traced> {
        Traced::read(&self.dir).filter(|_| !self.is_blind)
    }

    /// What methods of attribution say of it, beside it and in files, as far as it may be seen.
    pub(super) fn suspected(&self, files: &[PathBuf]) -> Option<Suspected> {
        let said = || Suspected::read(&self.dir, self.recording.manifest.run.as_str(), files);
        if self.is_blind { None } else { said() }
    }

    /// Bytes of bodies that it holds.
    fn held(&self) -> usize {
        let attempts = self.steps().iter().flat_map(|step| &step.attempts);
        let replies =
            attempts.map(|attempt| attempt.reply.len() + attempt.reply_delivered.as_ref().map_or(0, bytes::Bytes::len));
        self.requests.held() + replies.sum::<usize>()
    }

    /// The steps, without their requests.
    pub fn steps(&self) -> &[Step] {
        &self.recording.trajectory.steps
    }

    /// A step with its request.
    pub fn step(&self, number: StepIndex) -> Option<Step> {
        let at = self.steps().iter().position(|step| step.step == number)?;
        self.at(at)
    }

    /// The step at a position, with its request.
    pub fn at(&self, position: usize) -> Option<Step> {
        let mut step = self.steps().get(position)?.clone();
        step.request = self.requests.get(position);
        Some(if self.is_blind { blind::step(step) } else { step })
    }
}

/// How much of each step of a run was read, and of the run. What is looked at is bounded: the requests of a growing conversation are
/// as long together as the square of its length.
#[derive(Debug)]
pub(super) struct ReadSteps {
    /// By the steps' positions: `read`, `partly read`, `unread`.
    pub(super) words: Vec<&'static str>,
    /// All of them, counted.
    pub(super) account: RunAccount,
    /// Bytes of the requests that were looked at.
    pub(super) bytes: u64,
}

impl ReadSteps {
    /// Looks at a run for its page.
    pub(super) fn for_page(opened: &OpenedRun) -> Self {
        Self::read(opened, if opened.recording.sealed { SEALED_MAX } else { OPEN_MAX })
    }

    /// Looks at the steps of a run: at every reply, which is held anyway, and at requests up to so many bytes.
    pub(super) fn read(opened: &OpenedRun, room: u64) -> Self {
        let mut read = Self { words: Vec::new(), account: RunAccount::default(), bytes: 0 };
        for (at, bare) in opened.steps().iter().enumerate() {
            let whole = (read.bytes < room).then(|| opened.at(at)).flatten();
            let account = account::of_step(whole.as_ref().unwrap_or(bare));
            match whole {
                Some(step) => read.bytes = read.bytes.saturating_add(step.request.len() as u64),
                None => read.account.requests_left_out += 1,
            }
            read.account.add(&account);
            read.words.push(account.words());
        }
        read
    }
}

/// The recordings that were looked at last.
#[derive(Debug, Default)]
pub(super) struct RecentRuns(Mutex<Vec<(Stamp, Arc<OpenedRun>)>>);

impl RecentRuns {
    /// The recording in a directory, as it is now.
    ///
    /// # Errors
    /// As [`recording::read`].
    pub(super) fn open(&self, dir: &Path, is_blind: bool) -> Result<Arc<OpenedRun>, RecordingError> {
        let now = stamp(dir);
        {
            let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(at) = kept.iter().position(|(stamp, opened)| opened.dir == dir && *stamp == now) {
                let found = kept.remove(at);
                let opened = Arc::clone(&found.1);
                kept.push(found);
                return Ok(opened);
            }
        }
        // Read outside the lock: a long one keeps nobody waiting.
        let read = OpenedRun::read(dir)?;
        let opened = Arc::new(if is_blind { read.blinded() } else { read });
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|(_, other)| other.dir != dir);
        while kept.len() > BESIDE || kept.iter().map(|(_, other)| other.held()).sum::<usize>() > BESIDE_BYTES {
            kept.remove(0);
        }
        kept.push((now, Arc::clone(&opened)));
        Ok(opened)
    }
}
