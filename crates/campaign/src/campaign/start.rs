//! A campaign from its start to its data: chains are made, and what holds of all of them together is concluded.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Instant,
};

use super::{
    Progress,
    bench::{CampaignContext, CellBench, JudgeModel},
    catch_run::CatchFunnel,
    chain::SystemSilences,
    concluded::Concluded,
    definition::{Campaign, CampaignBudget},
    error::CampaignError,
    journal::Journal,
    natural::{FailureTracer, NaturalFunnel},
    prefix::{CampaignEquality, References},
    report::CampaignReport,
    report_sums::ReportContext,
    shard::{CampaignDigest, ShardPart},
    sitting::Sitting,
    state::{CampaignState, ExistingContent},
};
use crate::{
    budget::{Budget, Ledger},
    execution::{Executor, Stop},
    proxy::{Proxy, upstream::Upstream},
};

/// How a campaign is run.
#[derive(Debug)]
pub struct CampaignOptions {
    /// Where everything goes.
    pub out: PathBuf,
    /// What becomes of what lies there.
    pub earlier: ExistingContent,
    /// Chains at once, and cells at once in all of them together.
    pub jobs: usize,
    /// Only these tasks: `TASK`, or `SYSTEM/TASK`, with `*` for any text; all if none.
    pub only: Vec<regex::Regex>,
    /// What searches failures, where the campaign has such searched.
    pub tracer: Option<Arc<dyn FailureTracer>>,
    /// Where a model judge is asked; the first system's upstream if none.
    pub judge: Option<Arc<dyn Upstream>>,
    /// This program, for `{aegis}`.
    pub program: PathBuf,
    /// What paths of the campaign file are relative to.
    pub directory: PathBuf,
    /// The model that manipulators ask, if flags name one.
    pub rewriting: String,
    /// What may differ in requests that are still the same.
    pub equality: CampaignEquality,
    /// Set when the campaign is to stop.
    pub stop: Stop,
}

/// A data set or a report without a campaign's state beside it is somebody's: a campaign would write its own in their place.
fn spare_others(out: &Path) -> Result<(), CampaignError> {
    let holds = |names: &[&str]| names.iter().any(|name| out.join(name).exists());
    let is_campaign = holds(&["cells", "spent.jsonl", "report.json"]);
    let others = holds(&["dataset.jsonl", "dataset.json", "benign.jsonl", "decoys.jsonl", "report.html", "report.md"]);
    if others && !is_campaign { Err(CampaignError::NotOurs(out.to_owned())) } else { Ok(()) }
}

/// Refuses what [`run`] would refuse before its first run.
///
/// # Errors
/// As [`run`].
pub fn refuse_start(
    campaign: &Campaign,
    proxies: &[Proxy],
    out: &Path,
    earlier: ExistingContent,
) -> Result<(), CampaignError> {
    spare_others(out)?;
    if matches!(earlier, ExistingContent::Resume { .. }) {
        let state = CampaignState::open(out, earlier)?;
        if earlier.must_fit() {
            state.refuse_others(campaign, &campaign.chains(&[]), proxies)?;
        }
    }
    Ok(())
}

/// Runs a campaign. `proxies` are one a system, in order, and record under `out/logs`.
///
/// # Errors
/// [`CampaignError`]; what a cell comes to is no error.
pub async fn run(
    campaign: Arc<Campaign>,
    proxies: Vec<Proxy>,
    options: CampaignOptions,
    progress: &dyn Progress,
) -> Result<(Concluded, CampaignReport), CampaignError> {
    let began = Instant::now();
    let backend = backend(&proxies);
    spare_others(&options.out)?;
    let state = CampaignState::open(&options.out, options.earlier)?;
    if options.earlier.must_fit() {
        state.refuse_others(&campaign, &campaign.chains(&[]), &proxies)?;
    }
    let chains = campaign.chains(&options.only);
    let digest = CampaignDigest::compute(&campaign, &backend, &options.rewriting, &options.equality).hash();
    let bench = CellBench::served(&campaign, proxies, options, state, ShardPart::WHOLE, digest).await?;
    let mut heard = SystemSilences::default();
    bench
        .make_and_revoke(&chains, progress, |number, end| {
            chains.get(number).into_iter().for_each(|chain| heard.add(*chain, end.facts.silence.as_ref()));
            Ok(())
        })
        .await?;
    heard.refuse_silence(&campaign)?;
    let told = ReportContext { backend: &backend, began };
    let done = bench.write_all(&chains, bench.of_all(), told, progress)?;
    bench.write_page()?;
    Ok(done)
}

