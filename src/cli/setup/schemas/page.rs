//! The page of the documentation that lists the schemas.

use std::fmt::Write;

use super::{WrittenSchema, files::FILES, verbs::VERBS};

/// The page, after its first line.
pub(in crate::cli::setup) fn page() -> String {
    let mut text = String::from(
        "# Schemas\n\nThe folder `schemas/` of the repository describes all that programs read of Aegis, as JSON Schema (draft \
         2020-12); `aegis reference --schemas DIR` writes that folder for the version that you have. The schemas are made from the \
         types that are written, and the tests hold the files and outputs of Aegis to them.\n\n\
         They list every member, and refuse others: they say what this version writes. A later version may add members, kinds \
         and words, so a reader ignores what it does not know. It takes away or changes none without a note under *Stability* \
         in the changelog. A member that is not required is absent, never `null`. Of a file of lines the schema describes a line.\n\n\
         [`openapi.json`](../../schemas/openapi.json) is an OpenAPI 3.1 document of [what Aegis answers over HTTP](http.md). \
         `FORMAT.schema.json` describes the rows of an [export](../formats.md), `dataset.schema.json` those of a \
         [data set](../dataset.md). Plans and campaigns have their schemas beside them: `plans/plan.schema.json`, \
         `examples/campaigns/campaign.schema.json`.\n",
    );
    list(&mut text, "Files", FILES);
    text.push_str(
        "\nThe internal files `lock`, `machine.key`, `head.jsonl.zst` (lines of the log) and `partial/` have none of their own.\n",
    );
    list(&mut text, "What verbs print with `--format json`", VERBS);
    text.push_str(
        "\n`error` and `stopped` may come in place of any other. Progress and talk go to standard error, and are no contract.\n",
    );
    text
}

fn list(text: &mut String, heading: &str, schemas: &[WrittenSchema]) {
    let _ = write!(text, "\n## {heading}\n\n");
    for schema in schemas {
        let WrittenSchema { name, describes, about, .. } = schema;
        let _ = writeln!(text, "- [`{describes}`](../../schemas/{name}.schema.json): {about}");
    }
}
