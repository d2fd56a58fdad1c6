//! Which plans a test runs, what its runs are called, and where they are recorded.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::tested::PlannedRun;
use crate::{
    cli::{Exit, Failure, plan as plans},
    plan::{self, Plan},
    recording,
    trajectory::RunId,
};

/// The name of a test that has none of its own.
const UNNAMED: &str = "test";
/// Longest name of a test, in bytes: a plan's name and a number stand behind it in the names of runs.
const NAME_MAX: usize = 32;
/// Longest part of a run's name that is the plan's, in bytes.
const PLAN_MAX: usize = 24;
/// Most directories that are tried for a test without a name.
const PLACES: u32 = 10_000;

/// A plan that a test runs.
#[derive(Debug)]
pub(super) struct ChosenPlan {
    /// The last part of its file's or its own name; no two of a test have the same.
    pub(super) name: String,
    /// Where it is from: a path, or a ready-made plan's name.
    pub(super) from: String,
    /// What it does: the comment that it begins with.
    pub(super) description: String,
    pub(super) plan: Arc<Plan>,
}

/// What a test is called.
#[derive(Debug)]
pub(super) struct TestName {
    name: String,
    given: bool,
}

impl TestName {
    pub(super) fn parse(said: Option<&str>) -> Result<Self, Failure> {
        let name = said.unwrap_or(UNNAMED).to_owned();
        if RunId::parse(&name).is_err() || name.len() > NAME_MAX {
            let error = format!(
                "`--name {}` is not allowed: expected 1 to {NAME_MAX} of A-Z a-z 0-9 . _ -, not starting with . _ or -",
                name.escape_debug()
            );
            return Err(Failure::new(Exit::Usage, error));
        }
        Ok(Self { name, given: said.is_some() })
    }

    pub(super) fn as_str(&self) -> &str {
        &self.name
    }

    /// The name of the run without a plan.
    pub(super) fn baseline(&self) -> Result<RunId, String> {
        RunId::parse(&format!("{}.baseline", self.name)).map_err(|error| error.to_string())
    }

    /// The runs of a test, each with a name that depends on the test's, the plan's and its number alone: so do its draws.
    pub(super) fn runs(&self, plans: &[ChosenPlan], count: u32) -> Result<Vec<PlannedRun>, Failure> {
        let mut runs = Vec::new();
        for plan in plans {
            for number in 1..=count {
                let run = RunId::parse(&format!("{}-{}-{number}", self.name, in_run_id(&plan.name)));
                let run = run.map_err(|error| Failure::new(Exit::Usage, error))?;
                runs.push(PlannedRun {
                    run,
                    plan_name: plan.name.clone(),
                    plan: Arc::clone(&plan.plan),
                    number,
                    of: count,
                });
            }
        }
        Ok(runs)
    }
}

impl fmt::Display for TestName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.name)
    }
}

/// A plan's name as a part of a run's: what may not stand there, or is too long, is told apart by a hash.
fn in_run_id(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    if name.len() <= PLAN_MAX && name.chars().all(plain) {
        return name.to_owned();
    }
    let kept: String = name.chars().filter(|c| plain(*c)).take(PLAN_MAX - 7).collect();
    let hash = blake3::hash(name.as_bytes()).to_hex();
    format!("{kept}.{}", hash.get(..6).unwrap_or_default())
}

/// The plans that some words name: files, ready-made plans, folders of either.
///
/// # Errors
/// Whatever cannot be read, with its place; two plans of one name; a plan that needs a recorded run to count in.
pub(super) fn choose(words: &[String]) -> Result<Vec<ChosenPlan>, Failure> {
    let mut chosen: Vec<ChosenPlan> = Vec::new();
    for word in words {
        let path = Path::new(word);
        if path.is_dir() {
            let mut files = files(path)?;
            files.sort();
            if files.is_empty() {
                let error = format!("`{word}` holds no plan: expected files that end with `.toml`");
                return Err(Failure::new(Exit::Usage, error));
            }
            for file in files {
                chosen.push(of_file(&file)?);
            }
        } else if path.exists() {
            chosen.push(of_file(path)?);
        } else {
            let shipped = plans::shipped_as(word).map_err(|hint| {
                let error = format!("`{word}` is neither a file nor a ready-made plan");
                Failure::new(Exit::Usage, error).hint(hint)
            })?;
            for plan in shipped {
                let (name, from) = (plan.short_name().to_owned(), plan.name.to_owned());
                let about = plan.description().to_owned();
                chosen.push(ChosenPlan { name, from, description: about, plan: Arc::new(plans::read_shipped(&plan)?) });
            }
        }
    }
    for (index, plan) in chosen.iter().enumerate() {
        plan::require_resolved(&plan.plan, &plan.from, None).map_err(|errors| Failure::new(Exit::Usage, errors))?;
        if let Some(same) = chosen.iter().take(index).find(|earlier| earlier.name == plan.name) {
            let error = format!("two plans are called `{}`: {} and {}", plan.name, same.from, plan.from);
            return Err(Failure::new(Exit::Usage, error)
                .hint("their runs would be called the same: name each once, or give one file another name"));
        }
        if plan.plan.injections.is_empty() {
            let error = format!("the plan `{}` plants nothing: there is nothing to survive", plan.from);
            return Err(Failure::new(Exit::Usage, error).hint("record the program without a plan by `aegis run`"));
        }
    }
    Ok(chosen)
}

