//! A campaign file's text, and the files that it names, into a [`Campaign`]. Every problem is collected, each with its
//! place, before any call is paid for.

use std::path::Path;

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::{
    definition::{Campaign, CampaignBudget, CampaignSystem, FailureSearch, Files, Fixed, ModelPrice},
    file::{BudgetEntry, CampaignFile, CorrectionSource, PlanEntry, PriceEntry, ProofEntry, SearchEntry, SystemEntry},
    read_named::{at_least_one, indices, read_file, read_plan, stem, unknown},
    read_sample,
    read_system::{sentences, system},
};
use crate::{
    dataset::{self, DatasetError, Splits, Task},
    execution::LONGEST_ANSWER,
    plan::{PlanError, Problem, Read, read_entry, syntax_problem, take_entries},
    proof::Terms,
    trajectory::Pattern,
    verify::Verify,
};

/// Decoys for each injected run, where the file does not say how many. A system that is said not to react to neutral changes is
/// proven by one in each arm, and gets none.
const DECOYS: f64 = 0.1;
/// The share of runs without an error that may fail, where the file does not say it.
const CHAOTIC: f64 = 1.0 / 3.0;

/// Most executions of a failure that is searched, where the file does not say it.
const SEARCH_RUNS: u32 = 100;

/// The newest format that this build reads.
const FORMAT: i64 = 1;

/// Reads a campaign. `name` is what messages call the file; the files that it names come from `files`.
///
/// # Errors
/// [`PlanError`] with every problem of the file and of the plans that it names.
pub fn parse(text: &str, name: &str, files: &dyn Files) -> Result<Campaign, PlanError> {
    let mut problems = Vec::new();
    let campaign = document(text, &mut problems).and_then(|document| {
        let campaign = document.check(name, files, &mut problems);
        campaign.filter(|_| problems.is_empty())
    });
    campaign.ok_or_else(|| PlanError::new(name, text, problems))
}

/// A campaign file read as far as its types go.
struct CampaignDocument {
    head: CampaignFile,
    present: Vec<String>,
    systems: Vec<Read<SystemEntry>>,
    plans: Vec<Read<PlanEntry>>,
    prices: Vec<Read<PriceEntry>>,
}

fn document(text: &str, problems: &mut Vec<Problem>) -> Option<CampaignDocument> {
    let root = DeTable::parse(text).map_err(|error| problems.push(syntax_problem(&error))).ok()?;
    let mut root = root.into_inner();
    if let Some((key, _)) = root.remove_entry("controls") {
        let message = "`[controls]` is no more: how often runs are repeated depends on what came of them";
        let hint = "take it out; `[proof]` says what a label must reach, `proof.repeatable = true` that a system repeats itself";
        problems.push(Problem::new(key.span(), message).hint(hint));
    }
    let systems = take_entries(&mut root, "system", problems);
    let plans = take_entries(&mut root, "plan", problems);
    let prices = take_entries(&mut root, "price", problems);
    let head = read_entry::<CampaignFile>(Spanned::new(0..0, DeValue::Table(root)), problems)?;
    let present = head.present.clone();
    Some(CampaignDocument {
        head: head.value,
        present,
        systems: systems.into_iter().filter_map(|entry| read_entry(entry, problems)).collect(),
        plans: plans.into_iter().filter_map(|entry| read_entry(entry, problems)).collect(),
        prices: prices.into_iter().filter_map(|entry| read_entry(entry, problems)).collect(),
    })
}

