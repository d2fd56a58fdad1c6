//! What a campaign says of itself as it goes: a line a stage.

use super::{
    concluded::{Concluded, NecessityCounts, TOLD},
    ended::Class,
    funnel::{ControlCounts, LeftOut},
};

impl Concluded {
    /// A line each: clean runs, injected runs, proofs, and what was narrowed down where anything was.
    pub(super) fn lines(&self) -> Vec<String> {
        let narrowed = (self.without > 0).then(|| self.narrow_line());
        let decoys = self.decoys_if_any().map(|decoys| format!("decoys    {}", decoys.in_words()));
        let lines = [self.clean_line(), self.injected_line(), self.verify_line()];
        let natural = self.natural.map(|natural| format!("natural   {}", natural.in_words()));
        let catches = self.missed_catch.filter(|catches| catches.failures > 0);
        let catches = catches.map(|catches| format!("catches   {}", catches.in_words()));
        lines.into_iter().chain(narrowed).chain(decoys).chain(natural).chain(catches).collect()
    }

    fn clean_line(&self) -> String {
        let Self { tasks, kept, clean_runs: runs, clean_passed: passed, .. } = self;
        let mut line = format!("clean     {runs} runs   {passed} passed   {kept} of {tasks} tasks × systems go on");
        for (why, name) in LeftOut::ALL {
            if let Some(count) = self.left_out.get(&why) {
                line.extend(["   ", name, " ", &count.to_string()]);
            }
        }
        for told in &self.summaries {
            let said: String = told.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
            line.extend(["\n          ", &said]);
        }
        if self.untold > 0 {
            line.extend([format!("\n          and {} more: report.md has them", self.untold)]);
        }
        for (what, tasks) in self.learned.iter().take(TOLD) {
            let s = plural(*tasks == 1);
            line.extend([format!("\n          differs between runs of {tasks} task{s}, and counts as equal: {what}")]);
        }
        line
    }

    /// Injected runs that were finished, and how many were to be made where some were not.
    fn finished_runs(&self) -> String {
        let (made, wanted) = (self.made, self.attempts);
        if made == wanted { made.to_string() } else { format!("{made} of {wanted}") }
    }

    fn injected_line(&self) -> String {
        let (delivered, flipped) = (self.delivered, self.flipped);
        let mut line =
            format!("inject    {} runs   delivered {delivered}   outcome flipped {flipped}", self.finished_runs());
        let flips = |class| self.flips.get(&class).copied().unwrap_or_default();
        let told = || Class::ALL.into_iter().filter(|class| !matches!(class, Class::Verified | Class::Unproven));
        // What flipped and proves nothing is part of the flips: counted beside them, it would be counted twice.
        let of_them: Vec<String> = told()
            .filter(|class| flips(*class) > 0)
            .map(|class| format!("{} {}", class.name(), flips(class)))
            .collect();
        if !of_them.is_empty() {
            line.extend([" (of them ", &of_them.join(", "), ")"]);
        }
        for class in told() {
            let count = self.count(class).saturating_sub(flips(class));
            if count > 0 {
                line.extend(["   ", class.name(), " ", &count.to_string()]);
            }
        }
        if self.impossible > 0 {
            let times = self.impossible;
            line.extend([format!(
                "\n          {times} not possible in the reference runs, and not planted: report.md says what and why"
            )]);
        }
        if self.silent > 0 {
            line.extend(["\n          ", &silence_in_words(self.silent)]);
        }
        line
    }

    fn verify_line(&self) -> String {
        let (repeated, shown) = (self.repeated_and_shown, self.count(Class::Verified));
        let ControlCounts { passed, failed, void } = self.controls;
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
        for (words, runs) in self.dependent.iter().take(TOLD) {
            line.extend([format!("\n          {runs} void (dependent): {words}")]);
        }
        if self.chaotic > 0 {
            let (chaotic, kept) = (self.chaotic, self.kept);
            line.extend([format!(
                "\n          {chaotic} of {kept} tasks × systems are chaotic: neutral changes alone turn the outcome too often (`proof.chaotic`)"
            )]);
        }
        if let Some(older) = self.older.in_words() {
            line.extend(["\n          ", &older]);
        }
        for system in &self.revoked {
            line.extend([format!(
                "\n          `{system}` does not repeat itself: its claims were shown by pairs instead"
            )]);
        }
        line
    }

    fn narrow_line(&self) -> String {
        let NecessityCounts { failures, errors, necessary, not_needed, not_shown, overdetermined, joint } =
            self.necessity;
        let mut line = format!("narrow    {necessary} of {errors} errors of {failures} failures were necessary");
        for (count, how) in [(not_needed, "not needed"), (not_shown, "not shown")] {
            if count > 0 {
                line.extend([format!(", {count} {how}")]);
            }
        }
        for (count, how) in [(overdetermined, "overdetermined"), (joint, "joint")] {
            if count > 0 {
                line.extend([format!("   {how} {count}")]);
            }
        }
        line
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
        let natural = match self.natural_labelled() {
            0 => String::new(),
            labelled => format!(", {labelled} natural failure{} labelled", plural(labelled == 1)),
        };
        format!(
            "{} verified failure{}{more} from {} injected run{}{natural}, {} model calls made and {} answered from recordings{ended}",
            self.verified(),
            plural(self.verified() == 1),
            self.finished_runs(),
            plural(self.finished_runs() == "1"),
            self.spent.calls,
            self.prefix.calls
        )
    }
}

/// What runs that asked nothing mean, and what to do.
pub(super) fn silence_in_words(runs: usize) -> String {
    format!(
        "{runs} of the clean and injected runs ended well without one model call, and others called: the program seems to \
         keep replies of the model (a cache on disk?), and into a call that is not made nothing can be planted. Turn that \
         off, or give each run a place of its own: `{{scratch}}` in `command` or `environment`; then begin in another `--out`"
    )
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

/// The end of a noun that there is one of, or are several of.
fn plural(one: bool) -> &'static str {
    if one { "" } else { "s" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_of_injected_runs_adds_up() {
        let mut concluded = Concluded { attempts: 11, made: 11, delivered: 9, flipped: 8, ..Concluded::default() };
        let classes =
            [(Class::Verified, 5, 5), (Class::FlakyTask, 3, 2), (Class::Void, 1, 1), (Class::NotInjected, 2, 0)];
        for (class, all, flips) in classes {
            concluded.classes.insert(class, all);
            concluded.flips.insert(class, flips);
        }
        assert_eq!(
            concluded.injected_line(),
            "inject    11 runs   delivered 9   outcome flipped 8 (of them flaky_task 2, void 1)   not_injected 2   flaky_task 1"
        );
    }
}
