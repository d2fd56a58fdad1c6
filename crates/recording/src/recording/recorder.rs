//! The writer of one run: what the exchange calls.

use std::{
    io::Write,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::SystemTime,
};

use jiff::{Timestamp, fmt::temporal::DateTimePrinter};

use super::{
    Captured, Close, Durability, Manifest, Open, RecordingError, Seal, Settings,
    content_hash::ContentHash,
    counts::RecordCounts,
    disk::Disk,
    encode::{Encoder, Prepared, joined},
    error::error_text,
    json_file::{read_json, write_json},
    lock,
    log::{Log, Queued},
    record::{CloseRecord, NoteRecord, OpenRecord, Record, StopRecord, WatchRecord},
    recover::{REOPENED, Recovered, recover},
    roll, seal, write,
};
use crate::{
    equality::Rules,
    identity::RosterRule,
    trajectory::{Outcome, ProgramEnd, ProxyErrorText, WatchSign},
};

/// How records write the wall clock: to the microsecond.
const STAMP: DateTimePrinter = DateTimePrinter::new().precision(Some(6));

/// Records one run. Shared by the run's exchanges; every call returns after its record is written, but for those that
/// queue it.
#[derive(Debug)]
pub struct Recorder {
    disk: Disk,
    dir: PathBuf,
    settings: Settings,
    manifest: Mutex<Manifest>,
    pub(super) counts: Mutex<RecordCounts>,
    pub(super) log: Arc<Log>,
    pub(super) encoder: Encoder,
}

impl Recorder {
    /// Begins the recording of a run in `log_dir/<run>/`, or goes on with one that was not sealed (its torn end, if a
    /// crash left one, is cut and kept in `log.torn`).
    ///
    /// # Errors
    /// [`RecordingError::Sealed`], [`RecordingError::Locked`] and [`RecordingError::OtherPlan`] when the run must not
    /// be written; [`RecordingError::Corrupt`] when its log is damaged; [`RecordingError::Io`].
    pub fn create(log_dir: &Path, manifest: Manifest, settings: &Settings) -> Result<Self, RecordingError> {
        let synced = settings.durability == Durability::Synced;
        Self::create_rolling(Disk::new(synced), log_dir, manifest, settings, roll::STEP)
    }

    /// As [`Recorder::create`], with a log that [rolls](super::roll) in steps of so many bytes.
    pub(super) fn create_rolling(
        disk: Disk,
        log_dir: &Path,
        manifest: Manifest,
        settings: &Settings,
        step: u64,
    ) -> Result<Self, RecordingError> {
        let encoder = Encoder::new(settings.redactor.clone(), settings.max_kept_body);
        let manifest = manifest.redacted(&encoder.redactor);
        let dir = log_dir.join(manifest.run.as_str());
        let (file, is_new) = lock::open(&disk, &dir, manifest.run.as_str())?;
        let earlier = if is_new { None } else { read_json::<Manifest>(&dir.join("run.json"))? };
        let manifest = match earlier {
            Some(earlier) if earlier.plan_digest != manifest.plan_digest => {
                return Err(RecordingError::OtherPlan { run: manifest.run.as_str().to_owned() });
            }
            Some(earlier) if manifest.launched.is_some() && manifest.launched != earlier.launched => {
                let manifest = Manifest { launched: manifest.launched, ..earlier }.marked(settings.machine);
                write_json(&disk, &dir.join("run.json"), &manifest)?;
                manifest
            }
            Some(earlier) => earlier,
            None => {
                let manifest = manifest.marked(settings.machine);
                write_json(&disk, &dir.join("run.json"), &manifest)?;
                manifest
            }
        };
        let mut found = if is_new { Recovered::default() } else { recover(&disk, &dir, &file)? };
        let (records, torn) = (found.records, found.torn);
        let counts = Mutex::new(std::mem::take(&mut found.counts));
        let log = Log::new(disk.clone(), &dir.join("log.jsonl"), file, settings.durability, found, step);
        let manifest = Mutex::new(manifest);
        let recorder = Self { disk, dir, settings: settings.clone(), manifest, counts, log, encoder };
        if torn > 0 {
            recorder.try_note(&format!("the last write was torn: {torn} bytes moved to log.torn"))?;
        }
        if records > 0 {
            recorder.counts.lock().unwrap_or_else(PoisonError::into_inner).reopened();
            recorder.try_note(REOPENED)?;
        }
        Ok(recorder)
    }

