//! What a campaign says of itself as it goes: a line a stage.

use super::{
    ended::Class,
    funnel::{Concluded, LeftOut},
};

impl Concluded {
    pub(super) fn clean_line(&self) -> String {
        let (runs, passed) = self.tasks.iter().fold((0, 0), |sum, task| (sum.0 + task.runs, sum.1 + task.passed));
        let kept = self.tasks.iter().filter(|task| task.reference.is_some()).count();
        let mut line = format!("clean     {runs} runs   {passed} passed   {kept} of {} tasks go on", self.tasks.len());
        for (why, name) in LeftOut::ALL {
            let count = self.tasks.iter().filter(|task| task.left_out == Some(why)).count();
            if count > 0 {
                line.extend(["   ", name, " ", &count.to_string()]);
            }
        }
        line
    }

    pub(super) fn injected_line(&self) -> String {
        let (attempts, delivered, flipped) = (self.attempts.len(), self.delivered(), self.flipped());
        let mut line = format!("inject    {attempts} runs   delivered {delivered}   outcome flipped {flipped}");
        for class in Class::ALL {
            let count = self.count(class);
            if count > 0 && !matches!(class, Class::Verified | Class::Unproven) {
                line.extend(["   ", class.name(), " ", &count.to_string()]);
            }
        }
        line
    }

    pub(super) fn verify_line(&self) -> String {
        format!(
            "verify    {} of {} flips vanish when the same run is repeated without the injection ({} of {} controls passed)",
            self.verified(),
            self.flipped(),
            self.controls_passed,
            self.controls
        )
    }

    pub(super) fn narrow_line(&self) -> String {
        let told = self.attempts.iter().flat_map(|attempt| attempt.needed.values());
        let (all, needed) = told.fold((0, 0), |sum, needed| (sum.0 + 1, sum.1 + u32::from(*needed)));
        format!("narrow    {} runs less one injection   {needed} of {all} injections were needed", self.without)
    }

    /// One line: what came of it.
    pub fn line(&self) -> String {
        let ended = match (self.exhausted, self.stopped, self.unfinished) {
            (true, ..) => ", ended by its budget".to_owned(),
            (_, true, _) => ", stopped".to_owned(),
            (.., 0) => String::new(),
            (.., more) => format!(", {more} cells unfinished"),
        };
        format!(
            "{} verified failures from {} injected runs, {} model calls made and {} answered from recordings{ended}",
            self.verified(),
            self.attempts.len(),
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
