//! Why a verb could not do its work, and what to type next.

use std::{error::Error, fmt};

use super::{Exit, escape};
use crate::recording::RecordingError;

/// Why a verb could not do its work.
#[derive(Debug)]
pub struct Failure {
    /// How the process ends.
    pub exit: Exit,
    /// What went wrong.
    pub error: Box<dyn Error + Send + Sync>,
    /// What to type next.
    pub hint: Option<String>,
}

impl Failure {
    /// A failure with a message.
    pub fn new(exit: Exit, error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { exit, error: error.into(), hint: None }
    }

    /// Whether a reader of our output went away, which is no failure.
    pub(super) fn is_broken_pipe(&self) -> bool {
        let io = self.error.downcast_ref::<std::io::Error>();
        io.is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
    }

    /// Says what to type next.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl From<RecordingError> for Failure {
    fn from(error: RecordingError) -> Self {
        let exit = if error.exit_code() == Exit::Usage.code() { Exit::Usage } else { Exit::Recording };
        Self::new(exit, error)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "error: {}", escape(&self.error.to_string()))?;
        let mut source = self.error.source();
        while let Some(error) = source {
            write!(formatter, "\n  caused by: {}", escape(&error.to_string()))?;
            source = error.source();
        }
        match &self.hint {
            Some(hint) => write!(formatter, "\nhint: {}", escape(hint)),
            None => Ok(()),
        }
    }
}
