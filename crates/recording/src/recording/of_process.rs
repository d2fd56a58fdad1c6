//! One redactor a process: what a client proved itself with is masked in all that leaves.

use std::sync::{Arc, PoisonError, RwLock};

use super::redact::{Redactor, RedactorParts};

/// The redactor of this process.
static OF_PROCESS: RwLock<Option<Redactor>> = RwLock::new(None);

impl Redactor {
    /// The one that everything passes which leaves this process and is no recording: rows, reports, pages, spans, log lines,
    /// messages. It masks what looks like a key until [`Redactor::for_process`] says what else there is.
    pub fn of_process() -> Self {
        let known = OF_PROCESS.read().unwrap_or_else(PoisonError::into_inner).clone();
        known.unwrap_or_else(|| {
            let made = Self::default();
            OF_PROCESS.write().unwrap_or_else(PoisonError::into_inner).get_or_insert(made).clone()
        })
    }

    /// Makes it the redactor of this process: what the recorder hears is masked in all else, too. One that is made again
    /// goes on with what the first has heard.
    #[must_use]
    pub fn for_process(self) -> Self {
        let mut known = OF_PROCESS.write().unwrap_or_else(PoisonError::into_inner);
        let heard = known.as_ref().and_then(|known| known.0.client_credentials.clone());
        let made = match (Arc::try_unwrap(self.0), heard) {
            (Ok(parts), Some(heard)) if parts.client_credentials.is_some() => {
                Self(Arc::new(RedactorParts { client_credentials: Some(heard), ..parts }))
            }
            (Ok(parts), _) => Self(Arc::new(parts)),
            (Err(shared), _) => Self(shared),
        };
        *known = Some(made.clone());
        made
    }
}