/// What answers the model calls, by name.
pub(super) fn backend(proxies: &[Proxy]) -> String {
    proxies.first().map(|proxy| proxy.upstream.name().to_owned()).unwrap_or_default()
}

impl Campaign {
    /// The account of a part of the campaign: all parts together have the whole budget, to the last call, token and millionth
    /// of a millionth. What the journal says was spent before is spent.
    fn ledger(&self, part: ShardPart, journal: Journal) -> Ledger {
        let CampaignBudget { calls, tokens, money: cost, .. } = self.budget;
        let ledger = Ledger::new(Budget { calls, tokens, cost }).shared(|whole| part.share(whole));
        ledger.journalled(journal.spent_before(), Box::new(journal))
    }
}

impl CellBench {
    /// A bench whose systems are served. A part of a campaign has its part of the budget.
    pub(super) async fn served(
        campaign: &Arc<Campaign>,
        proxies: Vec<Proxy>,
        options: CampaignOptions,
        state: CampaignState,
        part: ShardPart,
        digest: String,
    ) -> Result<Arc<Self>, CampaignError> {
        let context = CampaignContext::new(campaign, campaign.ledger(part, state.journal()?), options.jobs);
        let mut systems = Vec::new();
        for proxy in proxies {
            let executor = Executor::start(Arc::new(proxy), options.stop.clone()).await;
            systems.push(executor.map_err(|error| CampaignError::of_system("", error))?);
        }
        let judge = match systems.first().filter(|_| campaign.asks_a_judge()) {
            Some(first) => {
                let upstream = options.judge.unwrap_or_else(|| Arc::clone(&first.listening().proxy.upstream));
                Some(JudgeModel::at(upstream, &context, &state)?)
            }
            None => None,
        };
        let CampaignOptions { jobs, program, directory, equality, stop, tracer, .. } = options;
        let (references, revoked) = (References::new(equality), std::sync::Mutex::default());
        let sitting = Sitting::of_start(state.newest_sitting(), &digest);
        let (jobs, rereads) = (jobs.max(1), false);
        Ok(Arc::new(Self {
            context,
            systems,
            jobs,
            revoked,
            state,
            sitting,
            digest,
            rereads,
            references,
            tracer,
            judge,
            program,
            directory,
            stop,
        }))
    }

    /// A bench that looks at what was made before, and makes nothing: it has no upstream and no socket.
    pub(super) fn closed(
        campaign: &Arc<Campaign>,
        state: CampaignState,
        digest: String,
        jobs: usize,
        rereads: bool,
    ) -> Result<Arc<Self>, CampaignError> {
        let context = CampaignContext::new(campaign, campaign.ledger(ShardPart::WHOLE, state.journal()?), jobs);
        let sitting = Sitting::of_start(state.newest_sitting(), &digest);
        Ok(Arc::new(Self {
            context,
            systems: Vec::new(),
            jobs: jobs.max(1),
            revoked: std::sync::Mutex::default(),
            state,
            sitting,
            digest,
            rereads,
            references: References::default(),
            tracer: None,
            judge: None,
            program: PathBuf::new(),
            directory: PathBuf::new(),
            stop: tokio::sync::watch::channel(None).1,
        }))
    }

    /// What holds of all chains together: how the campaign ended, and the bill.
    pub(super) fn of_all(&self) -> Concluded {
        Concluded {
            revoked: self.revoked_names(&self.revoked()),
            spent: self.context.meter.spent(),
            exhausted: self.context.meter.is_exhausted(),
            stopped: self.stop.borrow().is_some(),
            lowest_jobs: self.context.gate.lowest(),
            // Where failures are searched, that there was none is said too.
            natural: self.context.campaign.natural.as_ref().map(|_| NaturalFunnel::default()),
            missed_catch: self.context.campaign.missed_catch.as_ref().map(|_| CatchFunnel::default()),
            ..Concluded::default()
        }
    }
}
