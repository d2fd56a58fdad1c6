//! Requests that were found by masking a value which the program may mean: the reply was given to another one.

use std::fmt;

use serde::Serialize;

use super::reading::surface_of;
use crate::{
    equality::{MaskedValue, Rules},
    surface::{Message, Role, door},
    trajectory::{Step, StepIndex},
};

/// A value in the words of a user or of a tool that differs from the recorded request's, and that rules mask.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct OtherValue {
    /// Step of this run.
    pub step: StepIndex,
    /// Step of the record that answered it.
    pub recorded: StepIndex,
    /// The rule that masks it, for example `date`.
    pub rule: String,
    /// The value in the record.
    pub was: String,
    /// The value here.
    pub is: String,
    /// Whether it names a place or a thing that each run makes anew: a path, an id of a call. A date, a time or a hash may be what
    /// the task is about.
    pub made_anew: bool,
}

impl fmt::Display for OtherValue {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { step, recorded, rule, was, is, .. } = self;
        write!(
            formatter,
            "step {step} was answered from step {recorded}, which was asked with another {rule}: {was} there, {is} here"
        )
    }
}

/// Rules of what a tool makes anew at each call: ids, and times to the second. A date alone may be what was asked for.
const MADE_BY_TOOLS: &[&str] = &["uuid", "hex", "clock", "epoch"];

/// The first value that differs and that nothing shows to be the clock or the like of each run. `step`: this run's.
pub(super) fn other_value(
    step: StepIndex,
    recorded: &Step,
    was: &[u8],
    is: &[u8],
    rules: &Rules,
) -> Option<OtherValue> {
    let (before, now) = (values(recorded, was, rules)?, values(recorded, is, rules)?);
    let pairs = before.into_iter().zip(now);
    let mut pairs = pairs.filter(|((_, was), (_, is))| was.rule == is.rule && was.value != is.value);
    let ((role, was), (_, is)) = pairs.find(|((_, was), _)| !is_clock(was, recorded))?;
    let to_the_second = was.is_time && was.value.matches(':').count() >= 2;
    let of_tool = role == Role::Tool && (to_the_second || MADE_BY_TOOLS.contains(&was.rule.as_str()));
    let made_anew = of_tool || (!matches!(was.rule.as_str(), "uuid" | "hex") && !was.is_time);
    Some(OtherValue { step, recorded: recorded.step, rule: was.rule, was: was.value, is: is.value, made_anew })
}

/// The values that rules mask in what users and tools say, in order, with who says each.
fn values(recorded: &Step, body: &[u8], rules: &Rules) -> Option<Vec<(Role, MaskedValue)>> {
    let conversation = door::request(surface_of(recorded)?, body).ok()?;
    let said = conversation.messages.iter().filter(|message| matches!(message.role, Role::User | Role::Tool));
    let of = |message: &Message| {
        let role = message.role;
        rules.masked_values(&message.text()).into_iter().map(move |value| (role, value))
    };
    Some(said.flat_map(of).collect())
}

/// Whether a time is the one at which the recorded call was made: what read a clock reads another one later.
fn is_clock(value: &MaskedValue, recorded: &Step) -> bool {
    let Some(at) = recorded.attempts.first().and_then(|attempt| attempt.at.parse::<jiff::Timestamp>().ok()) else {
        return false;
    };
    if !value.is_time {
        return false;
    }
    // Of any time zone: the day before and after count, and so do all hours of a clock whose minutes are near.
    let days = [-1_i64, 0, 1].map(|days| at.as_second() + days * 86_400);
    let named = days.iter().filter_map(|second| jiff::Timestamp::from_second(*second).ok()).any(|day| {
        let day = day.to_zoned(jiff::tz::TimeZone::UTC);
        let forms =
            ["%Y-%m-%d", "%d %B %Y", "%-d %B %Y", "%B %d, %Y", "%B %-d, %Y", "%d %b %Y", "%b %d %Y", "%b %e", "%b %d"];
        forms.iter().any(|form| value.value.contains(&day.strftime(form).to_string()))
    });
    named || is_near_clock(&value.value, at) || is_near_epoch(&value.value, at)
}

/// Whether the minutes and seconds of `hh:mm:ss` are within five minutes before or after.
fn is_near_clock(value: &str, at: jiff::Timestamp) -> bool {
    let mut parts = value.split(['.', ',']).next().unwrap_or_default().split(':').map(str::parse::<i64>);
    let (Some(Ok(_)), Some(Ok(minutes)), Some(Ok(seconds)), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return false;
    };
    let apart = (minutes * 60 + seconds - at.as_second().rem_euclid(3600)).rem_euclid(3600);
    apart.min(3600 - apart) <= 300
}

/// Whether seconds or milliseconds since 1970 are within a day.
fn is_near_epoch(value: &str, at: jiff::Timestamp) -> bool {
    let whole = value.split('.').next().unwrap_or_default();
    let Ok(number) = whole.parse::<i64>() else { return false };
    let seconds = if whole.len() > 11 { number / 1000 } else { number };
    (seconds - at.as_second()).abs() <= 86_400
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_reads_another_time_later() {
        let at: jiff::Timestamp = "2026-11-23T05:38:10Z".parse().expect("a time");
        for (value, near) in
            [("07:36:59", true), ("05:38:10.25", true), ("05:20:00", false), ("12:00:00", false), ("05:38", false)]
        {
            assert_eq!(is_near_clock(value, at), near, "{value}");
        }
        assert!(
            is_near_epoch("1795412280", at) && is_near_epoch("1795412280123", at) && !is_near_epoch("1500000000", at)
        );
    }
}