    /// The run's directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Who its agents are, where whoever opened it said so.
    pub fn roster(&self) -> Vec<RosterRule> {
        self.manifest.lock().unwrap_or_else(PoisonError::into_inner).roster.clone()
    }

    /// What may differ in its requests that are still the same.
    ///
    /// # Errors
    /// Rules that this version does not read.
    pub fn rules(&self) -> Result<Rules, RecordingError> {
        self.manifest.lock().unwrap_or_else(PoisonError::into_inner).rules()
    }

    /// What masks secrets in it.
    pub fn redactor(&self) -> &super::Redactor {
        &self.encoder.redactor
    }

    /// The clock that the recorder's own records use; [`Open::at_us`] counts on it.
    pub fn clock(&self) -> super::Clock {
        self.settings.clock
    }

    /// Records that a request arrived. To be called before the upstream is dialled.
    ///
    /// # Errors
    /// [`RecordingError::Io`] at the first failed write, [`RecordingError::Stopped`] ever after.
    pub fn open(&self, open: Open<'_>) -> Result<(), RecordingError> {
        let queued = self.queue_open(open)?;
        self.write_queued(queued)
    }

    /// As [`Recorder::open`], but the record waits for [`Recorder::write_queued`].
    ///
    /// # Errors
    /// As [`Recorder::open`].
    pub fn queue_open(&self, open: Open<'_>) -> Result<Queued, RecordingError> {
        self.encoder.redactor.add_credentials(open.path, open.headers);
        let attribution = self.encoder.redactor.attribution(open.attribution);
        let agent = attribution.agent.clone();
        let hash = open.body_hash.map(ContentHash::from_raw);
        let body = open.body.map(|body| self.encoder.prepare(body, true, hash, None));
        let record = Record::Open(OpenRecord {
            step: open.step,
            call: open.call,
            attempt: open.attempt,
            attribution,
            overlapping: open.overlapping,
            relates: std::borrow::Cow::Borrowed(open.relates),
            run_source: open.run_source.into(),
            surface: open.surface.into(),
            method: open.method.into(),
            path: self.encoder.redactor.path(open.path),
            at: STAMP.timestamp_to_string(&open.wall).into(),
            t_us: open.at_us,
            headers: self.encoder.redactor.headers(open.headers),
            body: body.as_ref().map(Prepared::record),
        });
        let below = self.queue(&record, &[(body.as_ref(), true)])?;
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.opened((open.step, open.attempt), agent.as_str(), open.at_us);
        Ok(Queued { below, is_alone: counts.exchanges <= counts.closed + 1 })
    }

    /// Records words about the run. A failure shows in [`Recorder::is_stopped`].
    pub fn note(&self, text: &str) {
        if let Err(error) = self.try_note(text) {
            tracing::error!(error = %error_text(&error), "a note was not recorded");
        }
    }

    /// Records a sign of trouble; gives it as it was recorded, with what looks like a secret masked. A failure shows in
    /// [`Recorder::is_stopped`].
    pub fn watch(&self, sign: &WatchSign) -> WatchSign {
        let redactor = &self.encoder.redactor;
        let masked = |text: &str| redactor.text(text).into_owned();
        let sign = WatchSign { seen: masked(&sign.seen), quote: masked(&sign.quote), ..sign.clone() };
        let at = STAMP.timestamp_to_string(&self.settings.clock.wall());
        let record = WatchRecord { at: at.into(), sign: std::borrow::Cow::Borrowed(&sign) };
        if let Err(error) = self.write(&Record::Watch(Box::new(record)), &[]) {
            tracing::error!(error = %error_text(&error), "a sign was not recorded");
        }
        sign
    }

