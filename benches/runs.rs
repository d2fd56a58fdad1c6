//! What it costs to open, look up and seal many runs of one server at once.
//!
//!     cargo bench --bench runs
//!
//! A thousand runs are opened by tasks that start together, on as many threads as there are processors, while one more
//! thread looks a run up that is open already, 5,000 times a second, as each request of it does. Then every task looks up each of
//! the runs, and at last all are sealed at once. Time is wall time; each look has its own directory, on the disk of the
//! system's temporary files. Figures of two programs are compared side by side, in one sitting: the disk varies.
#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a measurement that cannot go on is to fail, and prints; the thread that sleeps is no worker"
)]

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use aegis::{
    proxy::{RunTemplate, Runs},
    recording::Settings,
    trajectory::RunId,
};
use tokio::{runtime::Runtime, sync::Barrier, task::JoinSet};

/// Runs that are opened at once.
const RUNS: usize = 1000;
/// Looks at all of it.
const LOOKS: usize = 5;
/// How often each task looks up every run.
const ROUNDS: usize = 5;

/// What one look at it took.
#[derive(Debug, Default)]
struct Look {
    opened: Duration,
    /// The longest that anybody waited for an open run while others were opened.
    longest_find: Duration,
    /// Lookups of open runs in that time.
    finds: u64,
    looked_up: Duration,
    sealed: Duration,
}

fn main() {
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let runtime = Runtime::new().expect("a runtime");
    let mut looks: Vec<Look> = (0..LOOKS).map(|_| look(&runtime)).collect();
    let finds: u64 = looks.iter().map(|look| look.finds).sum();
    let longest = looks.iter().map(|look| look.longest_find).max().unwrap_or_default();
    println!("{RUNS} runs at once, median of {LOOKS} looks:");
    println!("  opened                {:>9.1} ms", median(&mut looks, |look| look.opened));
    println!("  {} lookups      {:>9.1} ms", RUNS * RUNS * ROUNDS, median(&mut looks, |look| look.looked_up));
    println!("  sealed                {:>9.1} ms", median(&mut looks, |look| look.sealed));
    println!("  beside the openings   {finds} lookups, the longest {:.1} ms", millis(longest));
}

fn median(looks: &mut [Look], of: fn(&Look) -> Duration) -> f64 {
    looks.sort_by_key(of);
    looks.get(looks.len() / 2).map_or(0.0, |look| millis(of(look)))
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn look(runtime: &Runtime) -> Look {
    let logs = tempfile::tempdir().expect("a directory");
    let template = RunTemplate {
        log_dir: logs.path().to_owned(),
        recording: Settings::default(),
        plan: None,
        upstream: "none".to_owned(),
        base_url: None,
        config: None,
        equality: aegis::equality::EqualitySetting::default(),
    };
    let runs = Arc::new(Runs::new(template));
    runtime.block_on(async {
        let first = id(RUNS);
        runs.get(&first).await.expect("it opens");
        let seeker = Seeker::start(&runs, &first);
        let opened = at_once(&runs, |runs, id| async move { drop(runs.get(&id).await.expect("it opens")) }).await;
        let (finds, longest_find) = seeker.stop();
        let looked_up = at_once(&runs, |runs, _| async move { look_up_all(&runs) }).await;
        let sealed = at_once(&runs, |runs, id| async move {
            let run = runs.retire_run(&id).expect("it is open");
            let sealing = tokio::task::spawn_blocking(move || runs.seal(&run).map(drop));
            sealing.await.expect("no panic").expect("it is sealed");
        })
        .await;
        Look { opened, longest_find, finds, looked_up, sealed }
    })
}

fn id(number: usize) -> RunId {
    RunId::parse(&format!("run-{number}")).expect("an id")
}

fn look_up_all(runs: &Runs) {
    let ids: Vec<RunId> = (0..RUNS).map(id).collect();
    for _ in 0..ROUNDS {
        assert!(ids.iter().all(|id| runs.find(id).is_some()), "every run is open");
    }
}

/// Does this with every run at once; says how long it took until the last of them was done.
async fn at_once<F: Future<Output = ()> + Send + 'static>(
    runs: &Arc<Runs>,
    job: impl Fn(Arc<Runs>, RunId) -> F,
) -> Duration {
    let ready = Arc::new(Barrier::new(RUNS + 1));
    let mut jobs = JoinSet::new();
    for number in 0..RUNS {
        let (job, ready) = (job(Arc::clone(runs), id(number)), Arc::clone(&ready));
        jobs.spawn(async move {
            ready.wait().await;
            job.await;
        });
    }
    ready.wait().await;
    let began = Instant::now();
    while let Some(done) = jobs.join_next().await {
        done.expect("no panic");
    }
    began.elapsed()
}

/// Looks one run up until it is stopped, with pauses, so that it takes no processor from those who open runs.
struct Seeker {
    stops: Arc<AtomicBool>,
    thread: JoinHandle<(u64, Duration)>,
}

impl Seeker {
    fn start(runs: &Arc<Runs>, id: &RunId) -> Self {
        let (runs, id, stops) = (Arc::clone(runs), id.clone(), Arc::new(AtomicBool::new(false)));
        let stopped = Arc::clone(&stops);
        let thread = thread::spawn(move || {
            let (mut finds, mut longest) = (0, Duration::ZERO);
            while !stopped.load(Ordering::Relaxed) {
                let began = Instant::now();
                assert!(runs.find(&id).is_some(), "it is open");
                longest = longest.max(began.elapsed());
                finds += 1;
                thread::sleep(Duration::from_micros(200));
            }
            (finds, longest)
        });
        Self { stops, thread }
    }

    fn stop(self) -> (u64, Duration) {
        self.stops.store(true, Ordering::Relaxed);
        self.thread.join().expect("no panic")
    }
}