impl CampaignDocument {
    fn check(self, file: &str, files: &dyn Files, problems: &mut Vec<Problem>) -> Option<Campaign> {
        let Self { head, present, systems, plans, prices } = self;
        if let Some(format) = head.format.as_ref().filter(|format| *format.get_ref() != FORMAT) {
            let message = format!("campaign format {} is not one that this build reads", format.get_ref());
            problems.push(Problem::new(format.span(), message).hint(format!("this build reads format {FORMAT}")));
            return None;
        }
        let has = |key: &str| present.iter().any(|present| present == key);
        let missing = |key: &str, is_there: bool, hint: &str| {
            let problem = Problem::new(0..0, format!("the campaign has no `{key}`"));
            (!is_there).then(|| problem.hint(hint))
        };
        problems.extend(missing("[tasks]", has("tasks"), "name the tasks: `tasks.file = \"tasks.jsonl\"`"));
        problems.extend(missing("[[system]]", !systems.is_empty(), "name the program: `[[system]]` with `command`"));
        let planned = !plans.is_empty() || has("sample") || has("natural");
        problems.extend(missing("[[plan]]` or `[sample]", planned, "say what is to be planted"));
        let tasks = head.tasks.as_ref().and_then(|entry| tasks(entry, files, problems));
        let verify = verify(head.verify.as_ref(), tasks.as_deref(), problems);
        let systems = named(systems.iter().filter_map(|entry| system(entry, files, problems)).collect(), problems);
        let sentences = systems.iter().map(|system| sentences(system, problems)).collect::<Option<Vec<_>>>();
        let names: Vec<String> = systems.iter().map(|system| system.name.clone()).collect();
        let plans = once(&plans, |entry, problems| fixed(entry, &names, files, problems), problems);
        let sample = head.sample.as_ref().and_then(|entry| read_sample::check(entry, &names, files, problems));
        let clean = head.clean.as_ref();
        let entry = head.proof.as_ref();
        let (proof, repeats_itself) = proof(entry, problems);
        let repeated = if repeats_itself { 0.0 } else { DECOYS };
        let decoys = share(entry, "decoys", |entry| entry.decoys, repeated, problems);
        let chaotic = share(entry, "chaotic", |entry| entry.chaotic, CHAOTIC, problems);
        let prices: Vec<ModelPrice> = prices.iter().filter_map(|entry| price(entry, problems)).collect();
        let stem = Path::new(file).file_stem().and_then(|stem| stem.to_str()).unwrap_or("campaign");
        Some(Campaign {
            name: head.name.map_or_else(|| stem.to_owned(), Spanned::into_inner),
            seed: head.seed.unwrap_or_default(),
            upstream: head.upstream,
            tasks: tasks?,
            systems,
            verify: verify?,
            judge: head.judge,
            clean: at_least_one(clean.and_then(|entry| entry.repeats.as_ref()), 2, "repeats", problems),
            repeatable: clean.and_then(|entry| entry.repeatable).unwrap_or_default(),
            proof,
            repeats_itself,
            decoys,
            chaotic,
            sentences: sentences?,
            plans,
            sample,
            natural: head.natural.as_ref().and_then(|entry| search(entry, problems)),
            missed_catch: head.missed_catch.as_ref().and_then(|entry| search(entry, problems)),
            budget: budget(head.budget.as_ref(), !prices.is_empty(), problems),
            prices,
            splits: splits(head.dataset.and_then(|entry| entry.splits), problems),
        })
    }
}

/// On what terms claims count as shown, and whether the systems are said to repeat themselves.
fn proof(entry: Option<&Spanned<ProofEntry>>, problems: &mut Vec<Problem>) -> (Terms, bool) {
    let terms = Terms::default();
    let Some(entry) = entry else { return (terms, false) };
    let ProofEntry { repeatable, alpha, expected_yield, pairs, .. } = entry.get_ref();
    let named = Terms {
        alpha: alpha.unwrap_or(terms.alpha),
        expected_yield: expected_yield.unwrap_or(terms.expected_yield),
        pairs: pairs.unwrap_or(terms.pairs),
        ..terms
    };
    let checked = named.checked().map_err(|bad| problems.push(Problem::new(entry.span(), bad.to_string())));
    (checked.unwrap_or(terms), repeatable.unwrap_or_default())
}

/// How failures are searched.
fn search(entry: &Spanned<SearchEntry>, problems: &mut Vec<Problem>) -> Option<FailureSearch> {
    let SearchEntry { corrections, analyzer, model, key_env, runs } = entry.get_ref();
    let runs = at_least_one(runs.as_ref(), SEARCH_RUNS, "runs", problems);
    let of_analyzer = [analyzer, model, key_env];
    match (corrections, analyzer) {
        (CorrectionSource::Analyzer, None) => {
            let problem = Problem::new(entry.span(), "`corrections = \"analyzer\"` names no `analyzer`");
            problems.push(problem.hint("say where it is asked: `analyzer = \"https://…/v1\"`, and its `model`"));
            return None;
        }
        (CorrectionSource::Analyzer, Some(_)) => {}
        _ => {
            for key in of_analyzer.into_iter().flatten() {
                let message = "this is an option of the analyzer, and `corrections` names another source";
                problems
                    .push(Problem::new(key.span(), message).hint("take it out, or write `corrections = \"analyzer\"`"));
            }
        }
    }
    let [analyzer, model, key_env] = of_analyzer.map(|key| key.as_ref().map(|key| key.get_ref().clone()));
    Some(FailureSearch { corrections: *corrections, analyzer, model, key_env, runs })
}

