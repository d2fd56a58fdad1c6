//! The page and what it shows in one file that opens from disk.
//!
//! The answers that the server would give stand in it, packed in blocks that the page unpacks when it needs one: a run
//! of 10,000 steps opens as fast as its skeleton. The file holds no address but its own, and its policy names the one
//! script and the one style that may run by their hashes.

use std::{collections::BTreeSet, io::Write};

use base64::{Engine, engine::general_purpose::STANDARD};
use flate2::{Compression, write::ZlibEncoder};
use serde_json::{Map, Value, json};

use super::{
    library::ViewerLibrary,
    listing::Listing,
    page::{self, PAGE, STYLES},
    sample,
    step::StepBody,
    suspected::Suspected,
};
use crate::{dataset::Dataset, recording::Masked};

/// Steps of one block.
const STEPS: usize = 64;
/// The longest file that is written, in bytes: browsers read it whole.
const MOST: usize = 25 << 20;

/// A page in one file.
#[derive(Debug)]
pub struct Bundle {
    /// The file.
    pub html: Masked,
    /// Runs in it.
    pub runs: usize,
    /// Runs that were found and are not in it; the page says so.
    pub left_out: usize,
    /// What it holds of the runs and samples.
    pub extent: BundleExtent,
}

/// How much of runs and samples is in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BundleExtent {
    /// All.
    Whole,
    /// All but the bodies as they are stored.
    WithoutRaw,
    /// No steps: only what campaigns and datasets say of them.
    WithoutSteps,
}

/// Why there is none.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    /// Nothing was found.
    #[error("no run, campaign or dataset was found")]
    Nothing,
    /// It would be too long.
    #[error("the page would have {} MB, of at most {} MB", .0 >> 20, MOST >> 20)]
    TooLong(usize),
}

/// Packed answers.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    /// Base64 of zlib of a JSON object: answers by their paths.
    packed: Vec<Masked>,
    /// The block of a path.
    places: Map<String, Value>,
    /// How long the packed answers are, in bytes.
    pub(super) bytes: usize,
    /// The runs that they are of, by their keys.
    pub(super) runs: BTreeSet<String>,
}

impl Blocks {
    /// Packs answers as one block.
    pub(super) fn add(&mut self, answers: Map<String, Value>) {
        if answers.is_empty() {
            return;
        }
        for path in answers.keys() {
            self.places.insert(path.clone(), self.packed.len().into());
        }
        let packed = Masked::new(Value::Object(answers).to_string()).encoded(|text| {
            let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
            // Writing to memory cannot fail.
            STANDARD.encode(encoder.write_all(text).and_then(|()| encoder.finish()).unwrap_or_default()).into_bytes()
        });
        self.bytes += packed.len();
        self.packed.push(packed);
    }

    /// Adds blocks that were packed apart.
    pub(super) fn append(&mut self, other: Self) {
        let before = self.packed.len() as u64;
        let moved = |place: Value| place.as_u64().map_or(Value::Null, |number| (number + before).into());
        self.places.extend(other.places.into_iter().map(|(path, place)| (path, moved(place))));
        self.packed.extend(other.packed);
        self.runs.extend(other.runs);
        self.bytes += other.bytes;
    }

    /// The page with these blocks, opened at an address of it. `None` where it would be too long.
    pub(super) fn page(&self, listing: &Listing, start: &str, extent: BundleExtent) -> Option<Bundle> {
        if self.bytes > MOST {
            return None;
        }
        let mut shown =
            Listing { campaigns: listing.campaigns.clone(), datasets: listing.datasets.clone(), ..Listing::default() };
        shown.runs = listing.runs.iter().filter(|row| self.runs.contains(&row.key)).cloned().collect();
        let (runs, left_out) = (shown.runs.len(), listing.runs.len() - shown.runs.len());
        let html = written(&without_places(&shown, left_out), self, start);
        (html.len() <= MOST).then_some(Bundle { html, runs, left_out, extent })
    }
}

/// All of a library in one file; without bodies as they are stored where it would be too long with them.
///
/// # Errors
/// There is nothing, or it is too long.
pub fn bundle(library: &ViewerLibrary) -> Result<Bundle, BundleError> {
    opened_at(library, "", &[BundleExtent::Whole, BundleExtent::WithoutRaw])
}

