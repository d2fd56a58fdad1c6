//! The files that Aegis writes, with the type of each.

use super::{WrittenSchema, schema_of};
use crate::{
    attribution::{RecordedProof, RetriedRun, TraceFinding, trace_journal_schema},
    campaign::{
        CampaignReport, CampaignSnapshot, EndedCell, Merged, SearchRefusal, conclusion_schema, shard_schema,
        spending_schema,
    },
    cli::{
        attribute::AttributionRow,
        certify::Certificate,
        printed::{PrintedCatches, RetryFile},
        serve::tokens::TokensFile,
    },
    dataset::{
        DatasetManifest,
        formats::{ExportManifest, Imported},
    },
    proxy::audit_schema,
    recording::{Annotation, KeepMark, Manifest, RunFact, Seal, cards_schema, identity_schema, log_schema},
    ruling::former_schema,
    trajectory::Label,
    verify::transcript_schema,
};

/// All of them.
pub(super) const FILES: &[WrittenSchema] = &[
    WrittenSchema::new(
        "log",
        "logs/RUN/log.jsonl",
        "a line of a recording's log; docs/reference/log-format.md says how bodies are rebuilt",
        log_schema,
    ),
    WrittenSchema::new("files/run", "logs/RUN/run.json", "what a run is", schema_of::<Manifest>).hashed(),
    WrittenSchema::new("files/seal", "logs/RUN/seal.json", "what a sealed run holds", schema_of::<Seal>).hashed(),
    WrittenSchema::new("files/kept", "logs/RUN/kept.json", "that a run is never pruned", schema_of::<KeepMark>)
        .hashed(),
    WrittenSchema::new("files/label", "logs/RUN/label.json", "the ground truth of a run", schema_of::<Label>).hashed(),
    WrittenSchema::new(
        "files/label.former",
        "logs/RUN/label.former.json",
        "labels that others took the place of",
        former_schema,
    ),
    WrittenSchema::new(
        "files/identity",
        "logs/RUN/identity.json",
        "agents of steps that were recognised only when the run was whole",
        identity_schema,
    )
    .hashed(),
    WrittenSchema::new(
        "files/cards",
        "logs/RUN/cards.json",
        "the cards of peers that the run's program asked for",
        cards_schema,
    )
    .hashed(),
    WrittenSchema::new(
        "files/facts",
        "logs/RUN/facts.jsonl",
        "a line of what became known later",
        schema_of::<RunFact>,
    )
    .hashed(),
    WrittenSchema::new(
        "files/attribution",
        "logs/RUN/attribution.jsonl",
        "a line of what a method says of the run",
        schema_of::<AttributionRow<'static>>,
    ),
    WrittenSchema::new(
        "files/trace",
        "logs/RUN/trace.json",
        "what a trace found, with its evidence",
        schema_of::<TraceFinding>,
    )
    .hashed(),
    WrittenSchema::new(
        "files/missed-catch",
        "logs/RUN/missed-catch.json",
        "what a search for missed catches found",
        schema_of::<PrintedCatches<'static>>,
    )
    .hashed(),
    WrittenSchema::new(
        "files/search-refused",
        "logs/RUN/search-refused.json",
        "why a campaign cannot search a failed run",
        schema_of::<SearchRefusal>,
    )
    .hashed(),
    WrittenSchema::new(
        "files/trace.journal",
        "logs/RUN/trials/trace.journal.jsonl",
        "a line of what a trace executed, so that it can go on",
        trace_journal_schema,
    ),
    WrittenSchema::new(
        "files/proof",
        "logs/RUN/proof.json",
        "the executions of proofs",
        schema_of::<Vec<RecordedProof>>,
    ),
    WrittenSchema::new("files/retry", "logs/RUN/retry.json", "what a retry found", schema_of::<RetryFile<'static>>),
    WrittenSchema::new(
        "files/retried",
        "retried.jsonl",
        "a line of a retry of many runs, so that it can go on",
        schema_of::<RetriedRun>,
    ),
    WrittenSchema::new("files/audit", "logs/audit.jsonl", "a line for a change over HTTP", audit_schema),
    WrittenSchema::new(
        "files/annotation",
        "logs/annotations/NAME.jsonl",
        "a line of what an annotator says of a run",
        schema_of::<Annotation>,
    ),
    WrittenSchema::new(
        "files/tokens",
        "tokens.toml",
        "who may ask a server (`serve --tokens`)",
        schema_of::<TokensFile>,
    ),
    WrittenSchema::new("files/report", "NAME-run/report.json", "the report of a campaign", schema_of::<CampaignReport>),
    WrittenSchema::new("files/cell", "NAME-run/cells/RUN.json", "a finished run of a campaign", schema_of::<EndedCell>),
    WrittenSchema::new(
        "files/chain",
        "NAME-run/chains/",
        "the first line of a conclusion; packed bytes of this version follow",
        conclusion_schema,
    ),
    WrittenSchema::new("files/spent", "NAME-run/spent.jsonl", "a line of a campaign's bill", spending_schema),
    WrittenSchema::new(
        "files/judge",
        "NAME-run/judge.jsonl",
        "a line of what a judge was asked and answered",
        transcript_schema,
    ),
    WrittenSchema::new("files/shard", "shard.json", "what a part of a campaign is part of", shard_schema),
    WrittenSchema::new(
        "files/snapshot",
        "campaign.json.zst",
        "a campaign with all files that it reads, packed",
        schema_of::<CampaignSnapshot>,
    ),
    WrittenSchema::new("files/merged", "merged.json", "what was merged of which parts", schema_of::<Merged>),
    WrittenSchema::new(
        "files/dataset",
        "dataset.json",
        "the manifest of a data set; `dataset` describes its rows",
        schema_of::<DatasetManifest>,
    ),
    WrittenSchema::new(
        "files/export",
        "*.manifest.json, manifest.json",
        "the manifest of an export",
        schema_of::<ExportManifest>,
    ),
    WrittenSchema::new("files/import", "import.json", "what an import read", schema_of::<Imported>),
    WrittenSchema::new(
        "files/certificate",
        "certificate.json",
        "what a judge's answers were measured to be",
        schema_of::<Certificate>,
    ),
];
