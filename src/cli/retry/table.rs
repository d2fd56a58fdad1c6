//! A retry in the terminal.

use std::io::{self, Write};

use crate::{
    attribution::{RetryArm, RetryRound},
    cli::escape,
};

/// A round: what was said, what each arm came to, what the critique adds.
pub(super) fn write(round: &RetryRound, out: &mut dyn Write) -> io::Result<()> {
    let critique = &round.critique;
    writeln!(
        out,
        "round {}  {} at step {}  by {}",
        round.round,
        escape(critique.agent.as_str()),
        critique.step,
        critique.source
    )?;
    writeln!(out, "  note     {}", escape(&critique.note))?;
    for arm in &round.arms {
        let executed = &arm.executed;
        let told = executed.passed + executed.failed;
        let voids: Vec<String> =
            executed.void.iter().map(|(why, count)| format!("  {count} {}", why.words())).collect();
        let places = if arm.arm == RetryArm::Elsewhere { elsewhere(round) } else { String::new() };
        writeln!(
            out,
            "  {:<20} {} of {told} passed  {:.2} [{:.2}, {:.2}]{places}{}",
            arm.arm.name(),
            executed.passed,
            arm.share,
            arm.interval.low,
            arm.interval.high,
            voids.concat()
        )?;
    }
    if round.arm(RetryArm::Elsewhere).is_none() {
        writeln!(out, "  no other step can take the note, so that arm is missing")?;
    }
    writeln!(out, "  gain     {}", gain(round))
}

/// What the critique adds, in words.
pub(super) fn gain(round: &RetryRound) -> String {
    match &round.gain {
        Some(gain) => {
            let (low, high) = (gain.interval.low, gain.interval.high);
            format!("{:+.2} [{low:.2}, {high:.2}] over {}", gain.gain, gain.over.name())
        }
        None => "unknown: an arm tells nothing, or was not executed".to_owned(),
    }
}

/// The steps that the note went to in that arm.
fn elsewhere(round: &RetryRound) -> String {
    let mut steps: Vec<u32> =
        round.executions.iter().filter(|one| one.arm == RetryArm::Elsewhere).map(|one| one.step).collect();
    steps.sort_unstable();
    steps.dedup();
    let steps: Vec<String> = steps.iter().map(ToString::to_string).collect();
    format!("  at step {}", steps.join(", "))
}
