//! The schemas of files whose types nobody outside sees.

use schemars::{JsonSchema, Schema, SchemaGenerator};

use super::{cards::CardsFile, identity::IdentityFile, record::Record};

/// A line of a recording's log.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used: lines are written and read piece by piece")]
struct LogLine {
    /// Format of the line.
    #[schemars(extend("const" = 1))]
    v: u32,
    /// The line's number, from 0, without gaps.
    seq: u64,
    /// CRC-32 of the bytes of `rec`'s value, in hexadecimal digits.
    #[schemars(extend("pattern" = "^[0-9a-f]{8}$"))]
    crc: String,
    /// The record.
    rec: Record<'static>,
}

/// The schema of a line of `log.jsonl`.
pub fn log_schema(generator: &mut SchemaGenerator) -> Schema {
    generator.root_schema_for::<LogLine>()
}

/// The schema of `identity.json`.
pub fn identity_schema(generator: &mut SchemaGenerator) -> Schema {
    generator.root_schema_for::<IdentityFile>()
}

/// The schema of `cards.json`.
pub fn cards_schema(generator: &mut SchemaGenerator) -> Schema {
    generator.root_schema_for::<CardsFile>()
}
