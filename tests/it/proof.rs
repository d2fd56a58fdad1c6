//! Trace by real executions, on systems whose decisive steps are known: that what is executed is what the rules ask for, that
//! it finds them, what each order pays, and that nothing is said where the upstream fails. How often the rules err is proven
//! beside them, where an execution costs nothing (`crates/statistics/src/proof/decisive/tests.rs`). `scripts/measure-trace` prints both.

mod priors;
mod sources;
mod systems;
mod upstreams;
mod values;

use std::{sync::Arc, sync::atomic::AtomicU64};

use aegis::{
    attribution::{
        Corrections, Decisive, EndedExecution, LabelRule, Trace, TraceFinding, TraceJournal, TraceSettings, Watch,
        label_of, order_name,
    },
    budget::Budget,
    execution::{Execution, ExecutionArm, Executor, Judge, Meter, System, SystemUnderTest, TaskCheck},
    identity::Identity,
    plan,
    proof::{Order, Stands, Terms},
    proxy::{Gate, Limits, NamedServers, Proxy, RunTemplate, Runs, upstream::Upstream},
    recording::{Redactor, Settings},
    replay::Cassette,
    trajectory::{RunId, Trajectory, Verdict},
};

use self::systems::{Noisy, Topology, Weather};

const ORDERS: [Order; 3] = [Order::Scan, Order::Bisect, Order::BestFirst];

/// A system, the agents whose replies are made wrong when it is recorded, and those that a trace may name.
#[derive(Debug, Clone)]
struct Case {
    topology: Topology,
    wrong: Vec<&'static str>,
    decisive: Vec<&'static str>,
    /// Questions that the live model answers wrongly each time.
    never_right: &'static [&'static str],
    noise: f64,
    weather: Weather,
}

fn case(topology: Topology, wrong: &[&'static str], decisive: &[&'static str]) -> Case {
    let (wrong, decisive) = (wrong.to_vec(), decisive.to_vec());
    Case { topology, wrong, decisive, never_right: &[], noise: 0.0, weather: Weather::Fair }
}

/// The cases, one after the other as the seed goes on. Errors of chance are found with fresh draws, and by a twin.
fn case_of(seed: u64) -> Case {
    let stage = ["stage0", "stage1", "stage2", "stage3"][usize::try_from(seed / 6 % 4).expect("below 4")];
    match seed % 6 {
        0 => case(Topology::Chain(4), &[stage], &[stage]),
        // Two errors, the second on top of the first: only the first one's correction heals.
        1 => case(Topology::Chain(4), &["stage1", "stage3"], &["stage1"]),
        2 => case(Topology::Branches, &["left0"], &["left0"]),
        3 => case(Topology::Branches, &["joiner"], &["joiner"]),
        // Two of three vote wrong: the first alone is outvoted, the second decides.
        4 => case(Topology::Vote, &["ada", "blaise"], &["blaise"]),
        // At the same time, both are in the record whatever happens to the other: either correction heals.
        _ => case(Topology::ParallelVote, &["ada", "blaise"], &["ada", "blaise"]),
    }
}

/// A failed run of the case, its clean twin, and the system to trace it on.
struct Failed {
    dir: tempfile::TempDir,
    system: Arc<SystemUnderTest>,
    cassette: Arc<Cassette>,
    twin: Trajectory,
}

async fn failed(case: &Case, seed: u64) -> Failed {
    let (rate, never_right, weather, calls) = (case.noise, case.never_right, case.weather, AtomicU64::new(0));
    // Who observes is wrong whenever it speaks.
    let injection = |agent: &&str| {
        let when = if *agent == "observer" { "always = true" } else { "call = 0" };
        format!(
            "[[injection]]\nagent = [\"{agent}\"]\nfailure_mode = \"FM-2.6\"\nwhen.{when}\nmanipulator.corrupt_number = {{ which = \"last\", by = 10 }}\n"
        )
    };
    let upstreams = Upstreams {
        recorded: Arc::new(Noisy::quiet(seed)),
        traced: Arc::new(Noisy { rate, never_right, weather, calls, ..Noisy::quiet(seed) }),
    };
    let answer = case.topology.answer().to_string();
    failed_as(Arc::new(case.topology), upstreams, &answer, &case.wrong.iter().map(injection).collect::<String>()).await
}

