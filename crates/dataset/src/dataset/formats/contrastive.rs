//! Aegis' contrastive rows: a clean run with all failures of its task. Each clean run is used once, where theirs
//! repeats every failure for every clean run, and the key is a hash that is the same on every machine.

use serde_json::{Value, json};

use super::{
    DiskLayout, ExportContext, Format, Unfit, WrittenPiece,
    aegis::{RECORD, entered},
    dpo::{NO_PAIR, divergence},
    render::Inputs,
    schema::{Field::Needed, Type},
};
use crate::dataset::{Sample, SampleKind, lint::shares_beginning};

/// What a row holds.
const ROW: Type = Type::Record(&[
    Needed("query", Type::Text),
    Needed(
        "key_info",
        Type::Record(&[
            Needed("framework", Type::Text),
            Needed("benchmark", Type::Text),
            Needed("query_hash", Type::Text),
            Needed("readable_query", Type::Text),
        ]),
    ),
    Needed("positive_sample", RECORD),
    Needed("negative_samples", Type::List(&RECORD)),
    Needed("divergence_steps", Type::List(&Type::Maybe(&Type::Whole))),
]);

/// Writes rows.
#[derive(Debug)]
pub(super) struct Contrastive;

impl Format for Contrastive {
    fn name(&self) -> &'static str {
        "contrastive"
    }
    fn description(&self) -> &'static str {
        "contrastive rows: a clean run with its failures as Aegis records, and where each leaves it (from 0)"
    }
    fn shape(&self) -> DiskLayout {
        DiskLayout::Lines
    }
    fn schema(&self) -> Type {
        ROW
    }
    fn takes_clean(&self) -> bool {
        true
    }
    fn wants_twin(&self) -> bool {
        true
    }
    fn wants_failures(&self) -> bool {
        true
    }
    fn pieces(&self, sample: &Sample, context: &ExportContext<'_>) -> Result<Vec<WrittenPiece>, Unfit> {
        if sample.kind != SampleKind::Clean {
            let no_pair = context.twin.as_ref().is_some_and(|twin| !shares_beginning(sample, twin));
            return Err(if no_pair { NO_PAIR } else { Unfit("a failure stands in its twin's row") });
        }
        let pairs: Vec<&Sample> = context.failures.iter().filter(|failure| shares_beginning(failure, sample)).collect();
        if pairs.is_empty() {
            return Err(Unfit("a clean run without failures"));
        }
        let inputs = context.options.inputs_or(Inputs::None);
        let failures = pairs.iter().map(|failure| entered(failure, inputs));
        let failures = failures.collect::<Result<Vec<_>, _>>()?;
        let leaves: Vec<Value> =
            pairs.iter().map(|failure| divergence(failure, sample).map(|(step, _)| step.step).into()).collect();
        let question = &sample.task.question;
        let hash = blake3::hash(question.as_bytes()).to_hex();
        let row = json!({
            "query": question,
            "key_info": {
                "framework": sample.system,
                "benchmark": sample.task.extra.get("benchmark").and_then(Value::as_str).unwrap_or_default(),
                "query_hash": hash.get(..16),
                "readable_query": question.chars().take(50).collect::<String>(),
            },
            "positive_sample": entered(sample, inputs)?,
            "negative_samples": failures,
            "divergence_steps": leaves,
        });
        Ok(vec![WrittenPiece::row(row)])
    }
}
