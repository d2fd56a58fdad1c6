//! What the page may ask for: one path, one answer. A name in a path is looked up in the list of what was found, never on
//! disk. Nothing is written but what an annotator says, and that into a file of its own.

use std::{
    collections::HashSet,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use bytes::Bytes;
use hyper::Method;
use serde_json::Value;

use super::{
    blind_listing, compare,
    data::{self, as_value},
    listing::{Listing, ListingCache, RunQuery, RunRow, report_of},
    looked::LookTimes,
    mode_form,
    no_answer::NoAnswer,
    opened::{OpenedRun, RecentRuns},
    page_data::{FoundRuns, FoundWords, PageAnnotations, RunTree, SuspectedRows, WrittenAnnotation},
    sample::{self, SamplePlaces},
    search::{self, FoundTexts, SearchLimit, decoded},
    skeleton,
    step::{self, StepBody},
    suspected::Suspected,
    traced::TRACE_FILE,
    view_routes::{VIEW_ROUTES, ViewAction, ViewRoute},
};
use crate::{
    recording::{self, Annotation, AnnotationError, GivenAnnotation, RunFile, annotator_named},
    replay::Comparison,
};

/// What lies below the directories that were named.
#[derive(Debug)]
pub struct ViewerLibrary {
    dirs: Vec<PathBuf>,
    listing: Mutex<Arc<Listing>>,
    cache: Mutex<ListingCache>,
    /// When it was looked last, and how long that took.
    looked: Mutex<LookTimes>,
    shelf: RecentRuns,
    sample_places: SamplePlaces,
    /// Who annotates: what is known about the runs is left out then.
    annotator: Option<String>,
    /// How their words on failure modes are written, where those are asked for instead of the step of the error.
    modes: Option<recording::Settings>,
    /// Whether a page as one file holds what annotators said.
    pub(super) passes_annotations: bool,
}

/// An answer.
#[derive(Debug, Clone, PartialEq)]
pub enum LibraryAnswer {
    /// Data.
    Json(Value),
    /// Data that is written already: JSON.
    Text(String),
    /// A body as it is stored, to be saved under this name.
    File(String, Bytes),
}

impl LibraryAnswer {
    /// The data of an answer; `None` of a file.
    pub fn data(self) -> Option<Value> {
        match self {
            LibraryAnswer::Json(value) => Some(value),
            LibraryAnswer::Text(text) => serde_json::from_str(&text).ok(),
            LibraryAnswer::File(..) => None,
        }
    }
}

type LibraryResult = Result<LibraryAnswer, NoAnswer>;

fn unknown(what: &str) -> NoAnswer {
    NoAnswer::Unknown(format!("there is no {what}"))
}

/// Rows of methods of attribution.
fn suspicions(said: Option<&Suspected>) -> LibraryResult {
    let said = said.ok_or_else(|| unknown("attribution of it"))?;
    Ok(LibraryAnswer::Json(as_value(&SuspectedRows { rows: said.rows() })))
}

fn unreadable(error: impl std::fmt::Display) -> NoAnswer {
    NoAnswer::Unreadable(error.to_string())
}

/// Runs that the page gets at once: of more it asks for those that it shows.
const LISTED: usize = 1000;
/// When a search in the texts of all runs is answered, complete or not: somebody waits for it.
const SEARCHED: SearchLimit = SearchLimit { runs: 200, time: Duration::from_secs(8) };

impl ViewerLibrary {
    /// The library of some directories.
    pub fn new(dirs: Vec<PathBuf>) -> Self {
        let began = Instant::now();
        let mut known = ListingCache::open(&dirs);
        let listing = Mutex::new(Arc::new(Listing::refreshed(&dirs, &mut known)));
        known.save();
        Self {
            looked: Mutex::new(LookTimes::since(began)),
            dirs,
            listing,
            cache: Mutex::new(known),
            shelf: RecentRuns::default(),
            sample_places: SamplePlaces::default(),
            annotator: None,
            modes: None,
            passes_annotations: false,
        }
    }

    /// The same for somebody who annotates the runs, blind: only what happened is shown.
    ///
    /// # Errors
    /// The name can be no file's.
    pub fn for_annotator(mut self, name: &str) -> Result<Self, AnnotationError> {
        self.annotator = Some(annotator_named(name)?);
        self.look();
        Ok(self)
    }

    /// The same for an annotator who says which failure modes planted changes show. They see those changes, and not what their plan
    /// calls them. `settings` says how facts are masked.
    #[must_use]
    pub fn asking_modes(self, settings: recording::Settings) -> Self {
        let library = Self { modes: Some(settings), ..self };
        library.look();
        library
    }

    /// The same for a page as one file that holds what annotators said, by their names.
    #[must_use]
    pub fn with_annotations(self) -> Self {
        Self { passes_annotations: true, ..self }
    }

    /// Who annotates.
    pub fn annotator(&self) -> Option<&str> {
        self.annotator.as_deref()
    }

    /// What was found when it was looked last.
    pub fn listing(&self) -> Arc<Listing> {
        Arc::clone(&self.listing.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Looks again.
    fn look(&self) -> Arc<Listing> {
        let mut known = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        let began = Instant::now();
        let found = Listing::refreshed(&self.dirs, &mut known);
        *self.looked.lock().unwrap_or_else(PoisonError::into_inner) = LookTimes::since(began);
        let found = Arc::new(if self.annotator.is_some() {
            blind_listing::listing(&found, self.modes.is_some())
        } else {
            found
        });
        *self.listing.lock().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&found);
        found
    }

    /// The list as it is, where it was looked a moment ago and looking takes long; else looks again.
    fn recent(&self) -> Arc<Listing> {
        let looked = *self.looked.lock().unwrap_or_else(PoisonError::into_inner);
        if looked.is_fresh() { self.listing() } else { self.look() }
    }

    /// The run of a name, which may be newer than the list.
    fn run(&self, key: &str) -> Result<RunRow, NoAnswer> {
        let known = self.listing().run(key).cloned();
        known.or_else(|| self.look().run(key).cloned()).ok_or_else(|| unknown("such run"))
    }

    /// The recording of a run, as it is now.
    ///
    /// # Errors
    /// There is no such run, or it cannot be read.
    pub fn open(&self, key: &str) -> Result<Arc<OpenedRun>, NoAnswer> {
        self.shelf.open(&self.run(key)?.dir, self.annotator.is_some()).map_err(unreadable)
    }

    /// Answers a path below `/api/`.
    ///
    /// # Errors
    /// Nothing has this name, or it cannot be read.
    pub fn answer(&self, path: &str) -> LibraryResult {
        let asked = format!("/api/{path}");
        let (action, names) =
            ViewRoute::matched(VIEW_ROUTES, &Method::GET, &asked).ok_or_else(|| unknown("such page"))?;
        self.answer_to(action, &names)
    }

    /// Answers what a path asks for, with what stands where the table has names.
    pub(super) fn answer_to(&self, action: ViewAction, names: &[&str]) -> LibraryResult {
        if self.annotator.is_some() && !action.is_blind() {
            return Err(unknown("such page for those who annotate: they see what happened, and nothing else"));
        }
        match (action, names) {
            (ViewAction::Tree, _) => Ok(LibraryAnswer::Json(self.tree())),
            (ViewAction::Runs, [asked]) => self.chosen(asked),
            (ViewAction::Run, [run]) => {
                let opened = self.open(run)?;
                let annotations = self.page_annotations(&opened);
                skeleton::run(&opened, &self.listing(), annotations).map(LibraryAnswer::Text).map_err(unreadable)
            }
            (ViewAction::Step, [run, number]) => {
                let opened = self.open(run)?;
                let found = opened.step(position(number)?).ok_or_else(|| unknown("such step"))?;
                Ok(LibraryAnswer::Json(data::step_of(&found, opened.origins(), true)))
            }
            (ViewAction::Texts, [run, number]) => {
                let opened = self.open(run)?;
                step::step(&opened, position(number)?).map(LibraryAnswer::Json).ok_or_else(|| unknown("such step"))
            }
            (ViewAction::Search, [run, words]) => {
                let words = decoded(words).filter(|words| !words.trim().is_empty());
                let words = words.ok_or_else(|| NoAnswer::Wrong("expected words to look for".to_owned()))?;
                let steps = search::search(&*self.open(run)?, &words);
                Ok(LibraryAnswer::Json(as_value(&FoundWords { words, steps })))
            }
            (ViewAction::Trace, [run]) => self.trace(run),
            (ViewAction::Attribution, [run]) => {
                suspicions(self.open(run)?.suspected(&self.listing().predictions).as_ref())
            }
            (ViewAction::RawBody | ViewAction::BodyFile, [run, number, rest @ ..]) => {
                self.body(action, run, number, rest)
            }
            (ViewAction::Diff, [a, b]) => self.diff(a, b),
            (ViewAction::Campaign, [campaign]) => {
                let listing = self.listing();
                let place = listing.campaign(campaign).ok_or_else(|| unknown("such campaign"))?;
                report_of(&place.dir).map(LibraryAnswer::Json).ok_or_else(|| unknown("report of it"))
            }
            (ViewAction::Dataset, [dataset]) => {
                let listing = self.listing();
                let place = listing.dataset(dataset).ok_or_else(|| unknown("such dataset"))?;
                sample::dataset(place, &listing).map(LibraryAnswer::Json).map_err(unreadable)
            }
            (_, [dataset, sample, rest @ ..]) => self.sample(action, dataset, sample, rest),
            _ => Err(unknown("such page")),
        }
    }

    /// Runs of a long list, as they are asked for.
    fn chosen(&self, asked: &str) -> LibraryResult {
        let wrong = |why: String| NoAnswer::Wrong(format!("expected what to look for: {why}"));
        let asked = decoded(asked).ok_or_else(|| wrong("it is no text".to_owned()))?;
        let query: RunQuery = serde_json::from_str(&asked).map_err(|error| wrong(error.to_string()))?;
        let listing = self.recent();
        if query.text.trim().is_empty() {
            let chosen = listing.chosen(&query, LISTED);
            let found = FoundRuns { rows: chosen.rows, total: chosen.total, texts: None };
            return Ok(LibraryAnswer::Json(as_value(&found)));
        }
        let chosen = listing.chosen(&query, usize::MAX);
        let texts = FoundTexts::search(&chosen.rows, query.text.trim(), SEARCHED, self.annotator.is_some());
        let keys: HashSet<&str> = texts.found.iter().map(|run| run.key.as_str()).collect();
        let rows: Vec<_> = chosen.rows.into_iter().filter(|row| keys.contains(row.key.as_str())).collect();
        Ok(LibraryAnswer::Json(as_value(&FoundRuns { total: rows.len(), rows, texts: Some(texts) })))
    }

    /// The list, of a long one its beginning; for an annotator with those of the runs that they have annotated.
    fn tree(&self) -> Value {
        let listing = self.recent();
        let shown = listing.runs.get(..LISTED).unwrap_or(&listing.runs);
        let annotated = self.annotator.as_ref().map(|name| {
            let own = |row: &&Arc<RunRow>| match &self.modes {
                Some(_) => mode_form::is_answered(&row.dir, name),
                None => recording::annotation_of(&row.dir, &row.run, name).is_ok_and(|own| own.is_some()),
            };
            shown.iter().filter(own).map(|row| row.key.as_str()).collect()
        });
        as_value(&RunTree {
            runs: shown,
            campaigns: &listing.campaigns,
            datasets: &listing.datasets,
            total: listing.runs.len(),
            trials: listing.runs.iter().filter(|row| row.trial_of.is_some()).count(),
            annotator: self.annotator.as_deref(),
            annotated,
        })
    }

    /// What people say of a run: all of it, or to an annotator their own words alone.
    fn page_annotations(&self, opened: &OpenedRun) -> PageAnnotations {
        let annotator = self.annotator.clone();
        let run = &opened.recording.manifest.run;
        let read = match (&annotator, &self.modes) {
            (Some(name), Some(_)) => recording::read(&opened.dir).map_err(|error| error.to_string()).map(|recording| {
                let mode_questions = Some(mode_form::questions(&recording, name));
                PageAnnotations { mode_questions, ..PageAnnotations::default() }
            }),
            (Some(name), None) => recording::annotation_of(&opened.dir, run.as_str(), name)
                .map_err(|error| error.to_string())
                .map(|annotation| PageAnnotations { annotation, ..PageAnnotations::default() }),
            (None, _) => recording::annotations(&opened.dir, run)
                .map_err(|error| error.to_string())
                .map(|all| PageAnnotations { annotations: Some(all), ..PageAnnotations::default() }),
        };
        let unreadable = |why| PageAnnotations { annotations_unreadable: Some(why), ..PageAnnotations::default() };
        PageAnnotations { annotator, ..read.unwrap_or_else(unreadable) }
    }

    /// Writes what the annotator says of a run: the step of the error that decided it, or none, and the reason; or which mode one of
    /// its planted changes shows.
    ///
    /// # Errors
    /// Nobody annotates here, there is no such run, step or change, or it is no reason.
    pub fn annotate(&self, run: &str, said: &[u8]) -> Result<Value, NoAnswer> {
        let name = self.annotator.as_deref().ok_or_else(|| unknown("annotator: start `aegis view --annotate NAME`"))?;
        match &self.modes {
            Some(settings) => {
                mode_form::answer(&self.run(run)?.dir, name, settings, said).map(|given| as_value(&given))
            }
            None => self.annotate_step(run, name, said).map(|given| as_value(&WrittenAnnotation::Step(given))),
        }
    }

    fn annotate_step(&self, run: &str, name: &str, said: &[u8]) -> Result<Annotation, NoAnswer> {
        let said: GivenAnnotation = serde_json::from_slice(said).map_err(|error| NoAnswer::Wrong(error.to_string()))?;
        let opened = self.open(run)?;
        let annotation = said.annotation(&opened.recording, name, true);
        let annotation = annotation.map_err(|error| NoAnswer::Wrong(error.to_string()))?;
        recording::annotate(&opened.dir, &annotation).map_err(unreadable)?;
        Ok(annotation)
    }

    fn trace(&self, run: &str) -> LibraryResult {
        let path = self.run(run)?.dir.join(TRACE_FILE);
        let text = RunFile::bytes(&path).map_err(|_| unknown("trace of it"))?;
        serde_json::from_slice(&text).map(LibraryAnswer::Json).map_err(unreadable)
    }

    fn body(&self, action: ViewAction, run: &str, number: &str, rest: &[&str]) -> LibraryResult {
        let body = match *rest {
            [which] => StepBody::parse(which, None),
            [which, attempt] => StepBody::parse(which, Some(attempt)),
            _ => None,
        };
        let found = self.open(run)?.step(position(number)?).ok_or_else(|| unknown("such step"))?;
        let bytes = body.and_then(|body| body.bytes(&found)).ok_or_else(|| unknown("such body"))?;
        if action == ViewAction::RawBody {
            return Ok(LibraryAnswer::Json(step::raw(&bytes)));
        }
        Ok(LibraryAnswer::File(format!("{run}-{number}-{}.txt", rest.join("-")), bytes))
    }

    fn diff(&self, a: &str, b: &str) -> LibraryResult {
        let read = |key| recording::read(&self.run(key)?.dir).map_err(unreadable);
        let (a, b) = (read(a)?, read(b)?);
        let comparison =
            Comparison::compare(&a.trajectory, &b.trajectory, &recording::rules_of_both(&a, &b).map_err(unreadable)?);
        Ok(LibraryAnswer::Json(compare::compared(&comparison, &a, &b)))
    }

    fn sample(&self, action: ViewAction, dataset: &str, number: &str, rest: &[&str]) -> LibraryResult {
        let listing = self.listing();
        let place = listing.dataset(dataset).ok_or_else(|| unknown("such dataset"))?;
        let at = position(number)? as usize;
        let found = self.sample_places.at(place, at).map_err(unreadable)?.ok_or_else(|| unknown("such sample"))?;
        let suspected = || Suspected::by_run(&listing.predictions).remove(&found.id);
        match (action, rest) {
            (ViewAction::Sample, []) => Ok(LibraryAnswer::Json(sample::run(&found, suspected().as_ref()))),
            (ViewAction::SampleAttribution, []) => suspicions(suspected().as_ref()),
            (ViewAction::SampleTexts, [step]) => {
                sample::step(&found, position(step)?).map(LibraryAnswer::Json).ok_or_else(|| unknown("such step"))
            }
            _ => Err(unknown("such page")),
        }
    }
}

fn position(text: &str) -> Result<u32, NoAnswer> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| digits).ok_or_else(|| unknown("such step"))
}
