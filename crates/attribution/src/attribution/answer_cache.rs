//! What judges were asked and said before, as a directory of recorded runs: the same question is answered from it, byte for
//! byte, and nobody is paid twice.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
};

use bytes::Bytes;

use crate::recording::{self, RecordingError, Redactor};

/// Answers by question. A question is its whole body: prompt, model, parameters and, in the seed, the number of the vote.
#[derive(Debug, Default)]
pub struct AnswerCache {
    answers: HashMap<blake3::Hash, Bytes>,
    redactor: Redactor,
}

impl AnswerCache {
    /// Reads every run of a directory; one that is not there holds nothing yet. Of equal questions the first run's answer holds,
    /// by the names of the runs.
    ///
    /// # Errors
    /// A run that cannot be read: half a cassette would be asked live, and paid, unseen.
    pub fn read(dir: &Path, redactor: Redactor) -> Result<Self, RecordingError> {
        let mut kept = Self { answers: HashMap::new(), redactor };
        let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
        let mut runs: Vec<PathBuf> =
            entries.map(|entry| entry.path()).filter(|run| run.join("run.json").is_file()).collect();
        runs.sort();
        for run in runs {
            for step in recording::read(&run)?.trajectory.steps {
                let answered =
                    step.attempts.iter().find(|attempt| attempt.status == Some(200) && !attempt.reply.is_empty());
                if let Some(attempt) = answered {
                    let key = kept.key(&step.request);
                    kept.answers.entry(key).or_insert_with(|| attempt.reply.clone());
                }
            }
        }
        Ok(kept)
    }

    /// With this masking, and nothing kept.
    pub fn none(redactor: Redactor) -> Self {
        Self { answers: HashMap::new(), redactor }
    }

    /// The answer to a question.
    pub fn get(&self, question: &[u8]) -> Option<Bytes> {
        self.answers.get(&self.key(question)).cloned()
    }

    /// An answer as a record of it would hold it, so that what is made of it is the same the second time.
    pub fn masked(&self, answer: &Bytes) -> Bytes {
        let mut text = answer.to_vec();
        if self.redactor.mask(&mut text) { Bytes::from(text) } else { answer.clone() }
    }

    /// The hash of a question as it was recorded.
    fn key(&self, question: &[u8]) -> blake3::Hash {
        let mut text = question.to_vec();
        self.redactor.mask(&mut text);
        blake3::hash(&text)
    }
}
