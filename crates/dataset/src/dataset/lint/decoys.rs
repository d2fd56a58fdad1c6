//! Whether the decoys of a set say that its proof can be trusted, and whether the manifest counts them as they stand in their file.

use super::{Finding, Rule};
use crate::{
    dataset::{ALPHA, DECOYS_FILE, Dataset, DatasetError, DatasetManifest, DecoyCounts, FILE, MANIFEST_FILE},
    trajectory::{LabelStatus, Verdict},
};

pub(super) fn findings(dataset: &Dataset, manifest: &DatasetManifest) -> Result<Vec<Finding>, DatasetError> {
    let Some(dir) = dataset.files().first().filter(|file| file.ends_with(FILE)).and_then(|file| file.parent()) else {
        return Ok(Vec::new());
    };
    let finding = |rule, what| Finding { rule, file: dir.join(MANIFEST_FILE), line: 0, sample: String::new(), what };
    let mut findings = Vec::new();
    let stated = manifest.decoys.unwrap_or_default();
    let counted = counted(dir)?;
    let sums = |of: &DecoyCounts| (of.planted, of.verified);
    let alpha = manifest.claims.as_ref().map_or(ALPHA, |claims| claims.alpha);
    if counted.breaks(alpha) {
        let what = format!(
            "not trustworthy: {}, and the set promises {}",
            counted.in_words(),
            super::super::claims::percent(alpha)
        );
        findings.push(finding(Rule::DecoysVerified, what));
    }
    if sums(&stated) != sums(&counted) {
        let what = format!("its `decoys` say: {}; `{DECOYS_FILE}` says: {}", stated.in_words(), counted.in_words());
        findings.push(finding(Rule::ManifestDiffers, what));
    }
    Ok(findings)
}

/// What the rows of decoys say.
fn counted(dir: &std::path::Path) -> Result<DecoyCounts, DatasetError> {
    let path = dir.join(DECOYS_FILE);
    let (mut planted, mut flipped, mut verified) = (0, 0, 0);
    if path.is_file() {
        for placed in Dataset::open(&path)?.samples() {
            let sample = placed?.sample;
            planted += 1;
            flipped += u64::from(sample.outcome == Verdict::Failure);
            verified += u64::from(sample.label.is_some_and(|label| label.status == LabelStatus::Verified));
        }
    }
    Ok(DecoyCounts::new(planted, flipped, verified))
}
