//! Openings that wait, fail and are left; runs that are displaced.

use std::{
    collections::HashSet,
    sync::{Condvar, PoisonError},
};

use hyper::Request;

use super::*;
use crate::{
    identity::{AttributedCall, CallRelation},
    proxy::upstream::{BackendAnswering, SentBody, Upstream, UpstreamError},
    recording::Settings,
    trajectory::{AgentName, Attribution, Source},
};

/// Which runs may be opened: the others wait for it, as they would for a slow disk.
#[derive(Debug, Default)]
struct Door {
    open: Mutex<bool>,
    opened: Condvar,
    /// How many wait, or have waited.
    came: AtomicU64,
    arrived: tokio::sync::Notify,
}

impl Door {
    fn open(&self) {
        *locked(&self.open) = true;
        self.opened.notify_all();
    }
}

/// An upstream that says its name, which a run writes down when it is opened, only once the door is open.
#[derive(Debug)]
struct BehindDoor(Arc<Door>);

impl Upstream for BehindDoor {
    fn name(&self) -> &'static str {
        self.0.came.fetch_add(1, Ordering::SeqCst);
        self.0.arrived.notify_one();
        let open = locked(&self.0.open);
        drop(self.0.opened.wait_while(open, |open| !*open).unwrap_or_else(PoisonError::into_inner));
        "slow"
    }

    fn send(&self, _: Request<SentBody>) -> BackendAnswering<'_> {
        Box::pin(async { Err(UpstreamError::Hushed) })
    }
}

fn runs() -> (Arc<Runs>, tempfile::TempDir) {
    let logs = tempfile::tempdir().expect("a directory");
    let template = RunTemplate {
        log_dir: logs.path().join("logs"),
        recording: Settings::default(),
        plan: None,
        upstream: "none".to_owned(),
        base_url: None,
        config: None,
        equality: Default::default(),
    };
    (Arc::new(Runs::new(template)), logs)
}

fn id(text: &str) -> RunId {
    RunId::parse(text).expect("an id")
}

fn solver() -> Attribution {
    Attribution {
        agent: AgentName::parse("solver").expect("a name"),
        instance: 0,
        source: Source::Path,
        evidence: String::new(),
        confidence: 1.0,
        ambiguous: false,
    }
}

/// The opening of a run that waits behind the door, in a task of its own.
fn opening(runs: &Arc<Runs>, name: &str, door: &Arc<Door>) -> tokio::task::JoinHandle<Result<Arc<Run>, ProxyError>> {
    let upstream: Arc<dyn Upstream> = Arc::new(BehindDoor(Arc::clone(door)));
    let (runs, id) = (Arc::clone(runs), id(name));
    tokio::spawn(async move { runs.open(&id, RunSetup { upstream: Some(upstream), ..RunSetup::default() }).await })
}

#[tokio::test]
async fn a_run_that_is_slow_to_open_keeps_no_other_waiting() {
    let (runs, _logs) = runs();
    let door = Arc::<Door>::default();
    let slow = opening(&runs, "slow", &door);
    door.arrived.notified().await;
    // On the only thread of this test: were anything held meanwhile, none of this would come to its end.
    runs.get(&id("quick")).await.expect("another run is opened");
    runs.get(&id("quick")).await.expect("and found");
    assert!(runs.find(&id("slow")).is_none() && !slow.is_finished());
    assert_eq!(runs.retire_idle(Duration::ZERO, None).len(), 1, "what is being opened is not idle");
    door.open();
    slow.await.expect("no panic").expect("it opens");
    assert!(runs.find(&id("slow")).is_some());
}

/// A request that has found a run names it only then: what happens in between must not end the run.
#[tokio::test]
async fn a_run_that_somebody_has_found_is_not_idle() {
    let (runs, _logs) = runs();
    let found = runs.get(&id("r")).await.expect("it opens");
    assert!(runs.retire_idle(Duration::ZERO, None).is_empty(), "its request may be about to name it");
    found.named();
    assert!(runs.close_idle(Duration::ZERO, None).is_empty(), "and to call");
    drop(found);
    assert!(runs.retire_idle(Duration::ZERO, None).is_empty(), "a named run is not ended");
    assert_eq!(runs.close_idle(Duration::ZERO, None).len(), 1);
}

