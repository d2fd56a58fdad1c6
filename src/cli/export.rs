//! `aegis export DATASET --to FORMAT --out PATH`: a dataset in the words of trainers and benchmarks.

use std::{io::Write, path::PathBuf};

use clap::{Args, ValueEnum};

use super::{Exit, Failure, Finished};
use crate::{
    dataset::{
        ALPHA, Dataset, Split,
        formats::{self, AnswerForm, ExportError, ExportManifest, ExportOptions, Lint, PromptTemplate},
        lint::Rule,
    },
    trajectory::nearest,
};

/// Options of `export`.
#[derive(Debug, Args)]
pub(super) struct ExportArgs {
    /// The dataset: a directory with `dataset.jsonl`, or one JSONL file.
    #[arg(value_name = "DATASET", required_unless_present_any = ["list", "schema"])]
    dataset: Option<PathBuf>,
    /// The format. Formats of rows become Parquet where the file is named `….parquet`.
    #[arg(long, value_name = "FORMAT", required_unless_present_any = ["list", "schema"])]
    to: Option<String>,
    /// The file or directory to write; its manifest lies beside it.
    #[arg(long, value_name = "PATH", required_unless_present_any = ["list", "schema"])]
    out: Option<PathBuf>,
    /// Only this part of the dataset.
    #[arg(long, value_enum)]
    split: Option<DatasetPart>,
    /// The share of wrong failures that is allowed in the mean, over all claims that were begun: the weakest are left out.
    #[arg(long, value_name = "A", default_value_t = ALPHA, value_parser = alpha)]
    alpha: f64,
    /// Also labels that were verified under the former rule, which states no such share.
    #[arg(long)]
    former: bool,
    /// Also labels that were delivered and are not proven.
    #[arg(long)]
    unverified: bool,
    /// Your own attribution prompt: text with `{question}`, `{conversation}`, `{gold_answer}`, `{modes}`, `{agents}`, `{answer_form}`.
    #[arg(long, value_name = "FILE")]
    template: Option<PathBuf>,
    /// Tell the right answer in the prompt.
    #[arg(long)]
    gold_answer: bool,
    /// Cut prompts to so many tokens (estimated); labelled steps stay, and are cut like all others.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(256..))]
    max_tokens: Option<u32>,
    /// Export although lint found this; may be said several times.
    #[arg(long, value_name = "RULE")]
    allow: Vec<String>,
    /// `sft`: answer by calling a tool; rows have `tools` then.
    #[arg(long)]
    answer_by_call: bool,
    /// `huggingface`: a format of the folder; may be said several times.
    #[arg(long, value_name = "FORMAT")]
    config: Vec<String>,
    /// `huggingface`: rows as JSON lines instead of Parquet.
    #[arg(long)]
    lines: bool,
    /// `huggingface`: the licence in the card, by the hub's short name.
    #[arg(long, value_name = "NAME")]
    license: Option<String>,
    /// List the formats.
    #[arg(long)]
    list: bool,
    /// Print the JSON Schema of a format, or of `dataset`: our own samples.
    #[arg(long, value_name = "FORMAT", conflicts_with = "list")]
    schema: Option<String>,
}

/// A part of a dataset.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum DatasetPart {
    /// To learn from.
    Train,
    /// To choose by.
    Validation,
    /// To measure on.
    Test,
}

pub(super) fn run(arguments: &ExportArgs, json: bool, out: &mut dyn Write) -> Result<Finished, Failure> {
    if let Some(name) = &arguments.schema {
        return schema(name, json, out);
    }
    let (Some(dataset), Some(to), Some(target)) = (&arguments.dataset, &arguments.to, &arguments.out) else {
        return list(json, out);
    };
    let format = formats::format(to).map_err(failure)?;
    let dataset = Dataset::open(dataset)?;
    let manifest = formats::export(&dataset, format, target, &options(arguments)?).map_err(failure)?;
    let summary = summary(&manifest);
    if !json {
        say(&manifest, out).map_err(|error| Failure::new(Exit::Infrastructure, error))?;
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

/// How sure the failures are, and what was left out.
fn say(manifest: &ExportManifest, out: &mut dyn Write) -> std::io::Result<()> {
    writeln!(out, "sure: {}", manifest.claims.in_words())?;
    for (why, count) in &manifest.left_out {
        writeln!(out, "left out: {count} × {why}")?;
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
            Failure::new(Exit::Usage, format!("unknown rule `{name}`: `aegis lint --rules` lists them{near}"))
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
        tokens: arguments.max_tokens.and_then(|tokens| usize::try_from(tokens).ok()),
        split: arguments.split.map(|part| match part {
            DatasetPart::Train => Split::Train,
            DatasetPart::Validation => Split::Validation,
            DatasetPart::Test => Split::Test,
        }),
        alpha: Some(arguments.alpha),
        former: arguments.former,
        unverified: arguments.unverified,
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
    let formats = formats::ALL.iter().map(|format| (format.name(), format.about()));
    if !json {
        for (name, about) in formats.clone() {
            writeln!(out, "{name:<22} {about}").map_err(|error| Failure::new(Exit::Infrastructure, error))?;
        }
    }
    let data = formats.map(|(name, about)| serde_json::json!({"name": name, "about": about})).collect::<Vec<_>>();
    let summary = format!("{} formats", data.len());
    Ok(Finished { exit: Exit::Ok, summary, data: serde_json::json!({"formats": data}) })
}

fn summary(manifest: &ExportManifest) -> String {
    let cut = match manifest.cut.prompts {
        0 => String::new(),
        prompts => format!(
            ", {prompts} prompts cut ({} steps shortened, {} dropped)",
            manifest.cut.shortened_steps, manifest.cut.dropped_steps
        ),
    };
    let left_out: u64 = manifest.left_out.values().sum();
    format!(
        "{}: {} of {} samples in {} pieces, {left_out} left out{cut}",
        manifest.to, manifest.written, manifest.read, manifest.pieces
    )
}

fn failure(error: ExportError) -> Failure {
    match error {
        ExportError::Dataset(error) => error.into(),
        error @ ExportError::Refused { .. } => Failure::new(Exit::Finding, error)
            .hint("`aegis lint` shows all of it; `--allow RULE` accepts one rule's findings"),
        error @ (ExportError::UnknownFormat { .. }
        | ExportError::NoRows { .. }
        | ExportError::Occupied { .. }
        | ExportError::OwnSource { .. }) => Failure::new(Exit::Usage, error),
        other => Failure::new(Exit::Recording, other),
    }
}
