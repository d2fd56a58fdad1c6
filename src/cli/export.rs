//! `aegis export DATASET --to FORMAT --out PATH`: a dataset in the words of trainers and benchmarks.

use crate::cli::printed::{ListedFormat, ListedFormats, printed};
use std::{
    io::Write,
    path::{Path, PathBuf},
};

use clap::{Args, ValueEnum};

use super::{Exit, Failure, Finished, Global, OutputFormat, corpus::CorpusArgs};
use crate::{
    dataset::{
        ALPHA, Split,
        formats::{
            self, AnswerForm, BudgetUnit, CleanRows, DefinitionChoice, ExportError, ExportManifest, ExportOptions,
            Inputs, Lint, PromptBudget, PromptTemplate,
        },
        lint::Rule,
        task_sets,
    },
    trajectory::nearest,
};

/// Most files that are named when an export ends; a format with a file a run writes many.
const FILES_SHOWN: usize = 20;

/// Options of `export`.
#[derive(Debug, Args)]
pub(super) struct ExportArgs {
    /// Data set: a directory with `dataset.jsonl`, a JSONL file, or a directory of runs; for `har`, `otlp`, `inspect`
    /// and `atif` also one run.
    #[arg(value_name = "DATASET", required_unless_present_any = ["list", "schema"])]
    dataset: Option<PathBuf>,
    #[command(flatten)]
    corpus: CorpusArgs,
    /// Format. Formats of rows become Parquet in a file named `….parquet`.
    #[arg(long, value_name = "FORMAT", required_unless_present_any = ["list", "schema"])]
    to: Option<String>,
    /// File or directory to write, with its manifest. Training formats write one file per split: `NAME-train.jsonl`,
    /// `NAME-validation.jsonl`, `NAME-test.jsonl`.
    #[arg(long, value_name = "PATH", required_unless_present_any = ["list", "schema"])]
    out: Option<PathBuf>,
    /// Only this split, in one file of the given name.
    #[arg(long, value_enum)]
    split: Option<DatasetPart>,
    /// Write all splits into one file; rows name their split.
    #[arg(long, conflicts_with = "split")]
    one_file: bool,
    /// Clean runs in training formats: per split as many as failures (twins first), only twins, all, or none.
    #[arg(long, value_enum, value_name = "WHICH", default_value_t = CleanRuns::Balanced)]
    clean: CleanRuns,
    /// Maximum expected share of wrong failures; the weakest are left out.
    #[arg(long, value_name = "A", default_value_t = ALPHA, value_parser = alpha)]
    alpha: f64,
    /// Include labels verified under an earlier rule.
    #[arg(long)]
    former: bool,
    /// Include labels of delivered, unproven errors.
    #[arg(long)]
    unverified: bool,
    /// Include planted errors that reveal themselves by words, formatting or context.
    #[arg(long)]
    obvious: bool,
    /// Include failures whose culprit is a tool or a peer; they stand where others name an agent.
    #[arg(long)]
    tools: bool,
    /// Include failure modes that only the plan supports (`declared`, `refuted`).
    #[arg(long)]
    declared_modes: bool,
    /// Kind of claim (`definition` of the label): planted (`injected`), traced (`earliest_flip`, `commitment`,
    /// `coupled`, `flip`), annotated (`human`) or `all`; repeatable. Default: the labels must be of one kind.
    #[arg(long, value_name = "KIND", value_parser = KINDS)]
    kind: Vec<String>,
    /// Attribution prompt: `aegis` (its published one), or a file with `{question}`, `{conversation}`, `{gold_answer}`,
    /// `{modes}`, `{agents}`, `{answer_form}`.
    #[arg(long, value_name = "FILE|aegis")]
    template: Option<PathBuf>,
    /// Include the right answer in the prompt.
    #[arg(long)]
    gold_answer: bool,
    /// Inputs that steps show. Default: `new` in prompts and `prm`, else `none`.
    #[arg(long, value_enum, value_name = "WHICH")]
    inputs: Option<GivenExport>,
    /// Maximum prompt length in tokens (estimated) or characters (`32000chars`). Inputs are cut first; labelled steps
    /// stay, shortened like others.
    #[arg(long = "max-prompt", alias = "budget", value_name = "N", value_parser = budget)]
    budget: Option<PromptBudget>,
    /// Export despite findings of this lint rule; repeatable.
    #[arg(long, value_name = "RULE")]
    allow: Vec<String>,
    /// `sft`: answer by a tool call; rows then have `tools`.
    #[arg(long)]
    answer_by_call: bool,
    /// `huggingface`: format to include; repeatable.
    #[arg(long, value_name = "FORMAT")]
    config: Vec<String>,
    /// `huggingface`: write JSON lines instead of Parquet.
    #[arg(long)]
    lines: bool,
    /// `huggingface`: licence for the card, by the hub's short name.
    #[arg(long, value_name = "NAME")]
    license: Option<String>,
    /// List the formats.
    #[arg(long)]
    list: bool,
    /// Print the JSON schema of a format, or of data sets (`dataset`).
    #[arg(long, value_name = "FORMAT", conflicts_with = "list")]
    schema: Option<String>,
}