    /// Records that an exchange ended. To be called before the end of the reply is released.
    ///
    /// # Errors
    /// As [`Recorder::open`].
    pub fn close(&self, close: Close<'_>) -> Result<(), RecordingError> {
        let queued = self.queue_close(close)?;
        self.write_queued(queued)
    }

    /// As [`Recorder::close`], but the record waits for [`Recorder::write_queued`].
    ///
    /// # Errors
    /// As [`Recorder::open`].
    pub fn queue_close(&self, close: Close<'_>) -> Result<Queued, RecordingError> {
        let encoder = &self.encoder;
        let request = close.streamed_request.map(|body| encoder.prepare_beginning(&body.prefix, body.length));
        let (reply, streamed) = match close.reply {
            Captured::Nothing | Captured::Uninspected(_) => (None, false),
            Captured::Whole(pieces) => (Some(encoder.prepare(&joined(pieces.iter()), false, None, None)), false),
            Captured::Stream(pieces) => {
                let body = joined(pieces.iter().map(|(piece, _)| piece));
                (Some(encoder.prepare_stream(&body, pieces)), true)
            }
        };
        let delivered = close.delivered.map(|body| encoder.prepare(body, false, None, reply.as_ref()));
        let fuller = close.reply_with_logprobs.map(|body| encoder.prepare(body, false, None, reply.as_ref()));
        let record = Record::Close(Box::new(CloseRecord {
            step: close.step,
            attempt: close.attempt,
            cause: close.cause,
            origin: close.origin,
            status: close.status,
            headers: encoder.redactor.headers(close.headers),
            proxy_error: close.proxy_error.map(|error| ProxyErrorText {
                code: error.code.clone(),
                message: encoder.redactor.text(&error.message).into_owned(),
            }),
            usage: close.usage,
            finish_reason: close.finish_reason.map(|reason| encoder.redactor.text(reason)),
            first_byte_us: close.first_byte_us,
            last_byte_us: close.last_byte_us,
            streamed,
            truncated: close.truncated,
            uninspected: match close.reply {
                Captured::Uninspected(bytes) => Some(bytes),
                _ => None,
            },
            request: request.as_ref().map(Prepared::record),
            reply: reply.as_ref().map(Prepared::record),
            delivered: delivered.as_ref().map(Prepared::record),
            reply_with_logprobs: fuller.as_ref().map(Prepared::record),
        }));
        let bodies =
            [(request.as_ref(), true), (reply.as_ref(), false), (delivered.as_ref(), false), (fuller.as_ref(), false)];
        let below = self.queue(&record, &bodies)?;
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.closed((close.step, close.attempt), close.last_byte_us);
        Ok(Queued { below, is_alone: counts.exchanges <= counts.closed })
    }

    /// Writes a queued record, and all that wait with it, unless somebody has.
    ///
    /// # Errors
    /// As [`Recorder::open`].
    pub fn write_queued(&self, queued: Queued) -> Result<(), RecordingError> {
        self.log.write(queued.below)
    }

    /// Whether anything is recorded: right after [`Recorder::create`], whether an earlier recording goes on.
    pub fn has_records(&self) -> bool {
        self.log.records() > 0
    }

    /// Whether an earlier write failed: nothing more is recorded, so nothing more may be served.
    pub fn is_stopped(&self) -> bool {
        self.log.is_stopped()
    }

    /// Sets what the run achieved and writes it to `run.json`.
    ///
    /// # Errors
    /// [`RecordingError::Io`] when the file cannot be written.
    pub fn set_outcome(&self, outcome: Outcome) -> Result<(), RecordingError> {
        let mut manifest = self.manifest.lock().unwrap_or_else(PoisonError::into_inner);
        manifest.outcome = self.redacted(outcome);
        write_json(&self.disk, &self.dir.join("run.json"), &*manifest)
    }

    /// When the run began, and what it has achieved, as far as that is known.
    pub fn began_and_outcome(&self) -> (SystemTime, Outcome) {
        let manifest = self.manifest.lock().unwrap_or_else(PoisonError::into_inner);
        let began = manifest.started.parse::<Timestamp>().map_or_else(|_| SystemTime::now(), SystemTime::from);
        (began, manifest.outcome.clone())
    }

