//! `--tracer FILE|NAME`: a model that was trained to say who erred, asked in the words it was trained on.

use std::{
    ops::Deref,
    path::{Path, PathBuf},
    sync::Arc,
};

use clap::Args;
use serde::Deserialize;

use super::{Exit, Failure};
use crate::{
    attribution::methods::{Method, Tracer, TracerAsking},
    dataset::formats::TracerPrompt,
    surface::ParameterSetting,
    trajectory::nearest,
};

/// A tracer among the methods of a verb.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct TracerArgs {
    /// Tracer: asked as `whowhen` or `aegis` published or as rows of `sft`, `grpo`, `verl` ask; or a FILE: an export, its
    /// manifest, a template, or TOML with `prompt`, `upstream`, `model`, `key_env`.
    #[arg(long, value_name = "FILE|NAME")]
    pub(super) tracer: Vec<String>,
}

/// A method that is asked: one of the list, or a tracer.
#[derive(Debug, Clone)]
pub(super) enum ChosenMethod {
    /// One of [`crate::attribution::methods::ALL`].
    Listed(&'static dyn Method),
    /// One that the user named.
    Traced(Arc<Tracer>),
}

impl ChosenMethod {
    /// The option that names it.
    pub(super) fn option(&self) -> String {
        let option = if matches!(self, Self::Listed(_)) { "method" } else { "tracer" };
        format!("--{option} {}", self.name())
    }
}

impl Deref for ChosenMethod {
    type Target = dyn Method;

    fn deref(&self) -> &Self::Target {
        match self {
            Self::Listed(method) => *method,
            Self::Traced(tracer) => &**tracer,
        }
    }
}

/// A tracer, and where it is.
#[derive(Debug, Clone)]
pub(super) struct NamedTracer {
    pub(super) tracer: Arc<Tracer>,
    /// Whether it expects the right answer in its question.
    pub(super) tells_answer: bool,
    pub(super) place: TracerPlace,
}

/// Where a tracer is, as far as its file says.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct TracerPlace {
    pub(super) upstream: Option<String>,
    pub(super) model: Option<String>,
    pub(super) key_env: Option<String>,
    pub(super) parameters: Vec<ParameterSetting>,
}

/// A tracer as a file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TracerFile {
    /// A name that ships, or a file, seen from this one.
    prompt: String,
    upstream: Option<String>,
    model: Option<String>,
    key_env: Option<String>,
    /// `NAME=VALUE`, as `--parameter` takes them.
    #[serde(default)]
    parameters: Vec<String>,
}

impl TracerArgs {
    /// The tracers.
    ///
    /// # Errors
    /// A name that does not ship and is no file; a file that says nothing about a tracer; two places.
    pub(super) fn named(&self) -> Result<Vec<NamedTracer>, Failure> {
        let tracers: Vec<NamedTracer> = self.tracer.iter().map(|name| named(name)).collect::<Result<_, _>>()?;
        let mut places = tracers.iter().map(|tracer| &tracer.place);
        if let Some(first) = places.next()
            && places.any(|place| place != first)
        {
            let error = "the tracers are at different places, and one call asks at one";
            return Err(
                Failure::new(Exit::Usage, error).hint("ask each in a call of its own; `aegis score` compares the rows")
            );
        }
        Ok(tracers)
    }
}

fn named(name: &str) -> Result<NamedTracer, Failure> {
    let bare = |shown: String, asking: TracerAsking| NamedTracer {
        tells_answer: asking.tells_answer(),
        tracer: Arc::new(Tracer::new(shown, asking)),
        place: TracerPlace::default(),
    };
    if let Some(asking) = TracerAsking::named(name) {
        return Ok(bare(name.to_owned(), asking));
    }
    let path = Path::new(name);
    if !path.exists() {
        let near =
            nearest(name, TracerAsking::names()).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        let known = TracerAsking::names().collect::<Vec<_>>().join(", ");
        return Err(Failure::new(Exit::Usage, format!("`{name}` is no tracer and no file{near}"))
            .hint(format!("--tracer takes {known}, or a file")));
    }
    let shown = shown(path);
    if path.extension().is_none_or(|end| end != "toml") {
        return prompt(path).map(|asking| bare(shown, asking));
    }
    let refused = |error: &dyn std::fmt::Display| Failure::new(Exit::Usage, format!("`{name}`: {error}"));
    let text = std::fs::read_to_string(path).map_err(|error| refused(&error))?;
    let file: TracerFile = toml::from_str(&text).map_err(|error| refused(&error))?;
    let beside: PathBuf = path.parent().unwrap_or(Path::new("")).join(&file.prompt);
    let asking = TracerAsking::named(&file.prompt).map_or_else(|| prompt(&beside), Ok)?;
    let parameters = file.parameters.iter().map(|setting| setting.parse()).collect::<Result<_, _>>();
    let TracerFile { upstream, model, key_env, .. } = file;
    let place = TracerPlace { upstream, model, key_env, parameters: parameters.map_err(|error| refused(&error))? };
    Ok(NamedTracer { place, ..bare(shown, asking) })
}

fn prompt(path: &Path) -> Result<TracerAsking, Failure> {
    TracerPrompt::read(path).map(TracerAsking::Rows).map_err(|error| {
        Failure::new(Exit::Usage, error)
            .hint("expected what `aegis export --to sft|grpo|verl` wrote, or a template with `{conversation}`")
    })
}

/// What rows call a tracer that a file names: the file without its endings.
fn shown(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.split('.').next().filter(|stem| !stem.is_empty()).unwrap_or(&name).to_owned()
}
