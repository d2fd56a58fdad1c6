//! What an earlier start of the same trace left.

use std::path::Path;

use super::prepared::PreparedSearch;
use crate::{
    attribution::TraceJournal,
    cli::{Exit, Failure, trial::JudgedProgram},
    execution::Judge,
};

/// Opens the journal in a run's directory.
///
/// # Errors
/// It cannot be read or written.
pub(super) fn open(search: &PreparedSearch, executed: &JudgedProgram, dir: &Path) -> Result<TraceJournal, Failure> {
    let redactor = search.proxy.runs.template().recording.redactor.clone();
    TraceJournal::open(dir, &subject(search, executed), search.settings.salt.clone(), redactor).map_err(|error| {
        Failure::new(Exit::Recording, format!("cannot open the journal of the trace in `{}`: {error}", dir.display()))
    })
}

/// All that an execution depends on: where any of it is another, those of an earlier start are others, too.
pub(super) fn subject(search: &PreparedSearch, JudgedProgram { program, judge }: &JudgedProgram) -> String {
    let PreparedSearch { given, settings, analyzer, proxy, sentences, .. } = search;
    let corrections: Vec<_> =
        given.by_step.iter().map(|(step, correction)| (step, &correction.at, correction.source)).collect();
    let judge = match judge {
        Judge::End => String::new(),
        Judge::Command(command) => command.clone(),
        Judge::Checkers(check, _) => format!("{check:?}"),
    };
    let analyzer = analyzer
        .as_ref()
        .map(|one| (one.upstream.name(), &one.model, &one.gold, &one.feedback, format!("{:?}", one.parameters)));
    let subject = format!(
        "{:?}",
        (
            (&program.command, &program.directory, &program.environment, judge),
            (corrections, analyzer, settings.coupled, &proxy.runs.template().equality),
            proxy.upstream.name(),
        )
    );
    match sentences.digest() {
        Some(sentences) => format!("{subject} {sentences}"),
        None => subject,
    }
}