/// A part of a dataset.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum DatasetPart {
    /// For training.
    Train,
    /// For selection.
    Validation,
    /// For measurement.
    Test,
}

/// The kinds of claims that can be asked for.
const KINDS: [&str; 7] = ["injected", "earliest_flip", "commitment", "coupled", "flip", "human", ALL_KINDS];
/// All kinds, side by side.
const ALL_KINDS: &str = "all";

/// Which clean runs.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum CleanRuns {
    /// Per split as many as there are failures.
    Balanced,
    /// Clean twins of the failures.
    Twins,
    /// All.
    All,
    /// None.
    None,
}

/// What steps show of their inputs.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum GivenExport {
    /// No inputs.
    None,
    /// Inputs that are new since the agent's last call.
    New,
    /// All inputs.
    All,
}

pub(super) fn run(arguments: &ExportArgs, global: &Global, out: &mut dyn Write) -> Result<Finished, Failure> {
    let json = global.format == OutputFormat::Json;
    if let Some(name) = &arguments.schema {
        return schema(name, json, out);
    }
    let (Some(dataset), Some(to), Some(target)) = (&arguments.dataset, &arguments.to, &arguments.out) else {
        return list(json, out);
    };
    let format = formats::format(to).map_err(failure)?;
    let options = options(arguments)?;
    let mut earlier = target.clone().into_os_string();
    earlier.push(".manifest.json");
    let replaces = PathBuf::from(earlier).is_file();
    let is_run = formats::is_recording(dataset);
    let rows =
        if is_run && format.takes_recordings() { None } else { Some(arguments.corpus.open(dataset, global.quiet)?) };
    let manifest =
        match rows.filter(|rows| !is_run || rows.harvest().is_some_and(|harvest| !harvest.recordings.is_empty())) {
            Some(rows) => formats::export(&rows, format, target, &options),
            None => formats::export_recording(dataset, format, target, &options),
        };
    let manifest = manifest.map_err(failure)?;
    if replaces && !json {
        let said = writeln!(out, "replaced: the earlier export at {}", super::escape(&target.display().to_string()));
        said.map_err(|error| Failure::new(Exit::Infrastructure, error))?;
    }
    let summary = summary(&manifest);
    if !json {
        say(&manifest, out)
            .and_then(|()| say_files(&manifest, target, out))
            .map_err(|error| Failure::new(Exit::Infrastructure, error))?;
    }
    let exit = if manifest.written > 0 { Exit::Ok } else { Exit::Finding };
    let data = serde_json::to_value(&manifest).map_err(|error| Failure::new(Exit::Infrastructure, error))?;
    Ok(Finished { exit, summary, data })
}

/// A share, above 0 and below 1.
fn alpha(text: &str) -> Result<f64, String> {
    let share = text.parse::<f64>().ok().filter(|share| *share > 0.0 && *share < 1.0);
    share.ok_or_else(|| "expected a number above 0 and below 1, for example 0.05".to_owned())
}