/// The screen of a dataset, and all that it leads to as far as there is room.
///
/// # Errors
/// There is no dataset, or its counts alone are too long.
pub fn dataset_bundle(library: &ViewerLibrary) -> Result<Bundle, BundleError> {
    let listing = library.listing();
    let place = listing.datasets.first().ok_or(BundleError::Nothing)?;
    let start = format!("#/dataset/{}?view=counts", place.key);
    opened_at(library, &start, &[BundleExtent::Whole, BundleExtent::WithoutRaw, BundleExtent::WithoutSteps])
}

/// The first of some extents that is not too long, opened at an address of the page.
fn opened_at(library: &ViewerLibrary, start: &str, extents: &[BundleExtent]) -> Result<Bundle, BundleError> {
    let listing = library.listing();
    if listing.runs.is_empty() && listing.datasets.is_empty() && listing.campaigns.is_empty() {
        return Err(BundleError::Nothing);
    }
    let mut bytes = 0;
    for extent in extents {
        let blocks = gather(library, *extent);
        bytes = blocks.bytes;
        if let Some(page) = blocks.page(&listing, start, *extent) {
            return Ok(page);
        }
    }
    Err(BundleError::TooLong(bytes))
}

/// The list of what there is, without the places of this machine and the commands that were run on it.
fn without_places(listing: &Listing, left_out: usize) -> Value {
    let mut tree = json!(listing);
    if let Some(fields) = tree.as_object_mut() {
        fields.insert("left_out".to_owned(), left_out.into());
    }
    for kind in ["runs", "campaigns", "datasets"] {
        for row in tree.get_mut(kind).and_then(Value::as_array_mut).into_iter().flatten() {
            if let Some(dir) = row.get_mut("dir") {
                let name = dir.as_str().and_then(|dir| dir.rsplit('/').next()).unwrap_or_default().to_owned();
                *dir = name.into();
            }
            if let Some(program) = row.get_mut("program") {
                *program = Value::Null;
            }
        }
    }
    tree
}

fn gather(library: &ViewerLibrary, extent: BundleExtent) -> Blocks {
    let listing = library.listing();
    let mut blocks = Blocks::default();
    let suspected = Suspected::by_run(&listing.predictions);
    let steps = extent != BundleExtent::WithoutSteps;
    for row in listing.runs.iter().filter(|_| steps) {
        if blocks.bytes > MOST {
            break;
        }
        run(library, &row.key, extent == BundleExtent::Whole, &mut blocks);
    }
    let places = listing.campaigns.iter().map(|place| format!("campaign/{}", place.key));
    let datasets = listing.datasets.iter().map(|place| format!("dataset/{}", place.key));
    for path in places.chain(datasets) {
        let mut answered = answers(library, [path]);
        for place in answered.values_mut().filter_map(|answer| answer.get_mut("dir")) {
            *place = Value::Null;
        }
        blocks.add(answered);
    }
    for place in listing.datasets.iter().filter(|_| steps) {
        let Ok(dataset) = Dataset::open(&place.dir) else { continue };
        let samples = dataset.samples().filter_map(Result::ok).map(|placed| placed.sample);
        for (number, sample) in samples.enumerate() {
            if blocks.bytes > MOST {
                break;
            }
            let path = format!("sample/{}/{number}", place.key);
            let steps = 0..u32::try_from(sample.steps.len()).unwrap_or(u32::MAX);
            let texts = steps.filter_map(|step| Some((format!("{path}/texts/{step}"), sample::step(&sample, step)?)));
            let mut block: Map<String, Value> = texts.collect();
            block.extend(answers(library, [format!("{path}/attribution")]));
            block.insert(path, sample::run(&sample, suspected.get(&sample.id)));
            blocks.add(block);
        }
    }
    blocks
}

