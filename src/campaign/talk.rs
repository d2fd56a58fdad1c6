//! What a campaign says of itself as it goes: a line a stage.

use std::collections::BTreeMap;

use super::{
    ended::Class,
    funnel::{Concluded, InjectedRun, LeftOut, Nulls, TaskState},
};

/// Most tasks that are left out of which it is said why.
const TOLD: usize = 3;

impl Concluded {
    /// A line each: clean runs, injected runs, proofs, and what was narrowed down where anything was.
    pub(super) fn lines(&self) -> Vec<String> {
        let narrowed = (self.without > 0).then(|| self.narrow_line());
        [self.clean_line(), self.injected_line(), self.verify_line()].into_iter().chain(narrowed).collect()
    }

    fn clean_line(&self) -> String {
        let (runs, passed) = self.tasks.iter().fold((0, 0), |sum, task| (sum.0 + task.runs, sum.1 + task.passed));
        let kept = self.tasks.iter().filter(|task| task.reference.is_some()).count();
        let mut line = format!("clean     {runs} runs   {passed} passed   {kept} of {} tasks go on", self.tasks.len());
        for (why, name) in LeftOut::ALL {
            let count = self.tasks.iter().filter(|task| task.left_out == Some(why)).count();
            if count > 0 {
                line.extend(["   ", name, " ", &count.to_string()]);
            }
        }
        let mut told = self.tasks.iter().filter_map(|task| Some((task, task.left_out?, task.why.as_ref()?)));
        for (TaskState { system, task, .. }, left_out, why) in told.by_ref().take(TOLD) {
            let said = format!("\n          {system}/{task} is left out, {}: {why}", left_out.name());
            line.extend(said.chars().map(|c| if c.is_control() && c != '\n' { ' ' } else { c }));
        }
        let more = told.count();
        if more > 0 {
            line.extend([format!("\n          and {more} more: report.md has them")]);
        }
        line
    }

    /// Injected runs that were finished, and how many were to be made where some were not.
    fn made(&self) -> String {
        let (made, wanted) = (self.attempts.iter().filter(|one| one.class.is_some()).count(), self.attempts.len());
        if made == wanted { made.to_string() } else { format!("{made} of {wanted}") }
    }

    fn injected_line(&self) -> String {
        let (delivered, flipped) = (self.delivered(), self.flipped());
        let mut line = format!("inject    {} runs   delivered {delivered}   outcome flipped {flipped}", self.made());
        for class in Class::ALL {
            let count = self.count(class);
            if count > 0 && !matches!(class, Class::Verified | Class::Unproven) {
                line.extend(["   ", class.name(), " ", &count.to_string()]);
            }
        }
        line
    }

    fn verify_line(&self) -> String {
        let (repeated, shown) = (self.repeated_and_shown(), self.count(Class::Verified));
        let Nulls { passed, failed, void } = self.nulls;
        let mut line = format!("verify    {shown} of {} flips verified", self.flipped());
        for (count, how) in [(repeated, "by equal repeats"), (shown - repeated, "by pairs of runs")] {
            if count > 0 {
                line.extend([format!(", {count} {how}")]);
            }
        }
        for class in [Class::FlakyTask, Class::Unproven, Class::Void] {
            let count = self.attempts.iter().filter(|attempt| attempt.flipped && attempt.class == Some(class)).count();
            if count > 0 {
                line.extend([format!("   {} {count}", class.name())]);
            }
        }
        line.extend([format!("   without the injection {passed} of {} runs passed", passed + failed)]);
        if void > 0 {
            line.extend([format!(", {void} void")]);
        }
        for system in &self.revoked {
            line.extend([format!(
                "\n          `{system}` does not repeat itself: its claims were shown by pairs instead"
            )]);
        }
        line
    }

    /// Runs that are verified because their system repeats itself.
    fn repeated_and_shown(&self) -> usize {
        let repeated = |attempt: &&InjectedRun| {
            attempt.class == Some(Class::Verified)
                && attempt.executed.as_ref().is_some_and(|executed| executed.repeatable)
        };
        self.attempts.iter().filter(repeated).count()
    }

    fn narrow_line(&self) -> String {
        let mut claims = BTreeMap::new();
        for attempt in self.attempts.iter().filter(|attempt| !attempt.necessity.is_empty()) {
            claims.insert(attempt.claim, &attempt.necessity);
        }
        let told = || claims.values().flat_map(|necessity| necessity.iter());
        let necessary = told().filter(|one| one.necessary).count();
        format!("narrow    {necessary} of {} errors of {} failures were necessary", told().count(), claims.len())
    }

    /// One line: what came of it.
    pub fn line(&self) -> String {
        let ended = match (self.exhausted, self.stopped, self.unfinished) {
            (true, ..) => ", ended by its budget".to_owned(),
            (_, true, _) => ", stopped".to_owned(),
            (.., 0) => String::new(),
            (.., more) => format!(", {more} cells unfinished"),
        };
        let (claims, runs) = (self.verified(), self.count(Class::Verified));
        let more = if runs > claims { format!(" (in {runs} runs: some met the same edit)") } else { String::new() };
        format!(
            "{} verified failures{more} from {} injected runs, {} model calls made and {} answered from recordings{ended}",
            self.verified(),
            self.made(),
            self.spent.calls,
            self.prefix.calls
        )
    }
}

impl LeftOut {
    /// Its name in files.
    pub(super) fn name(self) -> &'static str {
        Self::ALL.iter().find(|(why, _)| *why == self).map_or("", |(_, name)| name)
    }

    pub(super) const ALL: [(LeftOut, &'static str); 8] = [
        (LeftOut::Unsolved, "unsolved"),
        (LeftOut::FlakyTask, "flaky_task"),
        (LeftOut::InfraError, "infra_error"),
        (LeftOut::Timeout, "timeout"),
        (LeftOut::Crashed, "crashed"),
        (LeftOut::Unchecked, "unchecked"),
        (LeftOut::Unrepeatable, "unrepeatable"),
        (LeftOut::Unfinished, "unfinished"),
    ];
}
