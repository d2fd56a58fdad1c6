//! What a line of our own datasets looks like, for its JSON Schema; the fields themselves are [`Sample`]'s.
//!
//! [`Sample`]: crate::dataset::Sample

use super::schema::{
    Field::{May, Needed},
    Type,
};

/// A sample.
pub(super) const SAMPLE: Type = Type::Record(&[
    Needed("format", Type::Whole),
    Needed("id", Type::Text),
    Needed("kind", Type::OneOf(&["clean", "failure", "benign", "decoy"])),
    May("system", Type::Text),
    May("backend", Type::Text),
    // A task keeps whatever else its task set says.
    Needed(
        "task",
        Type::Open(&[
            Needed("id", Type::Text),
            Needed("question", Type::Text),
            May("answer", Type::Text),
            May("check", Type::Json),
        ]),
    ),
    May("split", Type::OneOf(&["train", "validation", "test"])),
    Needed("outcome", Type::OneOf(&["success", "failure", "unknown"])),
    May("outcome_evidence", Type::Text),
    May("final_answer", Type::Text),
    May(
        "tools",
        Type::List(&Type::Record(&[
            Needed("name", Type::Text),
            May("description", Type::Text),
            May("parameters", Type::Json),
        ])),
    ),
    Needed("steps", Type::List(&STEP)),
    Needed("label", Type::Maybe(&LABEL)),
    Needed("clean_twin", Type::Maybe(&Type::Text)),
    May(
        "equality",
        Type::Record(&[May("rules", Type::Text), May("tool_results", Type::OneOf(&["exact", "masked", "any"]))]),
    ),
    May("extra", Type::Map(&Type::Json)),
]);

const STEP: Type = Type::Record(&[
    Needed("step", Type::Whole),
    May("call", Type::Whole),
    May("turn", Type::Whole),
    Needed("agent", Type::Text),
    May("culprit", Type::OneOf(&["agent", "tool", "peer"])),
    May("raw_agent", Type::Text),
    May("instance", Type::Whole),
    May("source", Type::Text),
    May("ambiguous", Type::Flag),
    May("overlaps", Type::Flag),
    May("model", Type::Text),
    Needed(
        "input",
        Type::Maybe(&Type::Record(&[
            May("follows", Type::Whole),
            May("kept", Type::Whole),
            Needed("messages", Type::List(&SAID)),
        ])),
    ),
    May("tools", Type::List(&Type::Text)),
    Needed("output", Type::Maybe(&SAID)),
    May("account", Type::Text),
    May("finish_reason", Type::Text),
    May("status", Type::Whole),
    May("attempts", Type::Whole),
    May(
        "doubt",
        Type::Record(&[Needed("mean", Type::Number), Needed("highest", Type::Number), Needed("tokens", Type::Whole)]),
    ),
    May("extra", Type::Map(&Type::Json)),
]);

const SAID: Type = Type::Record(&[
    Needed("role", Type::OneOf(&["system", "developer", "user", "assistant", "tool", "other"])),
    May("name", Type::Text),
    Needed("text", Type::Text),
    May(
        "calls",
        Type::List(&Type::Record(&[
            May("id", Type::Text),
            Needed("name", Type::Text),
            Needed("arguments", Type::Text),
        ])),
    ),
    May("answers", Type::Text),
    May("opaque", Type::Whole),
]);

const LABEL: Type = Type::Record(&[
    Needed("status", Type::OneOf(&["delivered", "verified", "contradicted", "unproven", "void", "withdrawn"])),
    Needed("definition", Type::Text),
    May("seed", Type::Whole),
    May("outcome", Type::OneOf(&["success", "failure", "unknown"])),
    Needed("errors", Type::List(&ERROR)),
    May("others", Type::List(&ERROR)),
    May("not_shown", Type::List(&ERROR)),
    May(
        "changes",
        Type::List(&Type::Record(&[
            Needed("step", Type::Whole),
            Needed("side", Type::OneOf(&["request", "response"])),
            Needed("before", Type::List(&SAID)),
            Needed("after", Type::List(&SAID)),
        ])),
    ),
    May("evidence", EVIDENCE),
    May(
        "missed_catch",
        Type::List(&Type::Record(&[
            Needed("agent", Type::Text),
            May("instance", Type::Whole),
            Needed("step", Type::Whole),
            Needed("call", Type::Whole),
            Needed("state", Type::OneOf(&["missed", "impossible", "unknown"])),
            Needed("source", Type::Text),
            Needed("executed", EXECUTED),
        ])),
    ),
]);

const EVIDENCE: Type = Type::Record(&[
    May("executed", EXECUTED),
    May("source", Type::Text),
    May("cleared", Type::List(&Type::Whole)),
    May(
        "necessity",
        Type::List(&Type::Record(&[
            Needed("injection", Type::Whole),
            Needed("agent", Type::Text),
            Needed("instance", Type::Whole),
            Needed("state", Type::OneOf(&["necessary", "not_needed", "not_shown"])),
            Needed("executed", EXECUTED),
            May(
                "exclusion",
                Type::Record(&[
                    Needed("effect", Type::Number),
                    Needed("e", Type::Number),
                    Needed("target", Type::Number),
                ]),
            ),
        ])),
    ),
    May("overdetermined", Type::Flag),
    May("joint", Type::Flag),
    May("clean", TALLY),
    May("controls", TALLY),
    May("twin", Type::Text),
    May("fork_step", Type::Whole),
    May("needed", Type::List(&Type::Whole)),
    May("null", TALLY),
    May("treated", TALLY),
]);

const EXECUTED: Type = Type::Record(&[
    Needed("null", EXECUTIONS),
    Needed("treated", EXECUTIONS),
    May("pairs", Type::Whole),
    May("e", Type::Number),
    May("target", Type::Number),
    May("repeatable", Type::Flag),
    May("dependent", Type::Json),
    May("chaotic", Type::Flag),
    May("perturbed", Type::Flag),
    May("shams", Type::List(&EXECUTIONS)),
]);

const EXECUTIONS: Type =
    Type::Record(&[Needed("passed", Type::Whole), Needed("failed", Type::Whole), May("void", Type::Map(&Type::Whole))]);

const TALLY: Type = Type::Record(&[Needed("passed", Type::Whole), Needed("of", Type::Whole)]);

const MODE: Type =
    Type::Record(&[Needed("code", Type::Text), Needed("name", Type::Text), Needed("taxonomy", Type::Text)]);

const MODE_CLAIM: Type = Type::Record(&[
    Needed("state", Type::OneOf(&["declared", "applicable", "confirmed", "refuted"])),
    May("unmet", Type::Text),
    May("by", Type::Text),
]);

const ERROR: Type = Type::Record(&[
    Needed("agent", Type::Text),
    May("raw_agent", Type::Text),
    May("instance", Type::Whole),
    May("step", Type::Whole),
    May("call", Type::Whole),
    May("failure_mode", MODE),
    May("other_modes", Type::List(&MODE)),
    May("mode_claim", MODE_CLAIM),
    May("mode_source", Type::OneOf(&["declared"])),
    May("proposed_mode", MODE),
    May("side", Type::OneOf(&["request", "response"])),
    May("operator", Type::Text),
    May("shown_by", Type::Text),
    May("injection", Type::Whole),
    May("before", Type::Text),
    May("after", Type::Text),
    May("reason", Type::Text),
    May("extra", Type::Map(&Type::Json)),
]);
