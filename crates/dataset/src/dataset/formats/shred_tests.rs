//! Rows go through Parquet and come back, whatever is absent, empty or nested.

use std::fs::File;

use parquet::file::reader::{FileReader, SerializedFileReader};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::{
    dataset::formats::{
        rows::Rows,
        schema::Field::{May, Needed},
    },
    recording::Redactor,
};

const ROW: Type = Type::Record(&[
    Needed("text", Type::Text),
    May("whole", Type::Whole),
    Needed("flags", Type::List(&Type::Flag)),
    May("nested", Type::List(&Type::Record(&[Needed("name", Type::Text), May("more", Type::List(&Type::Whole))]))),
    Needed("holes", Type::List(&Type::Maybe(&Type::Number))),
    Needed("json", Type::Json),
]);

/// What a reader of Parquet sees.
fn through(rows: &[Value]) -> Vec<Value> {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("rows.parquet");
    let mut file = Rows::create(&path, Some(&ROW)).expect("created");
    rows.iter().for_each(|row| file.push(&Redactor::default().masked_json(row.clone())).expect("pushed"));
    file.done().expect("written");
    let reader = SerializedFileReader::new(File::open(&path).expect("there")).expect("Parquet");
    let rows = reader.get_row_iter(None).expect("rows");
    rows.map(|row| row.expect("a row").to_json_value()).collect()
}

/// What is absent is null in a column, and JSON is its text.
fn expected(row: &Value) -> Value {
    let mut row = row.clone();
    let text = row["json"].to_string();
    row["json"] = text.into();
    for name in ["whole", "nested"] {
        let found = row.get(name).cloned().unwrap_or_default();
        row[name] = found;
    }
    for item in row["nested"].as_array_mut().into_iter().flatten() {
        let found = item.get("more").cloned().unwrap_or_default();
        item["more"] = found;
    }
    row
}

#[test]
fn misfits_say_where_and_what() {
    let good = json!({"text": "a", "flags": [], "holes": [], "json": 1});
    let with = |name: &str, value: Value| {
        let mut row = good.clone();
        row[name] = value;
        row
    };
    let cases = [
        (with("text", json!(1)), "`text` is 1: expected a text"),
        (with("whole", json!(1.5)), "`whole` is 1.5: expected a whole number"),
        (with("flags", json!([true, "x"])), "`flags[1]` is \"x\": expected true or false"),
        (with("nested", json!([{"name": "n"}, {"more": []}])), "`nested[1].name` is absent: expected a value"),
        (
            with("nested", json!([{"name": "n", "more": [null]}])),
            "`nested[0].more[0]` is null: expected a whole number",
        ),
        (with("other", json!(0)), "`other` is 0: expected no such column; JSON lines take it"),
    ];
    for (row, words) in cases {
        let (mut columns, _) = Columns::from_type(&ROW).expect("columns");
        assert_eq!(columns.push(&row).expect_err("a misfit").to_string(), words);
    }
    assert_eq!(through(std::slice::from_ref(&good)), [expected(&good)]);
}

prop_compose! {
    fn row()(
        text in any::<String>(),
        whole in proptest::option::of(any::<i64>()),
        flags in prop::collection::vec(any::<bool>(), 0..4),
        nested in proptest::option::of(prop::collection::vec((any::<String>(), proptest::option::of(prop::collection::vec(any::<i64>(), 0..3))), 0..3)),
        holes in prop::collection::vec(proptest::option::of(-1000..1000), 0..4),
    ) -> Value {
        let mut row = json!({"text": text, "flags": flags, "json": {"a": text}});
        row["holes"] = holes.into_iter().map(|hole| hole.map(|n| f64::from(n) / 4.0)).collect();
        if let Some(whole) = whole {
            row["whole"] = whole.into();
        }
        if let Some(nested) = nested {
            row["nested"] = nested.into_iter().map(|(name, more)| match more {
                Some(more) => json!({"name": name, "more": more}),
                None => json!({"name": name}),
            }).collect();
        }
        row
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn rows_come_back_from_parquet(rows in prop::collection::vec(row(), 1..12)) {
        let seen: Vec<Value> = rows.iter().map(expected).collect();
        prop_assert_eq!(through(&rows), seen);
    }
}
