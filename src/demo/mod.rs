//! The whole job in small: clean runs, injected runs, controls, labelled data, on the embedded simulator.
//!
//! Each cell (system × task × plan) is a child process that speaks plain HTTP to one proxy, under a run of its own.
//! A label is `verified` only if the clean run passed, altered bytes were delivered, the outcome flipped, and a control
//! with the same prefix and no injection passed again. Everything else is counted under its own name.

mod cell;
mod dataset;

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use serde::Deserialize;
use tokio::{net::TcpListener, sync::Semaphore, task::JoinSet};

use self::cell::{Cell, Conducted};
pub use self::dataset::Summary;
use crate::{
    identity::{Identity, Roster, RosterRule},
    launch::LaunchError,
    plan::{self, PlanError},
    proxy::{Limits, Proxy, ProxyError, RunTemplate, Runs, serve},
    recording::{RecordingError, Settings},
    simulator::Simulator,
    trajectory::{NoLabel, Verdict},
};

/// Tasks that each system is given.
const TASKS_PER_SYSTEM: usize = 6;
/// Longest run of one cell.
const CELL_LIMIT: Duration = Duration::from_secs(20);
/// Seed of the simulator.
const SEED: u64 = 7;

/// The example systems, their rosters and the plans that the demo tries on them.
const SYSTEMS: &[System] = &[
    System {
        name: "pipeline",
        config: include_str!("../../examples/pipeline/aegis.toml"),
        plans: &[
            ("corrupt-number", include_str!("../../plans/corrupt-number.toml")),
            ("corrupt-plan", include_str!("../../plans/corrupt-plan.toml")),
            ("confirm-wrong-result", include_str!("../../plans/confirm-wrong-result.toml")),
            ("end-early", include_str!("../../plans/end-early.toml")),
        ],
    },
    System {
        name: "debate",
        config: include_str!("../../examples/debate/aegis.toml"),
        plans: &[
            ("one-debater", include_str!("../../plans/corrupt-one-debater.toml")),
            ("two-debaters", include_str!("../../plans/corrupt-two-debaters.toml")),
        ],
    },
];

/// A system under test.
#[derive(Debug)]
struct System {
    name: &'static str,
    config: &'static str,
    plans: &'static [(&'static str, &'static str)],
}

/// A task with its answer.
#[derive(Debug, Clone, Deserialize)]
pub struct Task {
    /// Its id.
    pub id: String,
    /// What is asked.
    pub question: String,
    /// What is right.
    pub answer: String,
}

