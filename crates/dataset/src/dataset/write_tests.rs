//! A dataset is written whole, and the same each time.

use super::{
    tests::{failed, sample_facts},
    *,
};

#[test]
fn what_is_written_is_read_back_and_twice_the_same() {
    let logs = tempfile::tempdir().expect("a directory");
    let dir = tempfile::tempdir().expect("a directory");
    let build = |name: &str, kind| {
        Sample::from_recording(&failed(logs.path(), name), sample_facts(kind, None)).expect("builds")
    };
    let samples = [build("a", SampleKind::Clean), build("b", SampleKind::Failure), build("c", SampleKind::Benign)];
    let write = || {
        let mut writer = Writer::create(dir.path()).expect("creates");
        samples.iter().for_each(|sample| writer.push(sample).expect("writes"));
        let manifest = writer.finish().expect("finishes");
        (manifest, std::fs::read(dir.path().join(FILE)).expect("there"))
    };
    let (manifest, bytes) = write();
    assert_eq!(write(), (manifest.clone(), bytes.clone()));
    assert_eq!(manifest.files[FILE].blake3, blake3::hash(&bytes).to_hex().to_string());
    assert_eq!(
        (manifest.files[FILE].samples, manifest.kinds[&SampleKind::Benign], manifest.splits[&Split::Train]),
        (2, 1, 3)
    );

    let dataset = Dataset::open(dir.path()).expect("a dataset");
    let read: Vec<_> = dataset.samples().map(|placed| placed.expect("a sample").sample).collect();
    assert_eq!(read, samples);
    let index = dataset.index().expect("reads");
    for sample in &samples {
        assert_eq!(dataset.at(index.get(&sample.id).expect("known")).expect("reads"), *sample);
    }
    assert!(index.get("zzz").is_none());
    let left: Vec<_> = std::fs::read_dir(dir.path()).expect("lists").flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(left.len(), 3, "{left:?}");
}
