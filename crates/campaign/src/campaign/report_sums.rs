//! The report as it grows, chain by chain.

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
};

use super::{
    catch_run::CatchRun,
    concluded::Concluded,
    definition::Campaign,
    ended::{Class, EndedCell},
    error::CampaignError,
    funnel::{ConcludedChain, InjectedRun, TaskState},
    impossible::ImpossibleSums,
    natural::NaturalRun,
    report::{CampaignReport, CellRow, Clean, Costs, Expense, Funnel, TaskRow},
    report_rows::RowsWriter,
    report_yields::YieldSums,
    skipped_edits::{self, SkippedEditCounts},
};
use crate::{
    budget::Cost,
    proof::{in_words, need_in_words},
    trajectory::{JointCause, Necessity, TAXONOMY, Tally},
};

/// What a report says beside what the chains came to.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReportContext<'a> {
    /// What answered the model calls.
    pub(super) backend: &'a str,
    /// When the work began.
    pub(super) began: std::time::Instant,
}

/// A report that is being made.
#[derive(Debug)]
pub(super) struct ReportSums {
    dir: PathBuf,
    funnel: Funnel,
    classes: BTreeMap<&'static str, usize>,
    yields: YieldSums,
    skipped_edits: SkippedEditCounts,
    impossible: ImpossibleSums,
    cells: RowsWriter<CellRow>,
    decoys: RowsWriter<CellRow>,
    naturals: RowsWriter<NaturalRun>,
    catches: RowsWriter<CatchRun>,
    tasks: RowsWriter<TaskRow>,
}

impl ReportSums {
    /// Begins a report in a directory.
    pub(super) fn begin(dir: &Path) -> Result<Self, CampaignError> {
        let cannot = |source| CampaignError::Directory { path: dir.to_owned(), source };
        Ok(Self {
            dir: dir.to_owned(),
            funnel: Funnel::default(),
            classes: BTreeMap::new(),
            yields: YieldSums::default(),
            skipped_edits: SkippedEditCounts::default(),
            impossible: ImpossibleSums::default(),
            cells: RowsWriter::begin(dir).map_err(cannot)?,
            decoys: RowsWriter::begin(dir).map_err(cannot)?,
            naturals: RowsWriter::begin(dir).map_err(cannot)?,
            catches: RowsWriter::begin(dir).map_err(cannot)?,
            tasks: RowsWriter::begin(dir).map_err(cannot)?,
        })
    }

    /// Adds a chain. `expected` is its task's answer, and so many claims were begun in those before it.
    pub(super) fn add(&mut self, chain: &ConcludedChain, expected: &str, claims: usize) -> Result<(), CampaignError> {
        self.skipped_edits.add(chain);
        let system = chain.tasks.first().map(|task| task.system.as_str()).unwrap_or_default();
        self.impossible.add(system, &chain.impossible);
        self.rows(chain, expected, claims)
            .map_err(|source| CampaignError::Directory { path: self.dir.clone(), source })?;
        for attempt in &chain.attempts {
            self.funnel.add(attempt);
            *self.classes.entry(class_name(attempt)).or_default() += 1;
            self.yields.add(attempt);
        }
        Ok(())
    }

    fn rows(&mut self, chain: &ConcludedChain, expected: &str, claims: usize) -> io::Result<()> {
        for attempt in &chain.attempts {
            self.cells.push(cell(attempt, expected, claims))?;
        }
        for decoy in &chain.decoys {
            // Their claims are counted with no others.
            self.decoys.push(CellRow { claim: None, ..cell(decoy, expected, claims) })?;
        }
        chain.naturals.iter().try_for_each(|run| self.naturals.push(run.clone()))?;
        chain.catches.iter().try_for_each(|run| self.catches.push(run.clone()))?;
        let odd =
            |task: &&TaskState| task.left_out.is_some() || !task.repeatable || task.chaotic || !task.learned.is_empty();
        chain.tasks.iter().filter(odd).try_for_each(|state| self.tasks.push(task(state)))
    }

