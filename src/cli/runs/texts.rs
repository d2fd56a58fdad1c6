//! `aegis runs DIR --text WORDS`: the steps of all runs that hold some words.

use std::{
    collections::HashSet,
    io::{self, Write},
    sync::Arc,
    time::Duration,
};

use crate::{
    cli::{
        Exit, Failure, Finished, Global, OutputFormat, escape,
        printed::{ListedRuns, printed},
        terminal,
    },
    viewer::{FoundTexts, RunRow, SearchLimit},
};

/// The runs that are shown, at most; the newest.
const MOST: usize = 1000;

pub(super) fn run(runs: &[Arc<RunRow>], words: &str, global: &Global) -> Result<Finished, Failure> {
    let limit = SearchLimit { runs: MOST, time: Duration::MAX };
    let texts = FoundTexts::search(&runs.iter().collect::<Vec<_>>(), words, limit, false);
    let keys: HashSet<&str> = texts.found.iter().map(|run| run.key.as_str()).collect();
    let rows: Vec<Arc<RunRow>> = runs.iter().filter(|row| keys.contains(row.key.as_str())).map(Arc::clone).collect();
    let steps: usize = texts.found.iter().map(|run| run.steps.len()).sum();
    let rest =
        if texts.searched < texts.of { "; the newest that hold them: name a smaller DIR for others" } else { "" };
    let summary = format!(
        "{steps} steps in {} runs hold the words; {} of {} runs searched, {} not readable{rest}",
        rows.len(),
        texts.searched,
        texts.of,
        texts.unreadable
    );
    if global.format == OutputFormat::Text {
        let mut out = io::BufWriter::new(terminal::stdout());
        for (row, run) in rows.iter().zip(&texts.found) {
            for step in &run.steps {
                let line = format!("{}  step {}  {}  {}", row.dir.display(), step.step, step.side, step.text);
                let written = writeln!(out, "{}", escape(&line).replace(['\n', '\t'], " "));
                written.map_err(|error| Failure::new(Exit::Infrastructure, error))?;
            }
        }
        out.flush().map_err(|error| Failure::new(Exit::Infrastructure, error))?;
    }
    let data = printed(&ListedRuns { runs: &rows, texts: Some(texts) });
    Ok(Finished { exit: Exit::Ok, summary, data })
}
