//! The card of a folder: front matter by which `datasets` and the hub find its files, and what a reader must know before
//! training on it: that faults were planted, by what, proven how, and what it is not good for.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use super::{SelectedClaims, format::ExportOptions, huggingface::configs, rows::FileHash, sink::Written};
use crate::dataset::{Grounds, Sample, SampleKind, claims::percent, split};

/// What is known of the samples that were written.
#[derive(Debug, Default)]
pub(super) struct Card {
    kinds: BTreeMap<&'static str, u64>,
    systems: BTreeSet<String>,
    models: BTreeSet<String>,
    modes: BTreeMap<String, u64>,
    operators: BTreeSet<String>,
    definitions: BTreeMap<String, u64>,
    grounds: Grounds,
    proofs: BTreeMap<String, u64>,
    seeds: BTreeSet<u64>,
    /// The parts in which the words of a question stand, by their hash.
    tasks: BTreeMap<u64, BTreeSet<Option<crate::dataset::Split>>>,
}

impl Card {
    /// Looks at a sample.
    pub(super) fn add(&mut self, sample: &Sample) {
        let kind = match sample.kind {
            SampleKind::Clean => "clean",
            SampleKind::Failure => "failure",
            SampleKind::Benign => "benign",
            SampleKind::Decoy => "decoy",
        };
        *self.kinds.entry(kind).or_default() += 1;
        self.systems.insert(sample.system.clone());
        let models = sample.steps.iter().filter_map(|step| step.model.as_ref());
        self.models.extend(models.map(|model| match sample.backend.as_str() {
            "simulator" => format!("simulator/{model} (a scripted model, not a language model)"),
            backend => format!("{model} at {backend}"),
        }));
        let words = twox_hash::XxHash3_64::oneshot(split::words(&sample.task.question).as_bytes());
        self.tasks.entry(words).or_default().insert(sample.split);
        self.grounds.add(sample);
        let Some(truth) = &sample.label else { return };
        *self.definitions.entry(truth.definition.clone()).or_default() += 1;
        let status = serde_json::to_value(truth.status).unwrap_or_default();
        *self.proofs.entry(status.as_str().unwrap_or_default().to_owned()).or_default() += 1;
        self.seeds.extend(truth.seed);
        // A sample counts once for each mode that it has, however many of its errors have it.
        let mut modes = BTreeSet::new();
        for error in &truth.errors {
            self.operators.extend(error.planted_by().map(str::to_owned));
            modes.extend(error.modes().map(|mode| format!("{} {} ({})", mode.code, mode.name, mode.taxonomy)));
            if error.failure_mode.is_none() {
                modes.insert("no failure mode".to_owned());
            }
        }
        for mode in modes {
            *self.modes.entry(mode).or_default() += 1;
        }
    }

    /// The card.
    pub(super) fn text(
        &self,
        options: &ExportOptions,
        kept: &SelectedClaims,
        tables: &[Written],
        hashes: &BTreeMap<String, FileHash>,
    ) -> String {
        let mut text = String::from("---\n");
        let name = format!("Failure attribution: {}", list(&self.systems));
        if let Some(license) = &options.license {
            let _ = writeln!(text, "license: {}", quoted(license));
        }
        let samples: u64 = self.kinds.values().sum();
        let _ = writeln!(text, "pretty_name: {}", quoted(&name));
        let _ = writeln!(text, "size_categories:\n- {}", size(samples));
        text.push_str("task_categories:\n- text-classification\n- text-generation\n");
        text.push_str("tags:\n- failure-attribution\n- multi-agent\n- llm-agents\n- synthetic\n");
        text.push_str("configs:\n");
        for (number, config) in configs(options).iter().enumerate() {
            let own: Vec<&Written> = tables.iter().filter(|table| table.config == config.name()).collect();
            if own.is_empty() {
                continue;
            }
            let _ = writeln!(text, "- config_name: {}", config.name());
            if number == 0 {
                text.push_str("  default: true\n");
            }
            text.push_str("  data_files:\n");
            for table in own {
                let _ = writeln!(text, "  - split: {}\n    path: {}", table.split, table.path);
            }
        }
        text.push_str("---\n");
        let _ = writeln!(text, "\n# {name}\n");
        self.body(&mut text, options, tables, hashes);
        self.claims(&mut text, kept);
        text.push_str(LIMITS);
        let _ = writeln!(
            text,
            "Do not let this data into a training corpus by accident: filter by this string.\n\n`{}`",
            canary(hashes)
        );
        text
    }

