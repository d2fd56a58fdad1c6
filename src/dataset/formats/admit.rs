//! What may be exported: what lint lets pass, and the kinds of samples and labels that were asked for.

use std::collections::BTreeSet;

use super::{ExportError, Format, Lint, Options, Unfit};
use crate::{
    dataset::{Dataset, Kind, Sample, lint},
    trajectory::LabelStatus,
};

/// Asks lint.
///
/// # Errors
/// [`ExportError::Refused`] with the first finding.
pub(super) fn refuse(dataset: &Dataset, lint: &Lint) -> Result<(), ExportError> {
    let Lint::RefuseBut(allowed) = lint else { return Ok(()) };
    let mut findings = lint::lint(dataset)?.findings;
    findings.retain(|finding| !allowed.contains(&finding.rule));
    if !findings.is_empty() {
        let mut foreign = BTreeSet::new();
        for placed in dataset.samples() {
            let sample = placed?.sample;
            if sample.extra.contains_key("format") {
                foreign.insert(sample.id);
            }
        }
        findings.retain(|finding| !foreign.contains(&finding.sample));
    }
    let count = findings.len();
    findings.into_iter().next().map_or(Ok(()), |first| {
        let (rule, sample, what) = (first.rule.name(), first.sample, first.what);
        Err(ExportError::Refused { findings: count, rule, sample, what })
    })
}

/// Whether a sample is wanted. Imported labels are what their source says; ours are wanted proven.
pub(super) fn taken(sample: &Sample, format: &dyn Format, options: &Options) -> Result<(), Unfit> {
    if options.split.is_some() && sample.split != options.split {
        return Err(Unfit("another part of the dataset"));
    }
    match sample.kind {
        Kind::Benign => return Err(Unfit("an injection without harm")),
        Kind::Clean if !format.takes_clean() => return Err(Unfit("a clean run")),
        Kind::Clean | Kind::Failure => {}
    }
    let foreign = sample.extra.contains_key("format");
    match sample.label.as_ref().map(|truth| truth.status) {
        Some(LabelStatus::Withdrawn) => Err(Unfit("a withdrawn label")),
        Some(LabelStatus::Delivered) if !foreign && !options.unverified => Err(Unfit("a label that is not proven")),
        _ => Ok(()),
    }
}
