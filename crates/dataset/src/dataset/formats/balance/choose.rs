//! Which clean runs go out with the failures of a dataset.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::{
    super::{ExportError, ExportOptions, Format, SelectedClaims, Unfit, admit::check_wanted},
    Balance, CleanRows,
};
use crate::dataset::{Dataset, SampleKind, Split};

/// Why a clean run stays: there are enough.
pub(in super::super) const SURPLUS: Unfit =
    Unfit("a clean run beyond as many as there are failures (`--clean all` takes them)");

/// One part, while its clean runs are chosen.
#[derive(Default)]
struct SplitPart {
    failures: usize,
    twins: BTreeSet<String>,
    /// Clean runs in an order that no place, task or length decides.
    clean: BTreeMap<[u8; 32], String>,
}

impl Balance {
    /// Chooses for these formats; those that nobody is trained on, or that have no place for clean runs, are not looked at.
    pub(in super::super) fn choose(
        dataset: &Dataset,
        formats: &[&dyn Format],
        options: &ExportOptions,
        kept: &SelectedClaims,
    ) -> Result<Self, ExportError> {
        let formats: Vec<&dyn Format> =
            formats.iter().copied().filter(|format| format.trains() && format.takes_clean()).collect();
        let mut parts: BTreeMap<(&'static str, Option<Split>), SplitPart> = BTreeMap::new();
        if options.clean == CleanRows::All || formats.is_empty() {
            return Ok(Self::default());
        }
        for placed in dataset.samples() {
            let sample = placed?.sample;
            for format in &formats {
                if check_wanted(&sample, *format, options, kept).is_err() || format.fits(&sample).is_err() {
                    continue;
                }
                let part = parts.entry((format.name(), sample.split)).or_default();
                if sample.kind == SampleKind::Clean {
                    part.clean.insert(*blake3::hash(sample.id.as_bytes()).as_bytes(), sample.id.clone());
                } else {
                    part.failures += 1;
                    part.twins.extend(sample.clean_twin.clone());
                }
            }
        }
        let mut chosen: BTreeMap<&'static str, HashSet<String>> =
            formats.iter().map(|format| (format.name(), HashSet::new())).collect();
        for ((format, _), part) in parts {
            chosen.entry(format).or_default().extend(part.choose(options.clean));
        }
        Ok(Self { chosen })
    }
}

impl SplitPart {
    fn choose(self, clean: CleanRows) -> Vec<String> {
        let Self { failures, twins, clean: runs } = self;
        let (own, others): (Vec<String>, Vec<String>) = runs.into_values().partition(|id| twins.contains(id));
        match clean {
            CleanRows::None => Vec::new(),
            CleanRows::Twins => own,
            CleanRows::Balanced => own.into_iter().chain(others).take(failures).collect(),
            CleanRows::All => own.into_iter().chain(others).collect(),
        }
    }
}