/// Who answers while a failure is recorded, and who while it is traced.
struct Upstreams {
    recorded: Arc<dyn Upstream>,
    traced: Arc<dyn Upstream>,
}

/// A run of a system that is right, and one in which what `plan` plants makes it wrong.
async fn failed_as(system: Arc<dyn System>, upstreams: Upstreams, answer: &str, plan: &str) -> Failed {
    let dir = tempfile::tempdir().expect("a directory");
    let template = RunTemplate {
        log_dir: dir.path().to_owned(),
        recording: Settings::default(),
        plan: None,
        upstream: "simulator".to_owned(),
        base_url: None,
        config: None,
        equality: aegis::equality::EqualitySetting::default(),
    };
    let proxy = Arc::new(Proxy {
        identity: Identity::default(),
        upstream: upstreams.traced,
        runs: Arc::new(Runs::new(template)),
        default_run: None,
        routes: Vec::new(),
        servers: NamedServers::default(),
        gate: Gate::default(),
        limits: Limits::default(),
    });
    let executor = Executor::start(proxy, tokio::sync::watch::channel(None).1).await.expect("an executor");
    let checked = serde_json::json!({"verify": {"checks": [{"numeric": {}}]}, "question": "", "exit_codes": [0],
        "answer": answer});
    let check: TaskCheck = serde_json::from_value(checked).expect("a check");
    let judge = Judge::Checkers(Box::new(check), None);
    let system = Arc::new(SystemUnderTest::new(executor, system, judge));
    let quietly = async |run: &RunId, arm| {
        let execution = Execution::new(run, &*system.system, arm, &system.judge);
        let execution = Execution { live: Some(Arc::clone(&upstreams.recorded)), ..execution };
        system.executor.execute(execution).await.expect("executed")
    };
    let twin = RunId::parse("twin").expect("an id");
    let tried = quietly(&twin, ExecutionArm::default()).await;
    assert_eq!(tried.outcome.verdict, Verdict::Success, "{}", tried.outcome.evidence);
    let twin = aegis::recording::read(&tried.dir).expect("read").trajectory;
    let plan = Arc::new(plan::parse(plan, "p.toml").unwrap_or_else(|errors| panic!("{errors}")));
    let run = RunId::parse("failed").expect("an id");
    let arm = ExecutionArm { plan: Some(plan), ..ExecutionArm::default() };
    let tried = quietly(&run, arm).await;
    assert_eq!(tried.outcome.verdict, Verdict::Failure, "{}", tried.outcome.evidence);
    let cassette = Arc::new(Cassette::open(&tried.dir).expect("a cassette"));
    Failed { dir, system, cassette, twin }
}

impl Failed {
    fn by_twin(&self) -> Corrections {
        Corrections::from_twin(&self.cassette, &self.twin)
    }

    fn redrawn(&self) -> Corrections {
        Corrections::redrawn(&self.cassette.recording().trajectory)
    }

    /// A trace that no earlier one was begun for.
    fn journal(&self, salt: &str) -> TraceJournal {
        TraceJournal::open(self.dir.path(), salt, salt.to_owned(), Redactor::default()).expect("a journal")
    }

    async fn trace(&self, corrections: Corrections, settings: TraceSettings) -> TraceFinding {
        self.trace_within(Budget::default(), corrections, settings).await
    }

    async fn trace_within(&self, budget: Budget, corrections: Corrections, settings: TraceSettings) -> TraceFinding {
        let meter = Meter::within(budget, None);
        let journal = self.journal(&settings.salt);
        let (system, cassette) = (Arc::clone(&self.system), Arc::clone(&self.cassette));
        let trace = Trace::new(system, cassette, corrections, settings, meter, journal);
        trace.run(&Silent).await.expect("traced")
    }
}

fn settings(order: Order, salt: &str) -> TraceSettings {
    TraceSettings {
        terms: Terms::default(),
        order,
        earliest: true,
        last: true,
        coupled: false,
        runs: None,
        jobs: 1,
        agents: 0,
        salt: format!("proof {salt} {}", order_name(order)),
    }
}

struct Silent;