/// A share that the proof's table may name.
fn share(
    entry: Option<&Spanned<ProofEntry>>,
    name: &str,
    named: impl Fn(&ProofEntry) -> Option<f64>,
    otherwise: f64,
    problems: &mut Vec<Problem>,
) -> f64 {
    let Some((entry, share)) = entry.and_then(|entry| Some((entry, named(entry.get_ref())?))) else { return otherwise };
    if !(0.0..1.0).contains(&share) {
        problems.push(Problem::new(entry.span(), format!("`{name}` is {share}: expected a number from 0 to below 1")));
    }
    share
}

fn tasks(
    entry: &Spanned<super::file::TasksEntry>,
    files: &dyn Files,
    problems: &mut Vec<Problem>,
) -> Option<Vec<Task>> {
    let entry = entry.get_ref();
    let (named, span) = (entry.file.get_ref(), entry.file.span());
    let mut tasks: Vec<Task> = Vec::new();
    let mut unread = false;
    for file in &named.0 {
        let text = read_file(files, file, span.clone(), problems);
        let mut wrong = |said: String| problems.push(Problem::new(span.clone(), said));
        let read = text.and_then(|text| match dataset::parse_tasks(&text, Path::new(file)) {
            Ok(read) => Some(read),
            Err(DatasetError::Tasks { said }) => {
                said.into_iter().for_each(&mut wrong);
                None
            }
            Err(error) => {
                wrong(error.to_string());
                None
            }
        });
        let Some(read) = read else {
            unread = true;
            continue;
        };
        if let Some(twice) = read.iter().find(|task| tasks.iter().any(|known| known.id == task.id)) {
            let message = format!("task id `{}` of `{file}` stands in an earlier file, too", twice.id);
            problems.push(Problem::new(span.clone(), message));
        }
        if read.is_empty() {
            problems.push(Problem::new(span.clone(), format!("`{file}` holds no task")));
        }
        tasks.extend(read);
    }
    if named.0.is_empty() {
        problems.push(Problem::new(span, "`file` names no file"));
    }
    if unread {
        return None;
    }
    if let Some(ids) = &entry.ids {
        for id in ids.iter().filter(|id| !tasks.iter().any(|task| task.id == *id.get_ref())) {
            problems.push(unknown("task", id, tasks.iter().map(|task| task.id.as_str())));
        }
        tasks.retain(|task| ids.iter().any(|id| *id.get_ref() == task.id));
    }
    if let Some(first) = &entry.first {
        if *first.get_ref() == 0 {
            problems.push(Problem::new(first.span(), "`first` is 0: expected a whole number from 1"));
        }
        tasks.truncate(*first.get_ref());
    }
    Some(tasks)
}

/// Systems with names of their own.
fn named(systems: Vec<CampaignSystem>, problems: &mut Vec<Problem>) -> Vec<CampaignSystem> {
    let mut seen = std::collections::BTreeSet::new();
    for system in &systems {
        if !seen.insert(system.name.as_str()) {
            problems.push(Problem::new(0..0, format!("two systems are called `{}`", system.name)));
        }
    }
    systems
}

/// The plans, each on a system once: a second entry would be the same runs again.
fn once(
    entries: &[Read<PlanEntry>],
    read: impl Fn(&Read<PlanEntry>, &mut Vec<Problem>) -> Option<Fixed>,
    problems: &mut Vec<Problem>,
) -> Vec<Fixed> {
    let mut plans: Vec<Fixed> = Vec::new();
    for entry in entries {
        let Some(plan) = read(entry, problems) else { continue };
        let same = |known: &&Fixed| {
            known.plan.digest == plan.plan.digest && known.systems.iter().any(|system| plan.systems.contains(system))
        };
        if let Some(known) = plans.iter().find(same) {
            let message =
                format!("plan `{}` is listed before as `{}`: expected it once, with `repeats`", plan.name, known.name);
            problems.push(Problem::new(entry.span.clone(), message));
        }
        plans.push(plan);
    }
    plans
}

fn fixed(entry: &Read<PlanEntry>, systems: &[String], files: &dyn Files, problems: &mut Vec<Problem>) -> Option<Fixed> {
    if !entry.has("file") {
        problems.push(Problem::new(entry.span.clone(), "the plan has no `file`"));
    }
    let PlanEntry { file, systems: only, repeats } = &entry.value;
    let repeats = at_least_one(repeats.as_ref(), 1, "repeats", problems);
    let only = indices(only.as_deref(), systems, problems);
    let file = file.as_ref()?;
    let plan = read_plan(files, file.get_ref(), file.span(), problems)?;
    if plan.injections.is_empty() {
        problems.push(Problem::new(file.span(), format!("`{}` plants nothing", file.get_ref())));
    }
    Some(Fixed { name: stem(file.get_ref()), plan, systems: only, repeats })
}

