//! Our own samples as a table: one row a run, what one filters and counts by as columns, the rest as JSON in columns.
//! Nothing is lost but the difference form of inputs: here each step has its whole input.

use serde_json::{Value, json};

use super::{
    format::{DiskLayout, ExportContext, Format, Unfit, WrittenPiece},
    render::spoken,
    schema::{Field::Needed, Type},
};
use crate::{
    dataset::{LabelledError, Sample, SampleStep},
    trajectory::Evidence,
};

/// What a row holds.
const ROW: Type = Type::Record(&[
    Needed("id", Type::Text),
    Needed("kind", Type::OneOf(&["clean", "failure", "benign", "decoy"])),
    Needed("system", Type::Text),
    Needed("backend", Type::Text),
    Needed("task", Type::Text),
    Needed("question", Type::Text),
    Needed("answer", Type::Text),
    Needed("split", Type::Maybe(&Type::OneOf(&["train", "validation", "test"]))),
    Needed("outcome", Type::OneOf(&["success", "failure", "unknown"])),
    Needed("final_answer", Type::Text),
    Needed("clean_twin", Type::Maybe(&Type::Text)),
    Needed("agents", Type::List(&Type::Text)),
    Needed("errors", Type::List(&ERROR)),
    Needed("others", Type::List(&ERROR)),
    Needed("not_shown", Type::List(&ERROR)),
    Needed("status", Type::Maybe(&Type::Text)),
    Needed("e", Type::Maybe(&Type::Number)),
    Needed("repeatable", Type::Flag),
    Needed("overdetermined", Type::Flag),
    Needed("joint", Type::Flag),
    Needed("steps", Type::List(&STEP)),
    Needed("tools", Type::Json),
    Needed("label", Type::Json),
    Needed("extra", Type::Json),
]);

const ERROR: Type = Type::Record(&[
    Needed("agent", Type::Text),
    Needed("step", Type::Maybe(&Type::Whole)),
    Needed("call", Type::Maybe(&Type::Whole)),
    Needed("failure_mode", Type::Maybe(&Type::Text)),
    Needed("other_modes", Type::List(&Type::Text)),
    Needed("side", Type::Maybe(&Type::OneOf(&["request", "response"]))),
    Needed("operator", Type::Maybe(&Type::Text)),
]);

const STEP: Type = Type::Record(&[
    Needed("step", Type::Whole),
    Needed("call", Type::Whole),
    Needed("turn", Type::Whole),
    Needed("agent", Type::Text),
    Needed("instance", Type::Whole),
    Needed("model", Type::Maybe(&Type::Text)),
    Needed("said", Type::Text),
    Needed("input", Type::Json),
    Needed("output", Type::Json),
    Needed("account", Type::Maybe(&Type::Text)),
    Needed("finish_reason", Type::Maybe(&Type::Text)),
]);

/// Writes rows.
#[derive(Debug)]
pub(super) struct RunsFormat;

/// Writes them as Parquet, whatever the file is called.
#[derive(Debug)]
pub(super) struct Parquet;

impl Format for RunsFormat {
    fn name(&self) -> &'static str {
        "runs"
    }
    fn description(&self) -> &'static str {
        "our samples as a table: one row a run with steps, errors and label, steps from 0"
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
    fn pieces(&self, sample: &Sample, _: &ExportContext<'_>) -> Result<Vec<WrittenPiece>, Unfit> {
        Ok(vec![WrittenPiece::row(row(sample))])
    }
}

impl Format for Parquet {
    fn name(&self) -> &'static str {
        "parquet"
    }
    fn description(&self) -> &'static str {
        "`runs` as Parquet; other formats of rows become Parquet by the name of their file, `….parquet`"
    }
    fn shape(&self) -> DiskLayout {
        DiskLayout::Table
    }
    fn schema(&self) -> Type {
        ROW
    }
    fn takes_clean(&self) -> bool {
        true
    }
    fn pieces(&self, sample: &Sample, context: &ExportContext<'_>) -> Result<Vec<WrittenPiece>, Unfit> {
        RunsFormat.pieces(sample, context)
    }
}

fn row(sample: &Sample) -> Value {
    let errors = sample.label.iter().flat_map(|truth| &truth.errors);
    let others = sample.label.iter().flat_map(|truth| &truth.others);
    let not_shown = sample.label.iter().flat_map(|truth| &truth.not_shown);
    let evidence = sample.label.as_ref().and_then(|truth| truth.evidence.as_ref());
    json!({
        "id": sample.id,
        "kind": sample.kind,
        "system": sample.system,
        "backend": sample.backend,
        "task": sample.task.id,
        "question": sample.task.question,
        "answer": sample.task.answer,
        "split": sample.split,
        "outcome": sample.outcome,
        "final_answer": sample.final_answer,
        "clean_twin": sample.clean_twin,
        "agents": sample.agents(),
        "errors": errors.map(error).collect::<Vec<_>>(),
        "others": others.map(error).collect::<Vec<_>>(),
        "not_shown": not_shown.map(error).collect::<Vec<_>>(),
        "status": sample.label.as_ref().map(|truth| truth.status),
        "e": evidence.and_then(Evidence::e),
        "repeatable": evidence.is_some_and(Evidence::is_repeatable),
        "overdetermined": evidence.is_some_and(|evidence| evidence.overdetermined),
        "joint": evidence.is_some_and(|evidence| evidence.joint),
        "steps": sample.steps.iter().map(|step| self::step(sample, step)).collect::<Vec<_>>(),
        "tools": sample.tools,
        "label": sample.label,
        "extra": sample.extra,
    })
}

fn error(error: &LabelledError) -> Value {
    json!({
        "agent": error.agent,
        "step": error.step,
        "call": error.call,
        "failure_mode": error.failure_mode.as_ref().map(|mode| &mode.code),
        "other_modes": error.other_modes.iter().map(|mode| &mode.code).collect::<Vec<_>>(),
        "side": error.side,
        "operator": error.planted_by(),
    })
}

fn step(sample: &Sample, step: &SampleStep) -> Value {
    json!({
        "step": step.step,
        "call": step.call,
        "turn": step.turn,
        "agent": step.agent,
        "instance": step.instance,
        "model": step.model,
        "said": spoken(step),
        "input": sample.input(step.step),
        "output": step.output,
        "account": step.account,
        "finish_reason": step.finish_reason,
    })
}
