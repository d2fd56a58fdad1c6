//! What a campaign says of itself as it goes: a line a stage.

use super::{
    concluded::Concluded,
    ended::Class,
    funnel::{LeftOut, Nulls},
};

impl Concluded {
    /// A line each: clean runs, injected runs, proofs, and what was narrowed down where anything was.
    pub(super) fn lines(&self) -> Vec<String> {
        let narrowed = (self.without > 0).then(|| self.narrow_line());
        [self.clean_line(), self.injected_line(), self.verify_line()].into_iter().chain(narrowed).collect()
    }

    fn clean_line(&self) -> String {
        let Self { tasks, kept, clean_runs: runs, clean_passed: passed, .. } = self;
        let mut line = format!("clean     {runs} runs   {passed} passed   {kept} of {tasks} tasks × systems go on");
        for (why, name) in LeftOut::ALL {
            if let Some(count) = self.left_out.get(&why) {
                line.extend(["   ", name, " ", &count.to_string()]);
            }
        }
        for told in &self.told {
            let said: String = told.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
            line.extend(["\n          ", &said]);
        }
        if self.untold > 0 {
            line.extend([format!("\n          and {} more: report.md has them", self.untold)]);
        }
        line
    }

    /// Injected runs that were finished, and how many were to be made where some were not.
    fn made(&self) -> String {
        let (made, wanted) = (self.made, self.attempts);
        if made == wanted { made.to_string() } else { format!("{made} of {wanted}") }
    }

    fn injected_line(&self) -> String {
        let (delivered, flipped) = (self.delivered, self.flipped);
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
        let (repeated, shown) = (self.repeated_and_shown, self.count(Class::Verified));
        let Nulls { passed, failed, void } = self.nulls;
        let mut line = format!("verify    {shown} of {} flips verified", self.flipped);
        for (count, how) in [(repeated, "by equal repeats"), (shown - repeated, "by pairs of runs")] {
            if count > 0 {
                line.extend([format!(", {count} {how}")]);
            }
        }
        for class in [Class::FlakyTask, Class::Unproven, Class::Void] {
            if let Some(count) = self.flips.get(&class) {
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

    fn narrow_line(&self) -> String {
        let [failures, errors, necessary] = self.narrowed;
        format!("narrow    {necessary} of {errors} errors of {failures} failures were necessary")
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