impl Watch for Silent {
    fn executed(&self, _: &EndedExecution<'_>) {}
}

fn place(decisive: Option<&Decisive>) -> Option<(&str, u32)> {
    decisive.map(|decisive| (decisive.agent.as_str(), decisive.step))
}

/// What one order came to over all cases.
#[derive(Default)]
struct Tally {
    cases: u32,
    found: u32,
    flips: u32,
    none: u32,
    wrong: u32,
    runs: u64,
    calls: u64,
    tokens: u64,
}

impl Tally {
    fn add(&mut self, case: &Case, finding: &TraceFinding) {
        self.cases += 1;
        let right = |decisive: &Decisive| case.decisive.contains(&decisive.agent.as_str());
        match &finding.earliest_flip {
            Some(decisive) if right(decisive) => self.found += 1,
            Some(_) => self.wrong += 1,
            None if finding.flips.is_empty() => self.none += 1,
            None => self.flips += 1,
        }
        self.runs += finding.spent.runs;
        self.calls += finding.spent.calls;
        self.tokens += finding.spent.live_tokens;
    }

    fn line(&self, words: &str) -> String {
        let each = |total: u64| total / u64::from(self.cases.max(1));
        let Tally { cases, found, flips, none, wrong, .. } = *self;
        format!(
            "{words}: earliest flip {found} of {cases}, flip only {flips}, not sure {none}, wrong {wrong}; a trace: {} \
             executions, {} calls, {} tokens live",
            each(self.runs),
            each(self.calls),
            each(self.tokens)
        )
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn trace_finds_the_decisive_step() {
    let asked = std::env::var("AEGIS_PROOF_SEEDS").ok().and_then(|seeds| seeds.parse().ok());
    let seeds = asked.unwrap_or(6);
    for noise in if asked.is_some() { &[0.0, 0.05][..] } else { &[0.0] } {
        for (source, order) in ["twin", "redraw"].iter().flat_map(|source| ORDERS.map(|order| (*source, order))) {
            let mut tally = Tally::default();
            // Without being asked, each order tries a part of the cases.
            let part = |seed: &u64| asked.is_some() || seed % 3 == order as u64;
            for seed in (0..seeds).filter(part) {
                let case = Case { noise: *noise, ..case_of(seed) };
                let failed = failed(&case, seed).await;
                let corrections = if source == "twin" { failed.by_twin() } else { failed.redrawn() };
                let settings = TraceSettings { last: false, ..settings(order, &format!("{seed} {source}")) };
                tally.add(&case, &failed.trace(corrections, settings).await);
            }
            let line = tally.line(&format!("noise {noise}, {source}, {}", order_name(order)));
            println!("{line}");
            assert_eq!(tally.wrong, 0, "{line}");
            assert!(*noise > 0.0 || tally.found == tally.cases, "{line}");
        }
    }
}

/// Five in a row, the third errs: by chance, and whenever it is asked. Each correction of what carries the error on heals too.
#[tokio::test(flavor = "multi_thread")]
async fn five_in_a_row() {
    for never_right in [&[][..], &["has 24 apples. He buys 3"]] {
        let case = Case { never_right, ..case(Topology::Row(5), &["a3"], &["a3"]) };
        let failed = failed(&case, 0).await;
        let corrections = failed.by_twin();
        assert_eq!(corrections.alike.iter().copied().collect::<Vec<_>>(), [0, 1]);
        for order in ORDERS {
            let finding =
                failed.trace(corrections.clone(), settings(order, &format!("row {}", never_right.len()))).await;
            assert_eq!(place(finding.earliest_flip.as_ref()), Some(("a3", 2)), "{:?}", finding.doubts);
            assert_eq!(place(finding.commitment.as_ref()), Some(("a5", 4)), "{:?}", finding.doubts);
            assert_eq!((finding.claims, finding.target.round()), (3, 100.0));
            let label = |rule| label_of(&finding, rule).expect("a label");
            for (rule, definition, at) in [
                (LabelRule::EarliestFlip, "earliest_flip", 2),
                (LabelRule::Commitment, "commitment", 4),
                (LabelRule::Flip, "flip", 2),
            ] {
                let label = label(rule);
                assert_eq!((label.definition.as_str(), label.errors[0].error.step), (definition, at));
                let executed =
                    label.evidence.clone().and_then(|evidence| evidence.executed).expect("what was executed");
                assert!(executed.e >= executed.target && executed.pairs >= 5, "{executed:?}");
            }
            println!("row of five, {}: {:?}", order_name(order), finding.spent);
        }
    }
    // Drawn anew, an error that the model makes again is not found, and the trace says why; one of chance is.
    let case = Case { never_right: &["has 24 apples. He buys 3"], ..case(Topology::Row(5), &["a3"], &["a3"]) };
    let again = failed(&case, 0).await;
    let finding = again.trace(again.redrawn(), settings(Order::Scan, "again")).await;
    assert!(finding.earliest_flip.is_none() && finding.flips.is_empty(), "{:?}", finding.flips);
    let why = finding.not_found.expect("a reason");
    assert!(why.contains("the model makes its error again"), "{why}");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_errors_that_heal_only_together_are_found_as_a_pair() {
    let never_right = &["has 12 apples. He buys 5", "has 12 apples. He buys 7"];
    let case = Case { never_right, ..case(Topology::Sum, &["first", "second"], &[]) };
    let failed = failed(&case, 0).await;
    let finding = failed.trace(failed.by_twin(), settings(Order::Scan, "apart")).await;
    assert!(finding.flips.is_empty() && finding.steps.iter().all(|step| step.stands == Stands::Excluded));
    assert!(finding.not_found.as_deref().is_some_and(|why| why.contains("--coupled")), "{:?}", finding.not_found);
    let together = TraceSettings { coupled: true, ..settings(Order::Scan, "together") };
    let finding = failed.trace(failed.by_twin(), together).await;
    let label = label_of(&finding, LabelRule::EarliestFlip).expect("a label");
    let steps: Vec<u32> = label.errors.iter().map(|entry| entry.error.step).collect();
    assert_eq!((label.definition.as_str(), steps.as_slice()), ("coupled", &[0, 1][..]));
}

/// The twin's critic approved as well, of something else: that says nothing of this approval.
#[tokio::test(flavor = "multi_thread")]
async fn an_approval_of_something_else_clears_nothing() {
    let case = case(Topology::Approval, &["solver"], &["solver"]);
    let failed = failed(&case, 0).await;
    let corrections = failed.by_twin();
    assert!(corrections.alike.is_empty(), "{corrections:?}");
    assert!(corrections.left_out[&1].contains("asked something else"), "{:?}", corrections.left_out);
    let finding = failed.trace(corrections.clone(), settings(Order::Scan, "approved")).await;
    assert_eq!(place(finding.earliest_flip.as_ref()), Some(("solver", 0)));
    assert!(finding.commitment.is_none() && finding.is_in_doubt(LabelRule::Commitment), "{:?}", finding.doubts);
    let redrawn = corrections.or_redrawn(&failed.cassette.recording().trajectory);
    let finding = failed.trace(redrawn, settings(Order::Scan, "redrawn")).await;
    assert_eq!(place(finding.commitment.as_ref()), Some(("solver", 0)), "no draw of the critic heals");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_budget_is_never_exceeded_and_what_it_cut_short_names_nothing() {
    let case = case(Topology::Row(5), &["a3"], &["a3"]);
    let failed = failed(&case, 0).await;
    for (calls, runs) in [(Some(3), None), (None, Some(4)), (None, Some(12))] {
        for order in ORDERS {
            let cut = TraceSettings { runs, ..settings(order, &format!("{calls:?} {runs:?}")) };
            let budget = Budget { calls, ..Budget::default() };
            let finding = failed.trace_within(budget, failed.by_twin(), cut).await;
            let spent = finding.spent;
            assert!(finding.out_of_budget, "{spent:?}");
            assert!(spent.calls <= calls.unwrap_or(u64::MAX) && spent.runs <= runs.unwrap_or(u64::MAX), "{spent:?}");
            // What is said all the same is true.
            assert!(finding.commitment.as_ref().is_none_or(|last| last.step == 4), "{finding:?}");
            assert!(finding.earliest_flip.as_ref().is_none_or(|first| first.step == 2), "{finding:?}");
        }
    }
}
