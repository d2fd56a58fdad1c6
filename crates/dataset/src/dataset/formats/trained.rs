//! The runs that exported rows are of: who learnt from the rows has seen them.

use std::{collections::BTreeSet, io, path::Path};

use serde_json::Value;

use crate::dataset::values;

/// What formats call the field with a sample's id.
const ID: [&str; 2] = ["id", "original_id"];

/// The ids in a file of rows, JSON lines or Parquet, wherever a format has them.
///
/// # Errors
/// The system's.
pub fn row_ids(path: &Path) -> io::Result<BTreeSet<String>> {
    let mut ids = BTreeSet::new();
    values::read(path, "rows", &mut |row| {
        if let Ok(row) = row.value {
            gather(row, &mut ids);
        }
        true
    })?;
    Ok(ids)
}

/// Every text in a field of that name.
fn gather(row: Value, ids: &mut BTreeSet<String>) {
    match row {
        Value::Object(fields) => {
            for (name, value) in fields {
                match value {
                    Value::String(id) if ID.contains(&name.as_str()) => {
                        ids.insert(id);
                    }
                    other => gather(other, ids),
                }
            }
        }
        Value::Array(items) => items.into_iter().for_each(|item| gather(item, ids)),
        _ => {}
    }
}