#[tokio::test]
async fn first_calls_of_one_run_open_it_once_whoever_of_them_leaves() {
    let (runs, _logs) = runs();
    let door = Arc::<Door>::default();
    let first = opening(&runs, "r", &door);
    door.arrived.notified().await;
    let others = [opening(&runs, "r", &door), opening(&runs, "r", &door)];
    first.abort();
    assert!(first.await.is_err_and(|error| error.is_cancelled()));
    door.open();
    let [second, third] = others;
    let (second, third) = (second.await.expect("no panic"), third.await.expect("no panic"));
    assert!(Arc::ptr_eq(&second.expect("it opens"), &third.expect("it opens")));
    assert_eq!(door.came.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn an_opening_that_failed_is_tried_again_by_the_next_call() {
    let (runs, logs) = runs();
    std::fs::write(logs.path().join("logs"), "no directory").expect("written");
    for _ in 0..2 {
        assert!(matches!(runs.get(&id("r")).await, Err(ProxyError::Recording(_))));
        assert!(runs.read_places().is_empty(), "nothing is kept of it");
    }
    std::fs::remove_file(logs.path().join("logs")).expect("removed");
    runs.get(&id("r")).await.expect("it opens");
}

#[tokio::test]
async fn a_run_that_was_taken_out_is_sealed_for_whoever_asks() {
    let (runs, _logs) = runs();
    let run = runs.get(&id("r")).await.expect("it opens");
    runs.retire_run(&run.id).expect("under way");
    assert!(matches!(runs.get(&run.id).await, Err(ProxyError::Sealed(_))), "before");
    runs.seal(&run).expect("sealed");
    assert!(matches!(runs.get(&run.id).await, Err(ProxyError::Sealed(_))), "and after it is sealed");
    assert!(runs.read_places().is_empty());
}

#[tokio::test]
async fn displaced_runs_end_while_no_others_wait() {
    let (runs, _logs) = runs();
    let agent = solver();
    let (busy, quiet) = (runs.get(&id("busy")).await.expect("opens"), runs.get(&id("quiet")).await.expect("opens"));
    let asked = AttributedCall { attribution: agent.clone(), relation: CallRelation::First, number: 0 };
    busy.arrive(&asked, None);
    // As many as may be are being sealed, for ever: what is displaced waits, and whoever displaces it.
    let sealers = runs.sealers.acquire_many(16).await.expect("not closed");
    runs.retire_quiet(busy.id.clone());
    assert!(runs.find(&busy.id).is_some(), "an exchange is under way in it");
    let displacing = Arc::clone(&runs);
    let quiet_id = quiet.id.clone();
    let displacing = tokio::spawn(async move { displacing.displace(quiet_id).await });
    tokio::task::yield_now().await;
    assert!(!displacing.is_finished() && runs.find(&quiet.id).is_none());
    runs.get(&id("named")).await.expect("nobody else waits");
    // Whoever waited leaves: the run is sealed when the next one is opened, or at the end.
    displacing.abort();
    let _ = displacing.await;
    busy.depart(&agent);
    drop(sealers);
    runs.displace(id("gone")).await;
    runs.get(&id("next")).await.expect("opens");
    let mut ended = HashSet::new();
    let sealed = async {
        while ended.len() < 2 {
            tokio::task::yield_now().await;
            ended.extend(runs.take_ended().into_iter().map(|run| run.id.to_string()));
        }
    };
    tokio::time::timeout(Duration::from_secs(60), sealed).await.expect("sealed by who opens the next one");
    assert_eq!(ended, HashSet::from(["busy".to_owned(), "quiet".to_owned()]));
    assert!(runs.find(&busy.id).is_none(), "its exchange was over");
}

#[tokio::test]
async fn a_run_remembers_its_latest_answers_and_no_more() {
    let (runs, _logs) = runs();
    let run = runs.get(&id("r")).await.expect("it opens");
    let agent = solver().agent;
    let before = run.answers();
    for number in 0..1000 {
        run.remember_answer(&agent, number.to_string());
        let answers = run.answers();
        assert!(answers.len() <= 320, "{}", answers.len());
        let latest = (0..=number).rev().take(256).map(|number| number.to_string());
        assert!(latest.zip(answers.iter().rev()).all(|(expected, (_, text))| expected == *text), "{number}");
        assert!(answers.len() >= 256.min(number + 1), "{number}");
    }
    assert!(before.is_empty(), "an edit under way goes on with what it began with");
}
