//! Rows as columns: takes JSON values apart into the leaves of a declared type, with the levels by which Parquet knows
//! where lists begin and what is absent (Dremel's encoding, as the Parquet format describes it).

use std::sync::Arc;

use parquet::{
    basic::{LogicalType, Repetition, Type as Physical},
    data_type::ByteArray,
    errors::ParquetError,
    schema::types::{Type as Column, TypePtr},
};
use serde_json::Value;

use super::schema::{Field, Type};

/// A value that does not fit its column.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{place}` is {found}: expected {expected}")]
pub struct Misfit {
    /// Where in the row, for example `messages[0].content`.
    pub place: String,
    /// What is there.
    pub found: String,
    /// What the column holds.
    pub expected: &'static str,
}

/// The leaves of some rows.
#[derive(Debug)]
pub(super) struct Columns {
    fields: Vec<(&'static str, ShredNode)>,
    pub(super) leaves: Vec<Leaf>,
    /// About how much memory the rows take.
    pub(super) bytes: usize,
}

/// The values of one leaf, and the levels of all rows there.
#[derive(Debug)]
pub(super) struct Leaf {
    pub(super) values: LeafValues,
    pub(super) definitions: Vec<i16>,
    pub(super) repetitions: Vec<i16>,
    pub(super) deepest: i16,
    pub(super) repeated: i16,
}

/// Values of one kind.
#[derive(Debug)]
pub(super) enum LeafValues {
    /// Texts, and JSON as text.
    Text(Vec<ByteArray>),
    Json(Vec<ByteArray>),
    Whole(Vec<i64>),
    Number(Vec<f64>),
    Flag(Vec<bool>),
}

#[derive(Debug)]
struct ShredNode {
    optional: bool,
    kind: NodeKind,
}

#[derive(Debug)]
enum NodeKind {
    Leaf(usize),
    Record(Vec<(&'static str, ShredNode)>),
    /// The element, and how many lists there are down to this one.
    List(Box<ShredNode>, i16),
}

impl Columns {
    /// The columns of a type, and Parquet's schema of them.
    ///
    /// # Errors
    /// The type is no object, or Parquet knows no such column.
    pub(super) fn from_type(rows: &Type) -> Result<(Self, TypePtr), ParquetError> {
        let (Type::Record(fields) | Type::Open(fields)) = rows else {
            return Err(ParquetError::General("rows are objects".to_owned()));
        };
        let mut leaves = Vec::new();
        let built = fields.iter().map(|field| build_field(field, 0, 0, &mut leaves)).collect::<Result<Vec<_>, _>>()?;
        let (nodes, columns): (Vec<_>, Vec<_>) = built.into_iter().unzip();
        let schema = Column::group_type_builder("schema").with_fields(columns).build()?;
        Ok((Self { fields: nodes, leaves, bytes: 0 }, Arc::new(schema)))
    }

    /// Adds a row.
    ///
    /// # Errors
    /// [`Misfit`]; the columns are of no use after it.
    pub(super) fn push(&mut self, row: &Value) -> Result<(), Misfit> {
        // A row without a leaf of any weight is a row all the same.
        self.bytes += 1 + record(&self.fields, row, 0, 0, &mut self.leaves)?;
        Ok(())
    }

    /// Forgets the rows.
    pub(super) fn clear(&mut self) {
        self.bytes = 0;
        for leaf in &mut self.leaves {
            leaf.definitions.clear();
            leaf.repetitions.clear();
            match &mut leaf.values {
                LeafValues::Text(values) | LeafValues::Json(values) => values.clear(),
                LeafValues::Whole(values) => values.clear(),
                LeafValues::Number(values) => values.clear(),
                LeafValues::Flag(values) => values.clear(),
            }
        }
    }
}

fn build_field(
    field: &Field,
    definition: i16,
    repetition: i16,
    leaves: &mut Vec<Leaf>,
) -> Result<((&'static str, ShredNode), TypePtr), ParquetError> {
    let (node, column) = build(field.name(), field.kind(), !field.is_needed(), definition, repetition, leaves)?;
    Ok(((field.name(), node), column))
}

fn build(
    name: &'static str,
    of: &Type,
    optional: bool,
    definition: i16,
    repetition: i16,
    leaves: &mut Vec<Leaf>,
) -> Result<(ShredNode, TypePtr), ParquetError> {
    let presence = if optional { Repetition::OPTIONAL } else { Repetition::REQUIRED };
    let here = definition + i16::from(optional);
    let mut leaf = |values: LeafValues, physical, logical| -> Result<(NodeKind, Column), ParquetError> {
        leaves.push(Leaf {
            values,
            definitions: Vec::new(),
            repetitions: Vec::new(),
            deepest: here,
            repeated: repetition,
        });
        let column = Column::primitive_type_builder(name, physical).with_repetition(presence);
        Ok((NodeKind::Leaf(leaves.len() - 1), column.with_logical_type(logical).build()?))
    };
    let (kind, column) = match of {
        Type::Maybe(of) => return build(name, of, true, definition, repetition, leaves),
        Type::Text | Type::OneOf(_) => {
            leaf(LeafValues::Text(Vec::new()), Physical::BYTE_ARRAY, Some(LogicalType::String))
        }
        Type::Json | Type::Map(_) => leaf(LeafValues::Json(Vec::new()), Physical::BYTE_ARRAY, Some(LogicalType::Json)),
        Type::Whole => leaf(LeafValues::Whole(Vec::new()), Physical::INT64, None),
        Type::Number => leaf(LeafValues::Number(Vec::new()), Physical::DOUBLE, None),
        Type::Flag => leaf(LeafValues::Flag(Vec::new()), Physical::BOOLEAN, None),
        Type::Record(fields) | Type::Open(fields) => {
            let built = fields.iter().map(|field| build_field(field, here, repetition, leaves));
            let (nodes, columns): (Vec<_>, Vec<_>) = built.collect::<Result<Vec<_>, _>>()?.into_iter().unzip();
            let group = Column::group_type_builder(name).with_repetition(presence).with_fields(columns).build()?;
            Ok((NodeKind::Record(nodes), group))
        }
        Type::List(of) => {
            let (element, column) = build("element", of, false, here + 1, repetition + 1, leaves)?;
            let list = Column::group_type_builder("list").with_repetition(Repetition::REPEATED);
            let list = list.with_fields(vec![column]).build()?;
            let group = Column::group_type_builder(name)
                .with_repetition(presence)
                .with_logical_type(Some(LogicalType::List))
                .with_fields(vec![Arc::new(list)])
                .build()?;
            Ok((NodeKind::List(Box::new(element), repetition + 1), group))
        }
    }?;
    Ok((ShredNode { optional, kind }, Arc::new(column)))
}

/// Takes an object apart; gives about how many bytes went in.
fn record(
    fields: &[(&'static str, ShredNode)],
    value: &Value,
    definition: i16,
    repetition: i16,
    leaves: &mut [Leaf],
) -> Result<usize, Misfit> {
    let object = value.as_object().ok_or_else(|| misfit(value, "an object"))?;
    if let Some((name, found)) = object.iter().find(|(name, _)| fields.iter().all(|(own, _)| own != name)) {
        return Err(misfit_in(misfit(found, "no such column; JSON lines take it"), name));
    }
    let mut bytes = 0;
    for (name, node) in fields {
        bytes += shred_value(node, object.get(*name), definition, repetition, leaves)
            .map_err(|misfit| misfit_in(misfit, name))?;
    }
    Ok(bytes)
}

fn shred_value(
    node: &ShredNode,
    value: Option<&Value>,
    definition: i16,
    repetition: i16,
    leaves: &mut [Leaf],
) -> Result<usize, Misfit> {
    let Some(value) = value.filter(|value| !(node.optional && value.is_null())) else {
        if !node.optional {
            return Err(Misfit { place: String::new(), found: "absent".to_owned(), expected: "a value" });
        }
        nothing(node, definition, repetition, leaves);
        return Ok(0);
    };
    let definition = definition + i16::from(node.optional);
    match &node.kind {
        NodeKind::Leaf(at) => leaves.get_mut(*at).map_or(Ok(0), |leaf| leaf.push(value, definition, repetition)),
        NodeKind::Record(fields) => record(fields, value, definition, repetition, leaves),
        NodeKind::List(element, depth) => {
            let items = value.as_array().ok_or_else(|| misfit(value, "a list"))?;
            if items.is_empty() {
                nothing(element, definition, repetition, leaves);
            }
            let mut bytes = 0;
            for (number, item) in items.iter().enumerate() {
                let repetition = if number == 0 { repetition } else { *depth };
                let put = shred_value(element, Some(item), definition + 1, repetition, leaves);
                bytes += put.map_err(|misfit| misfit_in(misfit, &format!("[{number}]")))?;
            }
            Ok(bytes)
        }
    }
}

/// Notes at every leaf below that nothing is there from this level on.
fn nothing(node: &ShredNode, definition: i16, repetition: i16, leaves: &mut [Leaf]) {
    match &node.kind {
        NodeKind::Leaf(at) => {
            if let Some(leaf) = leaves.get_mut(*at) {
                leaf.definitions.push(definition);
                leaf.repetitions.push(repetition);
            }
        }
        NodeKind::Record(fields) => {
            for (_, node) in fields {
                nothing(node, definition, repetition, leaves);
            }
        }
        NodeKind::List(element, _) => nothing(element, definition, repetition, leaves),
    }
}

impl Leaf {
    fn push(&mut self, value: &Value, definition: i16, repetition: i16) -> Result<usize, Misfit> {
        let bytes = match &mut self.values {
            LeafValues::Text(values) => {
                let text = value.as_str().ok_or_else(|| misfit(value, "a text"))?;
                values.push(text.as_bytes().to_vec().into());
                text.len()
            }
            LeafValues::Json(values) => {
                let text = value.to_string();
                values.push(text.as_bytes().to_vec().into());
                text.len()
            }
            LeafValues::Whole(values) => {
                values.push(value.as_i64().ok_or_else(|| misfit(value, "a whole number"))?);
                size_of::<i64>()
            }
            LeafValues::Number(values) => {
                values.push(value.as_f64().ok_or_else(|| misfit(value, "a number"))?);
                size_of::<f64>()
            }
            LeafValues::Flag(values) => {
                values.push(value.as_bool().ok_or_else(|| misfit(value, "true or false"))?);
                size_of::<bool>()
            }
        };
        self.definitions.push(definition);
        self.repetitions.push(repetition);
        // The levels, and what a text costs beside its bytes.
        Ok(bytes + 2 * size_of::<i16>() + size_of::<ByteArray>())
    }
}

fn misfit(found: &Value, expected: &'static str) -> Misfit {
    let shown: String = found.to_string().chars().take(60).collect();
    Misfit { place: String::new(), found: shown, expected }
}

fn misfit_in(mut misfit: Misfit, name: &str) -> Misfit {
    let dot = if misfit.place.is_empty() || misfit.place.starts_with('[') { "" } else { "." };
    misfit.place = format!("{name}{dot}{}", misfit.place);
    misfit
}

#[cfg(test)]
#[path = "shred_tests.rs"]
mod tests;
