//! Writes a dataset in a foreign format: one sample at a time, in the dataset's order, nothing half-written, with a
//! manifest of counts and hashes beside it.

use std::{borrow::Cow, collections::BTreeMap, path::Path};

use super::{
    ALL, SelectedClaims,
    admit::{check_wanted, refuse},
    balance::{Balance, SURPLUS},
    card::Card,
    format::{DefinitionChoice, DiskLayout, ExportContext, ExportOptions, Format, Unfit},
    huggingface,
    manifest::ExportManifest,
    own::SAMPLE,
    pretty,
    refused::ExportError,
    sink::{MANIFEST, Sink, companion_path, is_parted, part_of, targets},
};
use crate::{
    dataset::{Dataset, Entry, FILE, Index, PlacedSample, Sample, SampleKind},
    recording::Masked,
    trajectory::nearest,
};

/// The name of our own samples among the schemas.
const OWN: &str = "dataset";

/// The format of a name.
///
/// # Errors
/// [`ExportError::UnknownFormat`].
pub fn format(name: &str) -> Result<&'static dyn Format, ExportError> {
    ALL.iter().copied().find(|format| format.name() == name).ok_or_else(|| ExportError::UnknownFormat {
        name: name.chars().take(80).collect(),
        known: ALL.iter().map(|format| format.name()).collect::<Vec<_>>().join(", "),
        nearest: nearest(name, ALL.iter().map(|format| format.name())),
    })
}

/// The format of a name, as one of a folder.
///
/// # Errors
/// [`ExportError::UnknownFormat`] and [`ExportError::NoRows`].
pub fn config(name: &str) -> Result<&'static dyn Format, ExportError> {
    let format = format(name)?;
    if format.shape() == DiskLayout::Lines {
        return Ok(format);
    }
    let known = ALL.iter().filter(|format| format.shape() == DiskLayout::Lines).map(|format| format.name());
    Err(ExportError::NoRows { name: format.name(), known: known.collect::<Vec<_>>().join(", ") })
}

/// The JSON Schema of a format's lines, files or document, or of our own samples (`dataset`), over several lines.
///
/// # Errors
/// [`ExportError::UnknownFormat`].
pub fn json_schema(name: &str) -> Result<Vec<u8>, ExportError> {
    let schema = if name == OWN {
        SAMPLE.json_schema(OWN, "a line of dataset.jsonl or benign.jsonl: one run with its ground truth")
    } else {
        let format = format(name)?;
        format.schema().json_schema(name, format.description())
    };
    Ok(pretty(&schema, b"  "))
}

/// Writes a dataset to `out`.
///
/// # Errors
/// [`ExportError`]; what lay at `out` before is untouched then.
pub fn export(
    dataset: &Dataset,
    format: &dyn Format,
    out: &Path,
    options: &ExportOptions,
) -> Result<ExportManifest, ExportError> {
    spare(dataset, format, out, options)?;
    refuse(dataset, options)?;
    let kept = SelectedClaims::select(dataset, options)?;
    let formats: Vec<&dyn Format> = std::iter::once(format)
        .chain(configs_of(format, options).iter().map(|&config| config as &dyn Format))
        .collect();
    let balance = Balance::choose(dataset, &formats, options, &kept)?;
    let mut sink = Sink::create(format, out, options, expected(dataset, format, options, &kept)?)?;
    let mut card = (format.shape() == DiskLayout::Folder).then(Card::default);
    let relations = Relations::find(dataset, format, options, &kept)?;
    let mut manifest = ExportManifest::new(format.name(), kept);
    for placed in dataset.numbered_samples() {
        let PlacedSample { sample, file, line, .. } = placed?;
        manifest.read += 1;
        let number = usize::try_from(manifest.written).unwrap_or(usize::MAX);
        let surplus = sample.kind == SampleKind::Clean && !balance.is_exported(format.name(), &sample.id);
        let pieces = match check_wanted(&sample, format, options, &manifest.claims) {
            Ok(()) if surplus => Err(SURPLUS),
            Ok(()) => {
                let context = relations.context(dataset, &sample, number, options, &balance)?;
                let pieces = format.pieces(&sample, &context);
                if format.shape() == DiskLayout::Folder {
                    for (format, why) in huggingface::left_out(&sample, &context) {
                        manifest.leave_out_of(format, why);
                    }
                }
                if pieces.is_ok() {
                    context.twin.iter().chain(&context.failures).for_each(|beside| manifest.name_not_whole(beside));
                }
                pieces
            }
            Err(why) => Err(why),
        };
        match pieces {
            Ok(pieces) => {
                manifest.wrote(&sample);
                if let Some(card) = &mut card {
                    card.add(&sample);
                }
                for mut piece in pieces {
                    if is_parted(format, options) {
                        piece.file = Cow::Borrowed(part_of(&sample));
                    }
                    manifest.count(&piece, options);
                    sink.push(piece).map_err(|refused| refused.read_from(dataset.files().get(file), line))?;
                }
            }
            Err(Unfit(why)) => *manifest.left_out.entry(why.to_owned()).or_default() += 1,
        }
    }
    if manifest.definitions.len() > 1 && options.definitions == DefinitionChoice::One {
        return Err(ExportError::SeveralKinds { counts: manifest.definitions });
    }
    if let Some(card) = card {
        let tables = sink.tables()?;
        let text = card.text(options, &manifest.claims, &tables, sink.hashes());
        sink.file("README.md", &Masked::new(text))?;
    }
    sink.finish(manifest)
}