    /// Who reads it sees first that faults were planted, then what is in it.
    fn body(
        &self,
        text: &mut String,
        options: &ExportOptions,
        tables: &[Written],
        hashes: &BTreeMap<String, FileHash>,
    ) {
        text.push_str(
            "Runs of multi-agent systems of language models, each labelled with the agent that erred, the step and the \
             failure mode.\nWritten by Aegis, a proxy that records such runs and plants known errors in them.\n\n\
             **These runs hold planted faults.** Wrong numbers, false claims and broken plans stand in them on purpose; \
             do not train\nan assistant to imitate the failures.\n\n",
        );
        let counts: Vec<String> = self.kinds.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
        let shared = self.tasks.values().filter(|parts| parts.len() > 1).count();
        let split = if shared == 0 {
            "no task is in two parts".to_owned()
        } else {
            format!("{shared} TASKS ARE IN SEVERAL PARTS")
        };
        let rows = [
            ("samples", counts.join(", ")),
            ("tasks", format!("{}; parts are drawn by task: {split}", self.tasks.len())),
            ("systems", list(&self.systems)),
            ("models", format!("{}; their licences bind what is made from their output", list(&self.models))),
            ("labels", pairs(&self.proofs)),
            ("kinds of claims", pairs(&self.definitions)),
            ("samples by failure mode", pairs(&self.modes)),
            ("planted by", list(&self.operators)),
            ("seeds", list(&self.seeds.iter().map(ToString::to_string).collect())),
        ];
        text.push_str("| | |\n|---|---|\n");
        for (name, value) in rows {
            let _ = writeln!(text, "| {name} | {} |", cell(&value));
        }
        text.push_str("\n## Files\n\n| rows | part | file | format | blake3 |\n|---|---|---|---|---|\n");
        for table in tables {
            let format = configs(options).iter().find(|config| config.name() == table.config);
            let about = format.map(|format| format.description()).unwrap_or_default();
            let hash = hashes.get(&table.path).and_then(|hash| hash.blake3.get(..16)).unwrap_or_default();
            let _ =
                writeln!(text, "| {} | {} | `{}` | {} | `{hash}…` |", table.rows, table.split, table.path, cell(about));
        }
        text.push_str(
            "\n```python\nfrom datasets import load_dataset\nruns = load_dataset(\"PATH OF THIS FOLDER\")\n```\n",
        );
    }

    /// How sure the labels are.
    fn claims(&self, text: &mut String, kept: &SelectedClaims) {
        let Grounds { e_values, repeatable, former, unclaimed } = &self.grounds;
        let (pairs, alpha) = (e_values.len(), percent(kept.alpha));
        text.push_str("\n## How sure the labels are\n\n");
        if pairs > 0 {
            let of = if kept.stated { "all claims that were begun" } else { "the claims that are known" };
            let SelectedClaims { begun, kept, .. } = kept;
            let _ = writeln!(
                text,
                "- {pairs} failures are `verified` by pairs of runs: with the change, delivered again as the same bytes, \
                 and without it, in turns.\n  Each has an e-value; where a change does nothing, 1,000 is ever reached with a \
                 probability of at most 1/1,000.\n  Over {of} ({begun}), {kept} were kept so that in the mean at most \
                 {alpha} of them are wrong (e-BH)."
            );
        }
        if *repeatable > 0 {
            let _ = writeln!(
                text,
                "- {repeatable} failures are `verified` on systems that repeat themselves: with and without the change at \
                 least two runs each,\n  which were equal. Nothing about them is chance, and they stand outside that share."
            );
        }
        if *former > 0 {
            let _ = writeln!(
                text,
                "- {former} failures are `verified` by an earlier rule: clean runs passed, the changed run failed, runs \
                 without the change passed.\n  The changed run was never repeated, so no share of wrong ones is known."
            );
        }
        if *unclaimed > 0 {
            let _ = writeln!(
                text,
                "- For {unclaimed} failures nothing was executed that shows them: their labels are somebody's word."
            );
        }
        if let Some(decoys) = &kept.decoys {
            let _ = writeln!(
                text,
                "- Neutral changes were planted as if they were errors, and proven in the same way: {}.",
                decoys.in_words()
            );
        }
        for (manipulator, what) in &kept.giveaways {
            let _ = writeln!(
                text,
                "- Failures by `{manipulator}` were left out, for they give themselves away: {}.",
                cell(what)
            );
        }
        text.push_str(
            "- `errors` of a label are what the failure needs, by runs without each; `others` was planted besides, is shown to be \
             not needed,\n  and is no error; of `not_shown` neither is shown. Where any of several would have done \
             (`overdetermined`), or several did it together\n  (`joint`), `errors` has these. Formats of one culprit take \
             a failure where every other planted error is shown to be not needed.\n- The failure mode is the word of the plan's author; agent, step and side are proven.\n",
        );
    }
}

const LIMITS: &str = "\n## Limits\n\n\
    - A step is a model call; tools and the environment are seen only as far as requests quote them.\n\
    - Values that look like keys were masked when the runs were recorded.\n\
    - A planted error may be easier to see than a natural one: `aegis stats` measures by how much.\n\n";

/// A string that stands nowhere else, made of what the files hold, so that the same data has the same one.
fn canary(hashes: &BTreeMap<String, FileHash>) -> String {
    let mut hash = blake3::Hasher::new_derive_key("aegis canary of a dataset");
    for (name, file) in hashes {
        hash.update(name.as_bytes()).update(file.blake3.as_bytes());
    }
    let hex = hash.finalize().to_hex();
    let part = |from: usize, to: usize| hex.get(from..to).unwrap_or_default();
    format!("aegis:canary:{}-{}-{}-{}-{}", part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32))
}

/// The hub's word for so many samples.
fn size(samples: u64) -> &'static str {
    match samples {
        0..1_000 => "n<1K",
        1_000..10_000 => "1K<n<10K",
        10_000..100_000 => "10K<n<100K",
        100_000..1_000_000 => "100K<n<1M",
        _ => "1M<n<10M",
    }
}

/// A text of YAML: JSON's form of it is one.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn list(words: &BTreeSet<String>) -> String {
    let known: Vec<&str> = words.iter().map(String::as_str).filter(|word| !word.is_empty()).collect();
    if known.is_empty() { "unknown".to_owned() } else { known.join(", ") }
}

fn pairs(counts: &BTreeMap<String, u64>) -> String {
    let all: Vec<String> = counts.iter().map(|(name, count)| format!("{count} {name}")).collect();
    if all.is_empty() { "none".to_owned() } else { all.join(", ") }
}

/// A text in a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace(['\n', '\r'], " ")
}