fn price(entry: &Read<PriceEntry>, problems: &mut Vec<Problem>) -> Option<ModelPrice> {
    let PriceEntry { model, input, output } = &entry.value;
    for key in ["model", "input", "output"].into_iter().filter(|key| !entry.has(key)) {
        problems.push(Problem::new(entry.span.clone(), format!("the price has no `{key}`")));
    }
    for figure in [input, output].into_iter().flatten().filter(|figure| !is_amount(*figure.get_ref())) {
        problems.push(Problem::new(figure.span(), "a price is an amount of money from 0, for a million tokens"));
    }
    let pattern = model.as_ref()?.get_ref().split('*').map(regex::escape).collect::<Vec<_>>().join(".*");
    let model = match Pattern::new(&format!("^{pattern}$")) {
        Ok(pattern) => pattern.regex().clone(),
        Err(error) => {
            problems.push(Problem::new(entry.span.clone(), format!("the price's `model` {error}")));
            return None;
        }
    };
    Some(ModelPrice { model, input: *input.as_ref()?.get_ref(), output: *output.as_ref()?.get_ref() })
}

fn budget(entry: Option<&Spanned<BudgetEntry>>, priced: bool, problems: &mut Vec<Problem>) -> CampaignBudget {
    let Some(entry) = entry.map(Spanned::get_ref) else {
        return CampaignBudget { max_output_tokens: LONGEST_ANSWER, ..CampaignBudget::default() };
    };
    if let Some(money) = &entry.money {
        if !is_amount(*money.get_ref()) {
            problems.push(Problem::new(money.span(), "`money` is no amount: expected a number from 0"));
        } else if !priced {
            let problem = Problem::new(money.span(), "`money` bounds what calls cost, and no `[[price]]` is given");
            problems.push(problem.hint("add `[[price]]` with `model`, `input` and `output`, per million tokens"));
        }
    }
    let max_output_tokens = entry.max_output_tokens.as_ref().map_or(LONGEST_ANSWER, |count| *count.get_ref());
    let money = entry.money.as_ref().map(|money| *money.get_ref());
    let max_input_tokens = entry.max_input_tokens;
    CampaignBudget { calls: entry.calls, tokens: entry.tokens, money, max_output_tokens, max_input_tokens }
}

/// Money is counted in units of a millionth of a millionth; above this a count would not be exact.
fn is_amount(amount: f64) -> bool {
    (0.0..=1e6).contains(&amount)
}

fn splits(entry: Option<Spanned<Splits>>, problems: &mut Vec<Problem>) -> Splits {
    let Some(entry) = entry else { return Splits::default() };
    let Splits { validation, test, .. } = *entry.get_ref();
    if !(0.0..=1.0).contains(&validation) || !(0.0..=1.0).contains(&test) || validation + test > 1.0 {
        let message = format!("`validation` {validation} and `test` {test} are no shares of one whole");
        problems.push(Problem::new(entry.span(), message));
    }
    entry.into_inner()
}

/// How an outcome is judged: by the campaign's checkers, unless each task brings its own.
fn verify(entry: Option<&Spanned<Verify>>, tasks: Option<&[Task]>, problems: &mut Vec<Problem>) -> Option<Verify> {
    let own = tasks.is_none_or(|tasks| tasks.iter().all(|task| task.check.is_some()));
    let Some(entry) = entry else {
        if !own {
            let problem = Problem::new(0..0, "the campaign has no `[verify]`");
            problems.push(problem.hint("say how an answer is checked: `verify.checks = [{ numeric = {} }]`"));
        }
        return own.then(Verify::default);
    };
    // A checker that could not be read was told already; that the list is short of it is no news. A dotted key's span is the
    // key alone, so all that is wrong behind it counts.
    let unread = problems.iter().any(|problem| problem.span.start >= entry.span().start);
    let checked = entry.get_ref().validate(own || unread);
    checked.map_err(|error| problems.push(Problem::new(entry.span(), error.to_string()))).ok()?;
    Some(entry.get_ref().clone())
}

#[cfg(test)]
#[path = "read_tests.rs"]
mod tests;