/// Packs a run: its rows, its trace, how it differs from its twin, each step; its bodies as they are stored if they are
/// wanted. Nothing where it cannot be read.
pub(super) fn run(library: &ViewerLibrary, key: &str, raw: bool, blocks: &mut Blocks) {
    let Ok(opened) = library.open(key) else { return };
    blocks.runs.insert(key.to_owned());
    let mut first =
        answers(library, [format!("run/{key}"), format!("run/{key}/trace"), format!("run/{key}/attribution")]);
    let twin = first.get(&format!("run/{key}")).and_then(|run| {
        let beside = |name| run.get(name)?.as_str().map(str::to_owned);
        beside("twin").or_else(|| beside("like"))
    });
    if let Some(run) = first.get_mut(&format!("run/{key}")).and_then(Value::as_object_mut) {
        // Where the run lies and how it was started is nobody's business but this machine's.
        run.insert("dir".to_owned(), Value::Null);
        run.insert("program".to_owned(), Value::Null);
        if let Some(head) = run.get_mut("head").and_then(Value::as_object_mut) {
            head.remove("can");
            head.get_mut("kept").and_then(Value::as_object_mut).and_then(|kept| kept.remove("by"));
        }
        // Nor who said what of it, unless that is wanted: the file may be passed to people who are yet to say, blind, what
        // they think.
        if !library.passes_annotations {
            run.remove("annotations");
        }
        run.remove("annotations_unreadable");
    }
    first.extend(answers(library, twin.map(|twin| format!("diff/{twin}/{key}"))));
    blocks.add(first);
    for steps in opened.steps().chunks(STEPS) {
        let mut paths: Vec<String> = Vec::new();
        for step in steps {
            paths.push(format!("run/{key}/texts/{}", step.step));
            if raw {
                let attempts = step
                    .attempts
                    .iter()
                    .flat_map(|attempt| [StepBody::Reply(attempt.attempt), StepBody::Delivered(attempt.attempt)]);
                let bodies = [StepBody::Request, StepBody::Sent].into_iter().chain(attempts);
                paths.extend(bodies.map(|body| format!("run/{key}/raw/{}/{}", step.step, body.path())));
            }
        }
        blocks.add(answers(library, paths));
    }
}

/// The answers to some paths, those that have one.
pub(super) fn answers(library: &ViewerLibrary, paths: impl IntoIterator<Item = String>) -> Map<String, Value> {
    let answered = paths.into_iter().filter_map(|path| {
        let data = library.answer(&path).ok()?.data()?;
        Some((path, data))
    });
    answered.collect()
}

fn written(tree: &Value, blocks: &Blocks, start: &str) -> Masked {
    let script = page::script();
    let style: String = STYLES.iter().map(|style| style.text).collect();
    let policy = format!(
        "default-src 'none'; script-src '{}'; style-src '{}'; img-src data:; base-uri 'none'; form-action 'none'; \
         require-trusted-types-for 'script'; trusted-types 'none'",
        hash(&script),
        hash(&style)
    );
    let head = format!("<meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n<style>{style}</style>");
    let index = json!({"tree": tree, "start": start, "blocks": blocks.places});
    let end = Masked::fixed(b"</script>\n");
    let mut data = Masked::fixed(b"<script type=\"application/json\" id=\"bundle\">");
    data.push(&Masked::new(inert(&index.to_string())));
    data.push(&end);
    for (number, block) in blocks.packed.iter().enumerate() {
        data.push(&Masked::own_code(format!("<script type=\"text/plain\" id=\"block-{number}\">")));
        data.push(block);
        data.push(&end);
    }
    data.push(&Masked::own_code(format!("<script>{script}</script>")));
    let mut html = Masked::default();
    let mut rest = PAGE.text;
    for (from, to, instead) in
        [("<!--style-->", "<!--/style-->", Masked::own_code(head)), ("<!--script-->", "<!--/script-->", data)]
    {
        let Some((before, behind)) = rest.split_once(from) else { continue };
        html.push(&Masked::fixed(before.as_bytes()));
        html.push(&instead);
        rest = behind.split_once(to).map_or("", |(_, rest)| rest);
    }
    html.push(&Masked::fixed(rest.as_bytes()));
    html
}

/// JSON that can end no element and no line.
fn inert(json: &str) -> String {
    json.replace('<', "\\u003c").replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029")
}

/// A script or style as a policy names it.
fn hash(text: &str) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
    format!("sha256-{}", STANDARD.encode(digest))
}
