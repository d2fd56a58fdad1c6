//! What a plan did to a step, as records of its run.

use std::sync::PoisonError;

use bytes::Bytes;

use super::{
    Inject, ManipulatorCall, ManipulatorFailed, RecordingError,
    encode::Prepared,
    log::Queued,
    record::{InjectRecord, ManipulatorRecord, QuestionRecord, Record},
    recorder::Recorder,
    share,
};

impl Recorder {
    /// Records what an injection did. To be called before the first altered byte leaves.
    ///
    /// # Errors
    /// As [`Recorder::open`].
    pub fn inject(&self, inject: Inject<'_>) -> Result<(), RecordingError> {
        let queued = self.queue_inject(inject)?;
        self.write_queued(queued)
    }

    /// As [`Recorder::inject`], but the record waits for [`Recorder::write_queued`].
    ///
    /// # Errors
    /// As [`Recorder::open`].
    pub fn queue_inject(&self, inject: Inject<'_>) -> Result<Queued, RecordingError> {
        let body = inject.after.map(|body| self.encoder.prepare(body, true, None, None));
        let (before, after) = digests(inject.before, inject.after);
        let record = Record::Inject(InjectRecord {
            step: inject.step,
            attempt: inject.attempt,
            injection: inject.injection,
            side: inject.side,
            operator: inject.operator.into(),
            failure_mode: inject.failure_mode,
            speaker: inject.speaker.cloned(),
            seed: inject.seed,
            draw: inject.draw,
            planned: inject.planned,
            matched: inject.matched,
            applied: inject.applied,
            before,
            after,
            body: body.as_ref().map(Prepared::record),
        });
        let below = self.queue(&record, &[(body.as_ref(), true)])?;
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(Queued { below, is_alone: counts.exchanges <= counts.closed + 1 })
    }

    /// Records that a manipulator failed and its step passed untouched.
    ///
    /// # Errors
    /// As [`Recorder::open`].
    pub fn manipulator_failed(&self, failed: ManipulatorFailed<'_>) -> Result<(), RecordingError> {
        let ManipulatorFailed { step, attempt, injection, operator, why, nothing } = failed;
        let (operator, why) = (operator.into(), Some(self.encoder.redactor.text(why)));
        let record = ManipulatorRecord { step, attempt, injection, operator, why, nothing, question: None };
        self.write(&Record::Manipulator(record), &[])
    }

    /// Records what a manipulator asked its model and what that said. To be called before the answer is used.
    ///
    /// # Errors
    /// As [`Recorder::open`].
    pub fn record_manipulator_call(&self, asked: ManipulatorCall<'_>) -> Result<(), RecordingError> {
        let redactor = &self.encoder.redactor;
        let question = self.encoder.prepare(asked.question, true, None, None);
        let answer = asked.answer.map(|body| self.encoder.prepare(body, false, None, None));
        let record = Record::Manipulator(ManipulatorRecord {
            step: asked.step,
            attempt: asked.attempt,
            injection: asked.injection,
            operator: asked.operator.into(),
            why: None,
            nothing: false,
            question: Some(Box::new(QuestionRecord {
                upstream: asked.upstream.into(),
                model: asked.model.into(),
                template: asked.template.into(),
                question: question.record(),
                answer: answer.as_ref().map(Prepared::record),
                error: asked.error.map(|error| redactor.text(error)),
                changed: asked.changed.map(Into::into),
                usage: asked.usage,
                cost: asked.cost,
                took_us: asked.took_us,
            })),
        });
        self.write(&record, &[(Some(&question), false), (answer.as_ref(), false)])
    }
}

/// The hashes of a body before and after an edit. What both begin with, nearly always most of them, is read once.
fn digests(before: Option<&Bytes>, after: Option<&Bytes>) -> (Option<String>, Option<String>) {
    let (Some(before), Some(after)) = (before, after) else { return (before.map(digest), after.map(digest)) };
    let (shared, rest) = before.split_at(share::prefix(before, after));
    let mut hasher = blake3::Hasher::new();
    hasher.update(shared);
    let behind = |rest: &[u8]| hasher.clone().update(rest).finalize().to_hex().to_string();
    (Some(behind(rest)), Some(behind(after.get(shared.len()..).unwrap_or_default())))
}

fn digest(body: &Bytes) -> String {
    blake3::hash(body).to_hex().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn digests_are_those_of_each_body(common in 0usize..5000, before in "[ab]{0,9}", after in "[ab]{0,9}") {
            let common = "x".repeat(common);
            let (before, after) = (Bytes::from(format!("{common}{before}")), Bytes::from(format!("{common}{after}")));
            let each = (Some(digest(&before)), Some(digest(&after)));
            proptest::prop_assert_eq!(digests(Some(&before), Some(&after)), each);
            proptest::prop_assert_eq!(digests(Some(&before), None), (Some(digest(&before)), None));
        }
    }
}