fn files(dir: &Path) -> Result<Vec<PathBuf>, Failure> {
    let cannot = |error: std::io::Error| Failure::new(Exit::Usage, format!("cannot read `{}`: {error}", dir.display()));
    let paths = std::fs::read_dir(dir).map_err(cannot)?.map(|entry| entry.map(|entry| entry.path()));
    let paths = paths.collect::<Result<Vec<_>, _>>().map_err(cannot)?;
    Ok(paths.into_iter().filter(|path| path.extension().is_some_and(|end| end == "toml") && path.is_file()).collect())
}

fn of_file(path: &Path) -> Result<ChosenPlan, Failure> {
    let plan = plans::read(path)?;
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let first = plan.text.lines().next().unwrap_or_default();
    let about = first.strip_prefix('#').unwrap_or_default().trim().to_owned();
    Ok(ChosenPlan { name, from: path.display().to_string(), description: about, plan: Arc::new(plan) })
}

/// Where a test's runs are recorded: a directory of the test's name, for a test without a name the first numbered one in
/// which none of them is. The draws do not depend on it.
///
/// # Errors
/// A run is there already, and nobody said that it may be replaced; or it cannot be removed.
pub(super) fn place(log_dir: &Path, name: &TestName, runs: &[PlannedRun], overwrite: bool) -> Result<PathBuf, Failure> {
    let baseline = name.baseline().map_err(|error| Failure::new(Exit::Usage, error))?;
    let there = |dir: &Path| {
        let names = runs.iter().map(|run| &run.run).chain(std::iter::once(&baseline));
        names.map(|run| dir.join(run.as_str())).filter(|run| run.exists()).collect()
    };
    let dir = log_dir.join(name.as_str());
    let found: Vec<PathBuf> = there(&dir);
    if overwrite {
        for run in found {
            recording::discard(&run)?;
        }
        return Ok(dir);
    }
    let Some(first) = found.first() else { return Ok(dir) };
    if name.given {
        let error = format!("`{}` is recorded already", first.display());
        return Err(Failure::new(Exit::Usage, error)
            .hint("`--overwrite` replaces the recordings of this test; another `--name` draws anew and keeps them"));
    }
    let numbered = (2..PLACES).map(|number| log_dir.join(format!("{name}.{number}")));
    numbered.into_iter().find(|dir| Vec::is_empty(&there(dir))).ok_or_else(|| {
        Failure::new(Exit::Usage, format!("`{}` holds too many tests: expected fewer than {PLACES}", log_dir.display()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_runs_depend_on_test_plan_and_number_alone() {
        for (name, expected) in [
            ("rate-limit", "rate-limit"),
            ("my plan", "myplan."),
            ("a-name-that-is-longer-than-there-is-room", "a-name-that-is-lo."),
            ("überlast", "berlast."),
        ] {
            let part = in_run_id(name);
            assert!(part.starts_with(expected) && part.len() <= PLAN_MAX, "{name}: {part}");
            assert_eq!(part, in_run_id(name));
        }
        assert_ne!(in_run_id("my plan"), in_run_id("myplan"));
        let longest = format!("{}-{}-1000", "n".repeat(NAME_MAX), "p".repeat(PLAN_MAX));
        assert!(RunId::parse(&longest).is_ok(), "{longest}");
    }

    #[test]
    fn what_cannot_be_a_name_is_refused() {
        for name in ["", "a b", "-a", "../a", &"n".repeat(NAME_MAX + 1)] {
            assert!(TestName::parse(Some(name)).is_err(), "{name:?}");
        }
    }

    #[test]
    fn words_name_files_plans_and_folders() {
        let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
        let chosen = choose(&words(&["rate-limit", "overload"])).expect("ready-made");
        assert_eq!(chosen.iter().map(|plan| plan.name.as_str()).collect::<Vec<_>>(), ["rate-limit", "overload"]);
        assert!(choose(&words(&["faults"])).expect("a folder").len() >= 7);
        for (wrong, error) in [
            (&["rate-limits"][..], "neither a file nor a ready-made plan"),
            (&["rate-limit", "faults"], "two plans are called `rate-limit`"),
        ] {
            let failure = choose(&words(wrong)).expect_err("wrong");
            assert!(failure.to_string().contains(error), "{failure}");
            assert!(failure.hint.is_some());
        }
    }
}
