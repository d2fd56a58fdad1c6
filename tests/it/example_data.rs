//! The example data of a real small model: it is what its card says, and nothing is wrong with it.

use std::{collections::BTreeSet, fs, path::Path};

use aegis::{
    dataset::{Dataset, SampleKind, lint},
    trajectory::Side,
};

/// Most bytes of the folder.
const BYTES_MAX: u64 = 500_000;

#[test]
fn the_example_data_of_a_real_model_is_what_its_card_says() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/data/real-model");
    let card = fs::read_to_string(root.join("README.md")).expect("a card");
    let (mut modes, mut sides, mut bytes) = (BTreeSet::new(), Vec::new(), card.len() as u64);
    for system in ["handover", "pipeline", "debate"] {
        let dir = root.join(system);
        for entry in fs::read_dir(&dir).expect("a folder") {
            bytes += entry.expect("an entry").metadata().expect("a file").len();
        }
        let dataset = Dataset::open(&dir).expect("a dataset");
        let report = lint::lint(&dataset).expect("reads");
        assert!(report.is_clean(), "{system}: {:?}", report.findings);
        let count = |kind: SampleKind| {
            dataset.samples().filter(|placed| placed.as_ref().expect("reads").sample.kind == kind).count()
        };
        let benign = fs::read_to_string(dir.join("benign.jsonl")).map_or(0, |text| text.lines().count());
        let row = format!("| {} | {} | {benign} |", count(SampleKind::Failure), count(SampleKind::Clean));
        assert!(card.contains(&row) && count(SampleKind::Failure) > 0, "{system}: the card lacks `{row}`");
        for placed in dataset.samples() {
            let sample = placed.expect("reads").sample;
            assert!(sample.steps.iter().all(|step| step.model.as_deref() == Some("smollm2-135m-instruct")), "{system}");
            for error in
                sample.label.iter().filter(|_| sample.kind == SampleKind::Failure).flat_map(|label| &label.errors)
            {
                modes.insert(error.failure_mode.as_ref().expect("a mode").code.clone());
                sides.push(error.side);
            }
        }
    }
    assert!(modes.len() >= 4, "{modes:?}");
    for side in [Side::Request, Side::Response] {
        assert!(sides.contains(&Some(side)), "{side:?}");
    }
    assert!(bytes <= BYTES_MAX, "{bytes} bytes");
}
