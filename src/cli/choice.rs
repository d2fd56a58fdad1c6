//! Options whose value is one of a list.

use clap::builder::{PossibleValuesParser, TypedValueParser};

/// Reads one of these values, by its name.
pub(super) fn one_of<T: Copy + Send + Sync + 'static>(
    all: &'static [T],
    name: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(all.iter().map(move |one| name(*one))).try_map(move |text| {
        all.iter().copied().find(|one| name(*one) == text).ok_or_else(|| format!("there is no `{text}`"))
    })
}
