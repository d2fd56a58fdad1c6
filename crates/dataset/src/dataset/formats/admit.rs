//! What may be exported: what lint lets pass, the kinds of samples that were asked for, and the labels that are shown.

use std::collections::BTreeSet;

use super::{
    DefinitionChoice, ExportError, ExportOptions, Format, Lint, SelectedClaims, Unfit,
    selected_claims::{DECLARED, FORMER},
};
use crate::{
    dataset::{
        Dataset, Ground, LabelledError, Sample, SampleKind, Truth,
        lint::{self, Rule},
    },
    trajectory::{LabelStatus, PrincipalKind, StepIndex},
};

/// Asks lint. What was imported is as its source has it. A label that says itself that it is not proven is left out, and
/// refuses nothing, and neither does a shortcut.
///
/// # Errors
/// [`ExportError::Refused`] with the first finding.
pub(super) fn refuse(dataset: &Dataset, options: &ExportOptions) -> Result<(), ExportError> {
    let Lint::RefuseBut(allowed) = &options.lint else { return Ok(()) };
    let mut findings = lint::lint(dataset)?.findings;
    // A row whose agents repeat a planted order is left out by itself.
    let by_row = |rule| rule == Rule::LeakedInstruction;
    findings.retain(|finding| finding.rule.refuses() && !by_row(finding.rule) && !allowed.contains(&finding.rule));
    if !findings.is_empty() {
        let (mut foreign, mut honest, mut benign) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        for placed in dataset.samples() {
            let sample = placed?.sample;
            if sample.kind == SampleKind::Benign {
                benign.insert(sample.id.clone());
            }
            if is_imported(&sample) {
                foreign.insert(sample.id);
            } else if is_left_out(&sample, options) {
                honest.insert(sample.id);
            }
        }
        findings.retain(|finding| {
            let left_out = finding.rule.is_of_proof() && honest.contains(&finding.sample);
            // Two plans may do the same to a run that went well: it stays behind, whether it stands there once or twice.
            let again = finding.rule == Rule::DuplicateSample && benign.contains(&finding.sample);
            !left_out && !again && !foreign.contains(&finding.sample)
        });
    }
    let count = findings.len();
    findings.into_iter().next().map_or(Ok(()), |first| {
        let (rule, sample, what) = (first.rule.name(), first.sample, first.what);
        Err(ExportError::Refused { findings: count, rule, sample, what })
    })
}

/// Whether a failure is left out for where its label says that it stands.
fn is_left_out(sample: &Sample, options: &ExportOptions) -> bool {
    match sample.label.as_ref().map(Truth::ground) {
        Some(Ground::Unproven(LabelStatus::Delivered)) => !options.unverified,
        Some(Ground::Unproven(_)) => true,
        _ => false,
    }
}

/// Whether the sample came in from a foreign format.
fn is_imported(sample: &Sample) -> bool {
    sample.extra.contains_key("format")
}

/// Whether a sample is wanted. Imported labels are what their source says; ours are wanted shown.
pub(super) fn check_wanted(
    sample: &Sample,
    format: &dyn Format,
    options: &ExportOptions,
    kept: &SelectedClaims,
) -> Result<(), Unfit> {
    if options.split.is_some() && sample.split != options.split {
        return Err(Unfit("another part of the dataset"));
    }
    if options.recording {
        return Ok(());
    }
    if options.lint.refuses(Rule::LeakedInstruction) && !is_imported(sample) && sample.repeats_an_order() {
        return Err(Unfit("an agent repeats the order that was planted"));
    }
    match sample.kind {
        SampleKind::Benign => return Err(Unfit("an injection without harm")),
        SampleKind::Decoy => return Err(Unfit("a decoy")),
        SampleKind::Clean if !format.takes_clean() => return Err(Unfit("a clean run")),
        SampleKind::Clean | SampleKind::Failure => {}
    }
    if let (DefinitionChoice::Of(wanted), Some(truth)) = (&options.definitions, &sample.label)
        && !wanted.contains(&truth.definition)
    {
        return Err(Unfit("another kind of claim"));
    }
    let of_server = |error: &LabelledError| error.culprit != PrincipalKind::Agent;
    let only_received = |error: &LabelledError| of_server(error) && error.agent.is_agent();
    if sample.label.as_ref().is_some_and(|truth| truth.errors.iter().any(only_received)) {
        // The label names who got the result, and every format would blame that agent.
        return Err(Unfit("an altered result of a tool that is no step of the run: no agent erred"));
    }
    if !options.servers && sample.label.as_ref().is_some_and(|truth| truth.errors.iter().any(of_server)) {
        return Err(Unfit("an error of a tool or a peer, and of no agent (`--tools` takes it)"));
    }
    if sample.label.as_ref().is_some_and(Truth::names_nobody) {
        // Nobody named would say that nobody erred.
        return Err(Unfit("a failure of several errors, of none of which it is shown that it is needed"));
    }
    match sample.label.as_ref().map(Truth::ground) {
        Some(Ground::Unproven(status)) if status != LabelStatus::Withdrawn && is_imported(sample) => Ok(()),
        Some(_) if !options.former && sample.label.as_ref().is_some_and(Truth::shows_bytes_only) => Err(FORMER),
        Some(ground) => {
            kept.check_ground(ground, options)?;
            if format.names_modes() && !options.declared_modes && !sample.label.iter().all(Truth::has_usable_modes) {
                return Err(DECLARED);
            }
            sample
                .label
                .as_ref()
                .filter(|_| sample.kind == SampleKind::Failure)
                .map_or(Ok(()), |truth| kept.hides(truth))
        }
        // An answer of nobody would teach that nobody erred.
        None if sample.kind == SampleKind::Failure && format.trains() => Err(Unfit("a failure that nobody labelled")),
        None => Ok(()),
    }
}

/// The error of a failure, for formats that name one: where it took several, or any of several would have done, none of them
/// is the culprit, and where nothing is shown of one of them, another may not be the only one. Imported labels are as they are, of several errors the earliest.
///
/// # Errors
/// [`Unfit`] where it is not one.
pub(super) fn culprit(sample: &Sample) -> Result<&LabelledError, Unfit> {
    let truth = sample.label.as_ref().ok_or(Unfit("no labelled step"))?;
    if !is_imported(sample) {
        if truth.evidence.as_ref().is_some_and(|evidence| evidence.overdetermined) {
            return Err(Unfit("a failure that needs none of several errors by itself: the format names one"));
        }
        if truth.evidence.as_ref().is_some_and(|evidence| evidence.joint) {
            return Err(Unfit("a failure that several errors made together: the format names one"));
        }
        if truth.errors.len() > 1 {
            return Err(Unfit("a failure of several errors: the format names one"));
        }
        if !truth.not_shown.is_empty() {
            return Err(Unfit(
                "a failure of which another planted error is not shown to be needless: the format names one",
            ));
        }
    }
    let earliest = truth.errors.iter().min_by_key(|error| error.step.unwrap_or(StepIndex::MAX));
    earliest.ok_or(Unfit("no labelled step"))
}
