//! Requests that were found by masking a value which the program may mean: the reply was given to another one.

use std::fmt;

use serde::Serialize;

use super::reading::surface_of;
use crate::{
    equality::{MaskedValue, Rules, VolatilePlace},
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
    /// The rule that masks it, for example `date`; or where it stands, of one that changes from call to call in the record.
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
    let clocks = Clocks::since(recorded);
    let ((role, was), (_, is)) =
        pairs.find(|((_, was), (_, is))| !clocks.as_ref().is_some_and(|clocks| clocks.read(was, is)))?;
    let to_the_second = was.is_time && was.value.matches(':').count() >= 2;
    let of_tool = role == Role::Tool && (to_the_second || MADE_BY_TOOLS.contains(&was.rule.as_str()));
    let made_anew = of_tool || (!matches!(was.rule.as_str(), "uuid" | "hex") && !was.is_time);
    Some(OtherValue { step, recorded: recorded.step, rule: was.rule, was: was.value, is: is.value, made_anew })
}

/// The values that differ at places which change from call to call in the record.
pub(super) fn renewed_values(
    step: StepIndex,
    recorded: &Step,
    was: &[u8],
    is: &[u8],
    places: &[VolatilePlace],
) -> Vec<OtherValue> {
    let lines = |body: &[u8]| -> Vec<String> {
        let read = surface_of(recorded).and_then(|surface| door::request(surface, body).ok());
        let texts = read.into_iter().flat_map(|conversation| conversation.messages).map(|message| message.text());
        texts.flat_map(|text| text.split('\n').map(str::to_owned).collect::<Vec<_>>()).collect()
    };
    let (before, now) = (lines(was), lines(is));
    let differs = |(was, is): (&String, &String)| {
        let found = places.iter().find_map(|place| Some((place, place.value(was)?, place.value(is)?)));
        let (place, was, is) = found.filter(|(_, was, is)| was != is)?;
        let (was, is, rule) = (was.to_owned(), is.to_owned(), format!("volatile value ({place})"));
        Some(OtherValue { step, recorded: recorded.step, rule, was, is, made_anew: true })
    };
    before.iter().zip(&now).filter_map(differs).collect()
}

/// The values that rules mask in what users and tools say, in order, with who says each.
fn values(recorded: &Step, body: &[u8], rules: &Rules) -> Option<Vec<(Role, MaskedValue)>> {
    let conversation = door::request(surface_of(recorded)?, body).ok()?;
    // Where results of tools may differ, that is what they do.
    let counts = |role| role == Role::User || role == Role::Tool && rules.tool_results().is_exact();
    let said = conversation.messages.iter().filter(|message| counts(message.role));
    let of = |message: &Message| {
        let role = message.role;
        rules.masked_values(&message.text()).into_iter().map(move |value| (role, value))
    };
    Some(said.flat_map(of).collect())
}

/// When a call was recorded, and when it is replayed.
struct Clocks {
    then: jiff::Timestamp,
    now: jiff::Timestamp,
}

impl Clocks {
    fn since(recorded: &Step) -> Option<Self> {
        let then = recorded.attempts.first()?.at.parse().ok()?;
        Some(Self { then, now: jiff::Timestamp::now() })
    }

    /// Whether a time was the clock's when it was recorded, and is the clock's now. One that is not is another question.
    fn read(&self, was: &MaskedValue, is: &MaskedValue) -> bool {
        let Self { then, now } = *self;
        let both = |near: fn(&str, jiff::Timestamp) -> bool| near(&was.value, then) && near(&is.value, now);
        let moved = || moved_by(&was.value, &is.value, now.as_second() - then.as_second());
        was.is_time && (both(is_near_day) || both(is_near_epoch) || (both(is_near_clock) && moved()))
    }
}

/// Whether a day is named that is this one in some time zone: the day before and after count.
fn is_near_day(value: &str, at: jiff::Timestamp) -> bool {
    const FORMS: [&str; 9] =
        ["%Y-%m-%d", "%d %B %Y", "%-d %B %Y", "%B %d, %Y", "%B %-d, %Y", "%d %b %Y", "%b %d %Y", "%b %e", "%b %d"];
    let days = [-1_i64, 0, 1].map(|days| at.as_second() + days * 86_400);
    days.iter().filter_map(|second| jiff::Timestamp::from_second(*second).ok()).any(|day| {
        let day = day.to_zoned(jiff::tz::TimeZone::UTC);
        FORMS.iter().any(|form| value.contains(&day.strftime(form).to_string()))
    })
}

/// Whether the minutes and seconds of `hh:mm:ss` are within five minutes before or after: of any time zone.
fn is_near_clock(value: &str, at: jiff::Timestamp) -> bool {
    second_of_day(value).is_some_and(|second| distance(second, at.as_second(), 3600) <= 300)
}

/// Whether a time of the day moved as far as the clock did, give or take a minute.
fn moved_by(was: &str, is: &str, seconds: i64) -> bool {
    let times = second_of_day(was).zip(second_of_day(is));
    times.is_some_and(|(was, is)| distance(is - was, seconds, 86_400) <= 60)
}

/// The distance of two numbers on a circle.
fn distance(one: i64, other: i64, around: i64) -> i64 {
    let apart = (one - other).rem_euclid(around);
    apart.min(around - apart)
}

/// The second of the day of `hh:mm:ss`.
fn second_of_day(value: &str) -> Option<i64> {
    let mut parts = value.split(['.', ',']).next().unwrap_or_default().split(':').map(str::parse::<i64>);
    match (parts.next()?, parts.next()?, parts.next()?, parts.next()) {
        (Ok(hours), Ok(minutes), Ok(seconds), None) => Some(hours * 3600 + minutes * 60 + seconds),
        _ => None,
    }
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
        // An hour and ten seconds later, in the same zone.
        for (was, is, moved) in [
            ("07:36:59", "08:37:09", true),
            ("23:38:10", "00:38:20", true),
            ("07:36:59", "07:36:59", false),
            ("07:36:59", "09:37:09", false),
        ] {
            assert_eq!(moved_by(was, is, 3610), moved, "{was} to {is}");
        }
        assert!(
            is_near_epoch("1795412280", at) && is_near_epoch("1795412280123", at) && !is_near_epoch("1500000000", at)
        );
    }
}
