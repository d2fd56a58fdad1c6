//! What stands beside a reply: a finish reason, a status, counts of tokens that a foreign hand kept. Where it is another at
//! altered steps than at the twins', it tells them without a look at the reply.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::characters;
use crate::dataset::{
    Dataset, DatasetError, SampleStep,
    statistics::{TwinPair, area},
};

/// What a tracer reads anyway, and what numbers the steps.
const READ: &[&str] = &["step", "call", "turn", "agent", "raw_agent", "instance", "input", "output", "tools"];

/// Values by name, of altered replies and of the twins'.
#[derive(Default)]
pub(super) struct FeatureValues {
    rows: Vec<(BTreeMap<String, Value>, f64, bool)>,
}

impl FeatureValues {
    pub(super) fn add(&mut self, pair: &TwinPair<'_>, dataset: &Dataset) -> Result<(), DatasetError> {
        for (place, step, altered) in [(pair.place, pair.step, true), (pair.twin_place, pair.other, false)] {
            self.rows.push((values_beside_reply(&dataset.written_at(&place)?, step), characters(step), altered));
        }
        Ok(())
    }

    /// How well each name tells: the name, how, and the area under the curve.
    pub(super) fn areas(&self) -> impl Iterator<Item = (&String, &'static str, f64)> {
        let names: BTreeSet<&String> = self.rows.iter().flat_map(|(values, ..)| values.keys()).collect();
        names.into_iter().map(|name| {
            let (how, area) = self.best(name);
            (name, how, area)
        })
    }

    /// How well a name tells, by its value for the length of the reply, or by its most telling word; being there is one.
    fn best(&self, name: &str) -> (&'static str, f64) {
        let value = |row: &BTreeMap<String, Value>| row.get(name).cloned().unwrap_or_default();
        if self.rows.iter().any(|(row, ..)| value(row).is_number()) {
            let scored = self.rows.iter().map(|(row, length, altered)| {
                let for_length = value(row).as_f64().map_or(-1.0, |number| number / (length + 1.0));
                (for_length, *altered)
            });
            let area = area(scored.collect());
            return ("for the length of the reply ", area.max(1.0 - area));
        }
        let written = |row| value(row).to_string();
        let words: BTreeSet<String> = self.rows.iter().map(|(row, ..)| written(row)).collect();
        let areas = words.into_iter().map(|word| {
            let is = |row| if written(row) == word { 1.0 } else { 0.0 };
            let area = area(self.rows.iter().map(|(row, _, altered)| (is(row), *altered)).collect());
            area.max(1.0 - area)
        });
        ("", areas.fold(0.5, f64::max))
    }
}

/// The values beside a reply, by their path, as they are written.
fn values_beside_reply(line: &Value, step: &SampleStep) -> BTreeMap<String, Value> {
    let written = line.pointer(&format!("/steps/{}", step.step)).and_then(Value::as_object);
    let mut found = BTreeMap::new();
    for (name, value) in written.into_iter().flatten().filter(|(name, _)| !READ.contains(&name.as_str())) {
        leaves(name, value, &mut found);
    }
    found
}

fn leaves(path: &str, value: &Value, found: &mut BTreeMap<String, Value>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                leaves(&format!("{path}.{name}"), value, found);
            }
        }
        Value::Null | Value::Array(_) => {}
        leaf => drop(found.insert(path.to_owned(), leaf.clone())),
    }
}