    /// Keeps how the run's program ended and what it achieved. [`Recorder::seal`] writes both.
    pub fn conclude(&self, end: ProgramEnd, outcome: Outcome) {
        let outcome = self.redacted(outcome);
        let mut manifest = self.manifest.lock().unwrap_or_else(PoisonError::into_inner);
        (manifest.program, manifest.outcome) = (Some(end), outcome);
    }

    fn redacted(&self, mut outcome: Outcome) -> Outcome {
        outcome.evidence = self.encoder.redactor.text(&outcome.evidence).into_owned();
        outcome
    }

    /// Ends the run: a last record, `seal.json` with the hash of the log, the log compressed. Nothing can be added
    /// afterwards.
    ///
    /// # Errors
    /// [`RecordingError::Stopped`] when the recording failed before (such a run is never sealed);
    /// [`RecordingError::Io`].
    pub fn seal(&self) -> Result<Seal, RecordingError> {
        let at = self.settings.clock.wall().to_string();
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let open = counts.exchanges.saturating_sub(counts.closed);
        let stop = Record::Stop(StopRecord { at: at.clone(), exchanges: counts.exchanges, open });
        let records = self.log.finish(|line| write::record(&stop, line), "the run is sealed")?;
        let mut manifest = self.manifest.lock().unwrap_or_else(PoisonError::into_inner);
        manifest.ended = Some(at);
        manifest.agents.clone_from(&counts.agents);
        // The rest stands in the seal too: a file that takes another's place costs a run of one request a fifth of its time.
        if manifest.program.is_some() {
            write_json(&self.disk, &self.dir.join("run.json"), &*manifest)?;
        }
        let seal = Seal {
            format: 1,
            records,
            steps: counts.agents.values().sum(),
            exchanges: counts.exchanges,
            open,
            agents: counts.agents.clone(),
            ended: manifest.ended.clone(),
            calls_us: counts.calls_us(),
            log_bytes: 0,
            log_blake3: String::new(),
        };
        seal::seal(&self.disk, &self.dir, &self.log.stop_rolling(), seal)
    }

    fn try_note(&self, text: &str) -> Result<(), RecordingError> {
        let at = STAMP.timestamp_to_string(&self.settings.clock.wall());
        let text = self.encoder.redactor.text(text);
        self.write(&Record::Note(NoteRecord { at: at.into(), text }), &[])
    }

    pub(super) fn write(
        &self,
        record: &Record<'_>,
        bodies: &[(Option<&Prepared>, bool)],
    ) -> Result<(), RecordingError> {
        self.log.write(self.queue(record, bodies)?)
    }

    /// Queues a record with the bodies in it; `true` keeps a body for others to grow from.
    pub(super) fn queue(
        &self,
        record: &Record<'_>,
        bodies: &[(Option<&Prepared>, bool)],
    ) -> Result<u64, RecordingError> {
        let bodies = || bodies.iter().filter_map(|(body, keep)| Some(((*body)?, *keep)));
        for (hash, bytes) in bodies().flat_map(|(body, _)| body.blobs()) {
            self.write_blob(hash, bytes)?;
        }
        let texts = bodies().flat_map(|(body, _)| body.texts());
        let below = self.log.queue(texts, |line| write::record(record, line))?;
        bodies().for_each(|(body, keep)| self.encoder.written(body, keep));
        Ok(below)
    }

    /// Writes a blob before the record that names it. A failure ends the recording, as that of a record does.
    fn write_blob(&self, hash: ContentHash, bytes: &[u8]) -> Result<(), RecordingError> {
        let blobs = self.dir.join("blobs");
        let path = blobs.join(hash.to_string());
        if path.exists() {
            return Ok(());
        }
        let written = self.disk.make_dir(&blobs).and_then(|_| self.disk.replace(&path, |file| file.write_all(bytes)));
        written.inspect_err(|error| self.log.fail(error))
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.log.release();
    }
}
