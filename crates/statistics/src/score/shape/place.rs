//! Where a step stands in its run and among the steps of its speaker, and how many there are: told from who speaks when, and
//! from no text.

use super::super::{names::is_agent, real};

/// How many numbers describe the place of a step.
pub(super) const PLACE_COUNT: usize = 23;

/// The place of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StepPlace {
    /// Steps before it.
    at: usize,
    /// Steps of the run.
    steps: usize,
    /// Earlier steps of its speaker.
    turn: usize,
    /// All steps of its speaker.
    turns: usize,
    /// Speakers that spoke before its speaker did for the first time.
    speaker: usize,
    /// All speakers of the run.
    speakers: usize,
    /// Whether its speaker speaks last in the run.
    speaks_last: bool,
    /// Whether nobody but people and executors of code comes after it.
    last_of_agents: bool,
}

impl StepPlace {
    /// The places of a run's steps, from who speaks, by key.
    pub(super) fn of_run(run: &[&str]) -> Vec<Self> {
        let mut heard: Vec<&str> = Vec::new();
        for key in run {
            if !heard.contains(key) {
                heard.push(key);
            }
        }
        let last_agent = run.iter().rposition(|key| is_agent(key));
        let turns = |of: &[&str], key: &str| of.iter().filter(|other| **other == key).count();
        let place = |(at, key): (usize, &&str)| Self {
            at,
            steps: run.len(),
            turn: run.get(..at).map_or(0, |before| turns(before, key)),
            turns: turns(run, key),
            speaker: heard.iter().position(|other| other == key).unwrap_or_default(),
            speakers: heard.len(),
            speaks_last: run.last() == Some(key),
            last_of_agents: last_agent == Some(at),
        };
        run.iter().enumerate().map(place).collect()
    }

    /// The place in numbers. Single places have one each, because a weighed sum of distances cannot point into the middle. What
    /// is the same for all steps of a run cannot order them, so the counts stand once more multiplied with places.
    pub(super) fn numbers(self) -> [f64; PLACE_COUNT] {
        let Self { at, steps, turn, turns, speaker, speakers, speaks_last, last_of_agents } = self;
        let flag = |is: bool| if is { 1.0 } else { 0.0 };
        let share = |part: usize, of: usize| real(part) / real(of.saturating_sub(1).max(1));
        let (to_end, turns_left) = (steps.saturating_sub(at + 1), turns.saturating_sub(turn + 1));
        let (long, cast) = (real(steps).ln(), real(speakers).ln());
        [
            // In the run.
            real(to_end).ln_1p(),
            flag(at == 1),
            flag(at == 2),
            flag(to_end == 1),
            flag(to_end == 2),
            flag(last_of_agents),
            // Among the steps of its speaker.
            flag(turn == 0),
            flag(turn == 1),
            flag(turns_left == 0),
            share(turn, turns),
            // Its speaker among the others.
            real(speaker).ln_1p(),
            flag(speaker == 0),
            flag(speaks_last),
            // How many there are: steps of its speaker, steps and speakers of the run.
            real(turns).ln(),
            flag(turns == 1),
            long,
            cast,
            // What the counts do to the places.
            share(at, steps) * long,
            real(at).ln_1p() * long,
            share(at, steps) * cast,
            share(turn, turns) * long,
            share(turn, turns) * real(turns).ln(),
            share(speaker, speakers) * long,
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_a_run() {
        let run = ["planner", "solver", "critic", "solver", "user"];
        let places = StepPlace::of_run(&run);
        let turns: Vec<_> = places.iter().map(|place| (place.turn, place.turns, place.speaker)).collect();
        assert_eq!(turns, [(0, 1, 0), (0, 2, 1), (0, 1, 2), (1, 2, 1), (0, 1, 3)]);
        assert!(places.iter().all(|place| (place.steps, place.speakers) == (5, 4)));
        let flagged = |number: usize| {
            let set = places.iter().enumerate().filter(|(_, place)| place.numbers()[number] > 0.0);
            set.map(|(at, _)| at).collect::<Vec<_>>()
        };
        assert_eq!(flagged(0), [0, 1, 2, 3], "steps that others follow");
        assert_eq!((flagged(1), flagged(2), flagged(3), flagged(4)), (vec![1], vec![2], vec![3], vec![2]));
        assert_eq!(flagged(5), [3], "the last step of an agent: who follows is a person");
        assert_eq!(flagged(7), [3], "a second call");
        assert_eq!(flagged(8), [0, 2, 3, 4], "last calls");
        assert_eq!((flagged(11), flagged(12)), (vec![0], vec![4]));
        assert_eq!(flagged(14), [0, 2, 4], "who speaks once");
        assert!(StepPlace::of_run(&[]).is_empty());
        let alone = StepPlace::of_run(&["solver"]);
        assert!(alone[0].numbers().iter().all(|number| number.is_finite()));
    }
}