    /// The report of what a campaign came to.
    pub(super) fn finish(
        self,
        campaign: &Campaign,
        concluded: &Concluded,
        told: ReportContext<'_>,
    ) -> Result<CampaignReport, CampaignError> {
        let cannot = |source| CampaignError::Directory { path: self.dir.clone(), source };
        Ok(CampaignReport {
            format: 2,
            campaign: campaign.name.clone(),
            backend: told.backend.to_owned(),
            seed: campaign.seed,
            taxonomy: TAXONOMY,
            complete: concluded.is_complete(),
            clean: Clean {
                tasks: concluded.tasks,
                kept: concluded.kept,
                runs: concluded.clean_runs,
                passed: concluded.clean_passed,
                chaotic: concluded.chaotic,
            },
            silent_runs: concluded.silent,
            older_controls: concluded.older,
            funnel: self.funnel,
            verified_failures: concluded.verified(),
            classes: self.classes,
            decoys: concluded.decoys_if_any(),
            modes: self.yields.modes(),
            systems: self.yields.systems(),
            agents: self.yields.agents(),
            culprits: self.yields.culprits(),
            positions: self.yields.positions(),
            impossible: self.impossible.rows(),
            design: self.yields.design(),
            strata: self.yields.strata(),
            rewriting: self.skipped_edits.rewriting,
            skipped_edits: self.skipped_edits.rows(),
            cost: costs(concluded, !campaign.prices.is_empty()),
            cells: self.cells.finish().map_err(cannot)?,
            decoy_cells: self.decoys.finish().map_err(cannot)?,
            natural: concluded.natural,
            natural_runs: self.naturals.finish().map_err(cannot)?,
            missed_catch: concluded.missed_catch,
            missed_catch_runs: self.catches.finish().map_err(cannot)?,
            tasks: self.tasks.finish().map_err(cannot)?,
            seconds: told.began.elapsed().as_secs_f64(),
        })
    }
}

impl Funnel {
    fn add(&mut self, attempt: &InjectedRun) {
        self.attempts += 1;
        self.delivered += usize::from(attempt.delivered);
        self.flipped += usize::from(attempt.flipped);
        self.verified += usize::from(attempt.class == Some(Class::Verified));
    }
}

impl Expense {
    #[expect(clippy::cast_precision_loss, reason = "shown to people, and divided; sums are kept whole")]
    fn divided(cost: &Cost, by: usize, priced: bool) -> Self {
        let by = by.max(1) as f64;
        Self {
            calls: cost.calls as f64 / by,
            input_tokens: cost.input as f64 / by,
            output_tokens: cost.output as f64 / by,
            money: priced.then(|| cost.money() / by),
        }
    }
}

fn class_name(attempt: &InjectedRun) -> &'static str {
    attempt.class.map_or("unfinished", Class::name)
}

#[expect(clippy::cast_precision_loss, reason = "a share that is shown to people")]
fn costs(concluded: &Concluded, priced: bool) -> Costs {
    let verified = concluded.verified();
    let (paid, saved) = (concluded.spent_by_cells.tokens(), concluded.prefix.tokens());
    Costs {
        spent: Expense::divided(&concluded.spent, 1, priced),
        by_cells: Expense::divided(&concluded.spent_by_cells, 1, priced),
        per_verified: (verified > 0).then(|| Expense::divided(&concluded.spent, verified, priced)),
        saved_by_prefix: Expense::divided(&concluded.prefix, 1, priced),
        saved_share: if saved == 0 { 0.0 } else { saved as f64 / (paid + saved) as f64 },
        salvaged_calls: concluded.salvaged,
        unreported: concluded.spent.unreported,
        lowest_jobs: concluded.lowest_jobs,
    }
}

fn cell(attempt: &InjectedRun, expected: &str, claims: usize) -> CellRow {
    let ended: Option<&EndedCell> = attempt.ended.as_ref();
    let proven = attempt.executed.as_ref().filter(|_| attempt.flipped);
    CellRow {
        system: attempt.system.clone(),
        task: attempt.task.clone(),
        plan: attempt.plan.clone(),
        aims: attempt.aims.clone(),
        position: attempt.position,
        run: attempt.run.clone(),
        class: class_name(attempt),
        expected: expected.to_owned(),
        answer: ended.map(|ended| ended.answer.clone()).unwrap_or_default(),
        evidence: ended.map(|ended| ended.outcome.evidence.clone()).unwrap_or_default(),
        claim: attempt.claim.map(|claim| claims + claim),
        proof: proven.map(|executed| in_words(executed, "without", "with")),
        executed: attempt.executed.clone(),
        needs: needs(&attempt.necessity),
        necessity: attempt.necessity.clone(),
        why: attempt.why.clone().or_else(|| ended?.diverged.clone()).or_else(|| skipped_edits::skip_reason(ended?)),
    }
}

/// What is shown of each of several errors, and what they are together.
fn needs(necessity: &[Necessity]) -> Vec<String> {
    let together = JointCause::from_necessities(necessity).and_then(JointCause::sentence);
    necessity.iter().map(need_in_words).chain(together.map(str::to_owned)).collect()
}

fn task(state: &TaskState) -> TaskRow {
    TaskRow {
        system: state.system.clone(),
        task: state.task.clone(),
        left_out: state.left_out,
        why: state.why.clone(),
        clean: Tally { passed: state.passed, of: state.runs },
        repeatable: state.repeatable,
        chaotic: state.chaotic,
        learned: state.learned.clone(),
    }
}