/// A length, in tokens or characters.
fn budget(text: &str) -> Result<PromptBudget, String> {
    let (number, unit) = match text.strip_suffix("chars") {
        Some(number) => (number, BudgetUnit::Characters),
        None => (text.strip_suffix("tokens").unwrap_or(text), BudgetUnit::Tokens),
    };
    let least = if unit == BudgetUnit::Tokens { 256 } else { 1024 };
    let most = number.trim().parse::<usize>().ok().filter(|most| *most >= least);
    let most = most.ok_or("expected at least 256 tokens (`8000`) or 1024 characters (`32000chars`)")?;
    Ok(PromptBudget { most, unit })
}

/// Every file that was written: formats with parts write none of the name that was asked for.
fn say_files(manifest: &ExportManifest, target: &Path, out: &mut dyn Write) -> std::io::Result<()> {
    let dir = if target.is_dir() { target } else { target.parent().unwrap_or(Path::new("")) };
    for (name, file) in manifest.files.iter().take(FILES_SHOWN) {
        writeln!(out, "wrote: {}  {} bytes", super::escape(&dir.join(name).display().to_string()), file.bytes)?;
    }
    let more = manifest.files.len().saturating_sub(FILES_SHOWN);
    if more > 0 {
        writeln!(out, "wrote: {more} more files there, which the manifest names")?;
    }
    writeln!(out, "wrote: {}.manifest.json", super::escape(&target.display().to_string()))
}

/// How sure the failures are, and what was left out.
fn say(manifest: &ExportManifest, out: &mut dyn Write) -> std::io::Result<()> {
    writeln!(out, "sure: {}", manifest.claims.in_words())?;
    for (why, count) in &manifest.left_out {
        writeln!(out, "left out: {count} × {why}")?;
    }
    for (manipulator, what) in &manifest.gives_itself_away {
        writeln!(out, "gives itself away: {manipulator}: {}", super::escape(what))?;
    }
    let private = task_sets::ALL
        .iter()
        .filter_map(|set| Some((set.name(), manifest.keep_private.get(set.name())?, set.terms().keep_private?)));
    for (set, count, asked) in private {
        writeln!(out, "note: {count} samples are of {set}. {asked}")?;
    }
    for (format, reasons) in &manifest.left_out_of {
        for (why, count) in reasons {
            writeln!(out, "left out of {format}: {count} × {why}")?;
        }
    }
    Ok(())
}

fn options(arguments: &ExportArgs) -> Result<ExportOptions, Failure> {
    let template = match &arguments.template {
        None => PromptTemplate::default(),
        Some(path) if let Some(shipped) = path.to_str().and_then(PromptTemplate::named) => shipped,
        Some(path) => {
            let named = |error: String| Failure::new(Exit::Usage, format!("{}: {error}", path.display()));
            let text = std::fs::read_to_string(path).map_err(|error| named(format!("cannot be read: {error}")))?;
            PromptTemplate::parse(&text).map_err(|error| named(error.to_string()))?
        }
    };
    let known = |name: &String| {
        Rule::ALL.iter().copied().find(|rule| rule.name() == name).ok_or_else(|| {
            let near = nearest(name, Rule::ALL.iter().map(|rule| rule.name()));
            let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
            Failure::new(Exit::Usage, format!("unknown rule `{name}`: `aegis lint --list` lists them{near}"))
        })
    };
    Ok(ExportOptions {
        lint: Lint::RefuseBut(arguments.allow.iter().map(known).collect::<Result<_, _>>()?),
        template,
        gold_answer: arguments.gold_answer,
        answer: if arguments.answer_by_call { AnswerForm::Call } else { AnswerForm::Text },
        configs: arguments
            .config
            .iter()
            .map(|name| formats::config(name).map_err(failure))
            .collect::<Result<_, _>>()?,
        lines: arguments.lines,
        license: arguments.license.clone(),
        inputs: arguments.inputs.map(|given| match given {
            GivenExport::None => Inputs::None,
            GivenExport::New => Inputs::New,
            GivenExport::All => Inputs::All,
        }),
        budget: arguments.budget,
        clean: match arguments.clean {
            CleanRuns::Balanced => CleanRows::Balanced,
            CleanRuns::Twins => CleanRows::Twins,
            CleanRuns::All => CleanRows::All,
            CleanRuns::None => CleanRows::None,
        },
        one_file: arguments.one_file,
        split: arguments.split.map(|part| match part {
            DatasetPart::Train => Split::Train,
            DatasetPart::Validation => Split::Validation,
            DatasetPart::Test => Split::Test,
        }),
        alpha: Some(arguments.alpha),
        former: arguments.former,
        unverified: arguments.unverified,
        obvious: arguments.obvious,
        servers: arguments.tools,
        declared_modes: arguments.declared_modes,
        definitions: match arguments.kind.as_slice() {
            [] => DefinitionChoice::One,
            kinds if kinds.iter().any(|kind| kind == ALL_KINDS) => DefinitionChoice::All,
            kinds => DefinitionChoice::Of(kinds.to_vec()),
        },
        recording: false,
    })
}