/// Refuses to write over what the dataset is made of: its own files, whatever lies beside them and is no earlier export,
/// and the directories above them.
fn spare(dataset: &Dataset, format: &dyn Format, out: &Path, options: &ExportOptions) -> Result<(), ExportError> {
    let exported = companion_path(out, MANIFEST).is_file();
    let sources: Vec<_> = dataset.files().iter().filter_map(|file| file.canonicalize().ok()).collect();
    for path in targets(format, out, options) {
        let Ok(target) = path.canonicalize() else { continue };
        let own = sources.iter().any(|source| {
            let beside = source.ends_with(FILE) && source.parent() == target.parent();
            source.starts_with(&target) || (beside && !exported)
        });
        if own {
            return Err(ExportError::OwnSource { path });
        }
    }
    Ok(())
}

/// The formats within a format.
fn configs_of<'a>(format: &dyn Format, options: &'a ExportOptions) -> &'a [&'static dyn Format] {
    if format.shape() == DiskLayout::Folder { huggingface::configs(options) } else { &[] }
}

/// How many samples will be written, for a document that says so before it holds them; 0 for all others.
fn expected(
    dataset: &Dataset,
    format: &dyn Format,
    options: &ExportOptions,
    kept: &SelectedClaims,
) -> Result<u64, ExportError> {
    let mut count = 0;
    if matches!(format.shape(), DiskLayout::Document { open, .. } if open.contains("{samples}")) {
        for placed in dataset.samples() {
            count += u64::from(check_wanted(&placed?.sample, format, options, kept).is_ok());
        }
    }
    Ok(count)
}

/// Which samples belong together, by place; ids are held, samples are not.
#[derive(Debug, Default)]
struct Relations {
    index: Option<Index>,
    failures: Option<BTreeMap<String, Vec<Entry>>>,
}

impl Relations {
    fn find(
        dataset: &Dataset,
        format: &dyn Format,
        options: &ExportOptions,
        kept: &SelectedClaims,
    ) -> Result<Self, ExportError> {
        let index = format.wants_twin().then(|| dataset.index()).transpose()?;
        let mut failures = format.wants_failures().then(BTreeMap::<String, Vec<Entry>>::new);
        if let Some(failures) = &mut failures {
            for placed in dataset.samples() {
                let placed = placed?;
                if check_wanted(&placed.sample, format, options, kept).is_err() {
                    continue;
                }
                let entry =
                    Entry { file: placed.file, line: placed.line, offset: placed.offset, kind: placed.sample.kind };
                if let (SampleKind::Failure, Some(twin)) = (placed.sample.kind, placed.sample.clean_twin) {
                    failures.entry(twin).or_default().push(entry);
                }
            }
        }
        Ok(Self { index, failures })
    }

    fn context<'a>(
        &self,
        dataset: &Dataset,
        sample: &Sample,
        number: usize,
        options: &'a ExportOptions,
        balance: &'a Balance,
    ) -> Result<ExportContext<'a>, ExportError> {
        let at = |entry: &Entry| dataset.at(entry).map(Sample::with_numbered_agents);
        let twin = self.index.as_ref().zip(sample.clean_twin.as_ref()).and_then(|(index, twin)| index.get(twin));
        let twin = twin.map(at).transpose()?;
        let entries = self.failures.as_ref().and_then(|failures| failures.get(&sample.id)).map(Vec::as_slice);
        let failures = entries.unwrap_or_default().iter().map(at).collect::<Result<_, _>>()?;
        Ok(ExportContext { number, options, twin, failures, balance })
    }
}
