//! Every writer is held to what it declares, and the schemas in the repository to what is declared.

use std::{fs, path::Path};

use serde_json::Value;

use crate::dataset::{
    Dataset, Writer,
    formats::{
        ALL, AnswerForm, DiskLayout, ExportOptions, Field, Type, export,
        formats_tests::unchecked,
        json_schema,
        testing::{clean, failure, planted_jointly, planted_twice},
    },
    samples,
};
use crate::{
    dataset::Sample,
    trajectory::{
        Need::{Necessary, NotNeeded, NotShown},
        Tally, Void,
    },
};

/// The first place where a value is not what a type says.
fn strays(of: &Type, value: &Value, place: &str) -> Option<String> {
    let wrong = |fits: bool| (!fits).then(|| format!("{place}: {value}"));
    match of {
        Type::Text => wrong(value.is_string()),
        Type::OneOf(words) => wrong(value.as_str().is_some_and(|word| words.contains(&word))),
        Type::Whole => wrong(value.is_i64() || value.is_u64()),
        Type::Number => wrong(value.is_number()),
        Type::Flag => wrong(value.is_boolean()),
        Type::Json => None,
        Type::Maybe(of) => (!value.is_null()).then(|| strays(of, value, place)).flatten(),
        Type::List(of) => match value.as_array() {
            Some(items) => items.iter().enumerate().find_map(|(at, item)| strays(of, item, &format!("{place}[{at}]"))),
            None => wrong(false),
        },
        Type::Map(of) => match value.as_object() {
            Some(fields) => fields.iter().find_map(|(name, value)| strays(of, value, &format!("{place}.{name}"))),
            None => wrong(false),
        },
        Type::Record(fields) | Type::Open(fields) => {
            let Some(found) = value.as_object() else { return wrong(false) };
            let known = |name: &String| fields.iter().any(|field| field.name() == name);
            if let Some(name) = found.keys().find(|name| matches!(of, Type::Record(_)) && !known(name)) {
                return Some(format!("{place}.{name} is not declared"));
            }
            let missing = |field: &&Field| field.is_needed() && !found.contains_key(field.name());
            if let Some(field) = fields.iter().find(missing) {
                return Some(format!("{place}.{} is missing", field.name()));
            }
            fields.iter().find_map(|field| {
                let value = found.get(field.name())?;
                strays(field.kind(), value, &format!("{place}.{}", field.name()))
            })
        }
    }
}

fn values(path: &Path, shape: DiskLayout) -> Vec<Value> {
    let read = |path: &Path| fs::read_to_string(path).expect("readable");
    match shape {
        DiskLayout::Lines => read(path).lines().map(|line| serde_json::from_str(line).expect("a row")).collect(),
        DiskLayout::Document { .. } => vec![serde_json::from_str(&read(path)).expect("a document")],
        DiskLayout::Files => {
            let files = fs::read_dir(path).expect("a directory").map(|entry| read(&entry.expect("an entry").path()));
            files.map(|text| serde_json::from_str(&text).expect("a file")).collect()
        }
        DiskLayout::Table | DiskLayout::Folder => Vec::new(),
    }
}

/// A label with all that evidence may say.
fn full() -> Sample {
    let mut sample = planted_twice("c", [NotNeeded, NotNeeded]);
    let evidence = sample.label.as_mut().expect("labelled").evidence.as_mut().expect("evidence");
    let executed = evidence.executed.as_mut().expect("executed");
    executed.control.void.insert(Void::TimedOut, 1);
    evidence.necessity[0].executed = samples::repeated();
    (evidence.controls, evidence.control, evidence.treated) =
        (Tally::new(1, 1), Some(Tally::new(1, 2)), Some(Tally::new(2, 2)));
    (evidence.needed, evidence.fork_step) = (vec![0], Some(1));
    sample
}

#[test]
fn every_writer_writes_what_it_declares() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut all = samples::set();
    all.extend([planted_twice("d", [Necessary, NotShown]), planted_jointly("e")]);
    all.extend([clean("a", 4), failure("a", 4), planted_twice("b", [NotNeeded, Necessary]), full()]);
    let mut writer = Writer::create(&dir.path().join("d")).expect("a writer");
    all.iter().for_each(|sample| writer.push(sample).expect("written"));
    writer.finish().expect("finished");
    let dataset = Dataset::open(&dir.path().join("d")).expect("a dataset");
    for answer in [AnswerForm::Text, AnswerForm::Call] {
        let options = ExportOptions { answer, ..unchecked() };
        for format in ALL {
            let out = dir.path().join(format.name());
            export(&dataset, *format, &out, &options).expect("exported");
            let found = values(&out, format.shape());
            assert!(
                !found.is_empty() || matches!(format.shape(), DiskLayout::Table | DiskLayout::Folder),
                "{}",
                format.name()
            );
            for value in found {
                assert_eq!(strays(&format.schema(), &value, format.name()), None);
                if matches!(format.shape(), DiskLayout::Lines) {
                    assert_eq!(strays(&format.columns(&options), &value, format.name()), None);
                }
            }
        }
    }
    for line in values(&dir.path().join("d/dataset.jsonl"), DiskLayout::Lines) {
        assert_eq!(strays(&super::super::own::SAMPLE, &line, "dataset"), None);
    }
}

#[test]
fn the_schemas_in_the_repository_are_these() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schemas");
    let names = ALL.iter().filter(|format| format.shape() != DiskLayout::Folder).map(|format| format.name());
    for name in names.chain(["dataset"]) {
        let current = json_schema(name).expect("a format");
        let written = fs::read(folder.join(format!("{name}.schema.json"))).unwrap_or_default();
        assert!(written == current, "write it anew: `aegis export --schema {name} > schemas/{name}.schema.json`");
    }
}