/// Why the demo could not be done.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    /// The directory cannot be used.
    #[error("cannot use the directory `{}`", dir.display())]
    Dir {
        /// The directory.
        dir: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The proxy cannot listen.
    #[error("cannot listen on a loopback port")]
    Listen(#[source] io::Error),
    /// A part that ships with this program is damaged.
    #[error("a shipped file is damaged: {0}")]
    Shipped(String),
    /// A shipped plan is damaged.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// A child process could not be run.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// A run could not be recorded.
    #[error(transparent)]
    Recording(#[from] RecordingError),
    /// A run could not be opened.
    #[error(transparent)]
    Proxy(#[from] ProxyError),
    /// A cell's task ended by a defect.
    #[error("a cell ended without a result")]
    Lost,
}

/// Hears how far the demo is.
pub trait Progress: Sync {
    /// A stage begins, with this many cells.
    fn stage(&self, name: &str, cells: usize);
    /// A cell is done.
    fn advance(&self);
    /// The stage is over; the line says what came of it.
    fn done(&self, line: &str);
}

/// Runs the demo in `dir`, with `program` (this one) as the child that plays the example systems.
///
/// # Errors
/// [`DemoError`]; what a cell comes to is no error.
pub async fn run(dir: &Path, program: &Path, progress: &dyn Progress) -> Result<Summary, DemoError> {
    let started = Instant::now();
    let in_dir = |source| DemoError::Dir { dir: dir.to_owned(), source };
    fs::create_dir_all(dir).map_err(in_dir)?;
    let logs = dir.join("logs");
    if logs.exists() {
        // Run ids hash the cell, so runs of an earlier demo would be in the way.
        fs::remove_dir_all(&logs).map_err(in_dir)?;
    }
    let tasks = tasks()?;
    let bench = Arc::new(Bench::start(&logs, program).await?);
    let mut summary = Summary::new(&bench.origin);

    let clean = bench.stage("clean", cells(&tasks, None)?, progress).await?;
    summary.clean(&clean);
    progress.done(&summary.clean_line());
    let passed: Vec<_> = clean.into_iter().filter(|run| run.verdict == Verdict::Success).collect();

    let cells = cells(&tasks, Some(&passed))?;
    let injected = bench.stage("inject", cells, progress).await?;
    let flipped: Vec<_> = injected.iter().filter(|run| run.is_flip()).map(|run| run.cell.control()).collect();
    summary.injected(&injected);
    progress.done(&summary.injected_line());

    let controls = bench.stage("verify", flipped, progress).await?;
    let controls: BTreeMap<_, _> = controls.into_iter().map(|run| (run.cell.controls.clone(), run)).collect();
    summary.verify(&injected, &controls)?;
    progress.done(&summary.verify_line());

    summary.write(dir, &passed, &injected, &controls, started.elapsed())?;
    progress.done(&summary.dataset_line(dir));
    bench.stop().await;
    Ok(summary)
}

fn tasks() -> Result<Vec<Task>, DemoError> {
    let lines = include_str!("../../examples/tasks.jsonl").lines().filter(|line| !line.trim().is_empty());
    let read = |line| serde_json::from_str(line).map_err(|error| DemoError::Shipped(format!("tasks.jsonl: {error}")));
    lines.take(TASKS_PER_SYSTEM).map(read).collect()
}

/// All cells: clean ones, or one for each plan and each task whose clean run passed.
fn cells(tasks: &[Task], passed: Option<&[Conducted]>) -> Result<Vec<Cell>, DemoError> {
    let mut cells = Vec::new();
    for system in SYSTEMS {
        for task in tasks {
            let clean = Cell::clean(system, task);
            let Some(passed) = passed else {
                cells.push(clean);
                continue;
            };
            if !passed.iter().any(|run| run.cell.run == clean.run) {
                continue;
            }
            for (name, text) in system.plans {
                let plan = plan::parse(text, &format!("{name}.toml"))?;
                cells.push(Cell::injected(&clean, name, Arc::new(plan)));
            }
        }
    }
    Ok(cells)
}

/// The proxy that all cells share, and the program that plays the systems.
struct Bench {
    proxies: BTreeMap<&'static str, (Arc<Proxy>, String)>,
    program: PathBuf,
    origin: String,
    stops: std::sync::Mutex<Vec<tokio::sync::oneshot::Sender<()>>>,
    places: Arc<Semaphore>,
}

impl Bench {
    /// One proxy a system: each has its own roster.
    async fn start(logs: &Path, program: &Path) -> Result<Self, DemoError> {
        let mut proxies = BTreeMap::new();
        let mut stops = Vec::new();
        for system in SYSTEMS {
            let template = RunTemplate {
                log_dir: logs.to_owned(),
                recording: Settings::default(),
                plan: None,
                upstream: "simulator".to_owned(),
            };
            let proxy = Arc::new(Proxy {
                identity: Identity { roster: roster(system)?, ..Identity::default() },
                upstream: Arc::new(Simulator::new(SEED)),
                runs: Runs::new(template),
                default_run: None,
                routes: Vec::new(),
                allowed_hosts: Vec::new(),
                limits: Limits::default(),
            });
            let listener = TcpListener::bind("127.0.0.1:0").await.map_err(DemoError::Listen)?;
            let origin = format!("http://{}", listener.local_addr().map_err(DemoError::Listen)?);
            let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
            tokio::spawn(serve(Arc::clone(&proxy), listener, async move {
                let _ = stopped.await;
            }));
            stops.push(stop);
            proxies.insert(system.name, (proxy, origin));
        }
        let places = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
        let origin = proxies.values().map(|(_, origin)| origin.as_str()).collect::<Vec<_>>().join(" ");
        let places = Arc::new(Semaphore::new(places));
        Ok(Self { proxies, program: program.to_owned(), origin, stops: stops.into(), places })
    }

    /// Runs cells side by side and returns them in their own order, whatever order they ended in.
    async fn stage(
        self: &Arc<Self>,
        name: &str,
        cells: Vec<Cell>,
        progress: &dyn Progress,
    ) -> Result<Vec<Conducted>, DemoError> {
        progress.stage(name, cells.len());
        let mut running = JoinSet::new();
        for (number, cell) in cells.into_iter().enumerate() {
            let bench = Arc::clone(self);
            running.spawn(async move {
                let _place = bench.places.acquire().await;
                (number, bench.conduct(cell).await)
            });
        }
        let mut done = BTreeMap::new();
        while let Some(ended) = running.join_next().await {
            let (number, conducted) = ended.map_err(|_| DemoError::Lost)?;
            done.insert(number, conducted?);
            progress.advance();
        }
        Ok(done.into_values().collect())
    }

    async fn conduct(&self, cell: Cell) -> Result<Conducted, DemoError> {
        let (proxy, origin) = self.proxies.get(cell.system).ok_or(DemoError::Lost)?;
        cell.conduct(proxy, origin, &self.program, CELL_LIMIT).await
    }

    async fn stop(&self) {
        self.stops.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clear();
        tokio::task::yield_now().await;
    }
}

fn roster(system: &System) -> Result<Roster, DemoError> {
    #[derive(Deserialize)]
    struct File {
        agent: Vec<RosterRule>,
    }
    let damaged = |error: String| DemoError::Shipped(format!("{}/aegis.toml: {error}", system.name));
    let file: File = toml::from_str(system.config).map_err(|error| damaged(error.to_string()))?;
    Roster::new(file.agent).map_err(|error| damaged(error.to_string()))
}

/// Why a run with a plan made no label, by name.
fn class_of(why: NoLabel) -> &'static str {
    match why {
        NoLabel::NotInjected => "not_injected",
        NoLabel::ManipulatorFailed => "manipulator_failed",
        NoLabel::AmbiguousAgent => "ambiguous_agent",
        NoLabel::InfraError => "infra_error",
    }
}