fn schema(name: &str, json: bool, out: &mut dyn Write) -> Result<Finished, Failure> {
    let schema = formats::json_schema(name).map_err(failure)?;
    if !json {
        out.write_all(&schema).map_err(|error| Failure::new(Exit::Infrastructure, error))?;
    }
    let data = serde_json::from_slice(&schema).map_err(|error| Failure::new(Exit::Infrastructure, error))?;
    Ok(Finished { exit: Exit::Ok, summary: format!("schema of {name}"), data })
}

fn list(json: bool, out: &mut dyn Write) -> Result<Finished, Failure> {
    let formats = formats::ALL.iter().map(|format| (format.name(), format.description()));
    if !json {
        for (name, about) in formats.clone() {
            writeln!(out, "{name:<22} {about}").map_err(|error| Failure::new(Exit::Infrastructure, error))?;
        }
    }
    let data = formats.map(|(name, about)| ListedFormat { name, about }).collect::<Vec<_>>();
    let summary = format!("{} formats", data.len());
    Ok(Finished { exit: Exit::Ok, summary, data: printed(&ListedFormats { formats: data }) })
}

fn summary(manifest: &ExportManifest) -> String {
    let cut = match manifest.cut.prompts {
        0 => String::new(),
        prompts => format!(
            ", {prompts} prompts cut (inputs: {} shortened, {} dropped; steps: {} shortened, {} dropped)",
            manifest.cut.shortened_inputs,
            manifest.cut.dropped_inputs,
            manifest.cut.shortened_steps,
            manifest.cut.dropped_steps
        ),
    };
    let longest =
        manifest.prompts.as_ref().map(|prompts| format!(", prompts of up to {} tokens", prompts.longest_tokens));
    let longest = longest.unwrap_or_default();
    let left_out: u64 = manifest.left_out.values().sum();
    format!(
        "{}: {} of {} samples in {} pieces, {left_out} left out{longest}{cut}",
        manifest.to, manifest.written, manifest.read, manifest.pieces
    )
}

fn failure(error: ExportError) -> Failure {
    match error {
        ExportError::Dataset(error) => error.into(),
        error @ ExportError::Refused { .. } => Failure::new(Exit::Finding, error)
            .hint("`aegis lint` shows all of it; `--allow RULE` accepts one rule's findings"),
        error @ ExportError::SeveralKinds { .. } => Failure::new(Exit::Usage, error).hint(
            "`--kind injected` takes what was planted, `--kind flip` what a trace found so, `--kind all` all of it",
        ),
        error @ (ExportError::UnknownFormat { .. }
        | ExportError::NoRows { .. }
        | ExportError::NotOfRecordings { .. }
        | ExportError::Occupied { .. }
        | ExportError::OwnSource { .. }) => Failure::new(Exit::Usage, error),
        other => Failure::new(Exit::Recording, other),
    }
}
