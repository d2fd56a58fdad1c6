//! Equal questions, and which of them a request tries again.
//!
//! Two agents may ask the same at the same time, and one of them be refused. Its next try has the same bytes as the
//! other's question, as a further agent's would have. What the client says of itself decides, then what became of each.

/// How often a client says that it has tried before (`x-stainless-retry-count`); `None` where it says nothing.
pub type SaidTries = Option<u32>;

/// Equal questions, in the order in which they were first asked.
#[derive(Debug, Clone)]
pub struct Tries<T>(Vec<RequestTry<T>>);

#[derive(Debug, Clone)]
struct RequestTry<T> {
    whose: T,
    /// The latest attempt.
    attempt: u32,
    /// Attempts under way: a client that gives up and tries again may be quicker than the end of its connection.
    in_flight: u32,
    answered: bool,
}

impl<T> RequestTry<T> {
    fn has_failed(&self) -> bool {
        self.in_flight == 0 && !self.answered
    }
}

impl<T> Default for Tries<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Tries<T> {
    /// The question that a request asks again, of those that `may` be meant, with the number of this attempt; `None`:
    /// it is one of its own.
    ///
    /// A client that counts its tries is believed: among the questions that have seen no more attempts, those that have
    /// seen as many come first, then those that failed, before any that is under way, before any that was answered.
    /// One that does not count asks again what failed, the earliest first. One that counts and says that this is its
    /// first try may be a program that tries by itself, after its client has given up: that asks again what was tried
    /// as often as clients of the run were seen to try (`most`), where nothing equal is under way or was asked since.
    pub fn again(&mut self, said: SaidTries, most: u32, may: impl Fn(&T) -> bool) -> Option<(&mut T, u32)> {
        let open = self.0.iter().any(|entry| entry.in_flight > 0);
        let last = self.0.len();
        let known = self.0.iter_mut().enumerate().filter(|(_, entry)| may(&entry.whose));
        let (_, found) = match said {
            None => known.into_iter().find(|(_, entry)| entry.has_failed()),
            Some(0) => {
                let given_up = |entry: &RequestTry<T>| entry.has_failed() && entry.attempt >= most;
                known.into_iter().find(|(at, entry)| given_up(entry) && !open && at + 1 == last)
            }
            Some(tries) => {
                let rank = |entry: &RequestTry<T>| {
                    let state = if entry.has_failed() { 0 } else { 1 + u32::from(entry.in_flight == 0) };
                    let fits = entry.attempt + 1 == tries;
                    match (state, fits) {
                        (0, true) => 0,
                        (1, true) => 1,
                        (0, false) => 2,
                        (1, false) => 4,
                        (_, true) => 3,
                        (_, false) => 5,
                    }
                };
                known.into_iter().filter(|(_, entry)| entry.attempt < tries).min_by_key(|(_, entry)| rank(entry))
            }
        }?;
        found.attempt += 1;
        found.in_flight += 1;
        found.answered = false;
        Some((&mut found.whose, found.attempt))
    }

    /// A question is asked for the first time.
    pub fn ask(&mut self, whose: T) {
        // Of those that were answered, one is enough: a client that tries on all the same means the latest.
        let answered = |entry: &RequestTry<T>| entry.in_flight == 0 && entry.answered;
        let latest = self.0.iter().rposition(answered);
        let mut at = 0;
        self.0.retain(|entry| {
            at += 1;
            !answered(entry) || Some(at - 1) == latest
        });
        self.0.push(RequestTry { whose, attempt: 0, in_flight: 1, answered: false });
    }

    /// An attempt is over.
    pub fn end(&mut self, is: impl Fn(&T) -> bool, failed: bool) {
        if let Some(entry) = self.0.iter_mut().find(|entry| entry.in_flight > 0 && is(&entry.whose)) {
            entry.in_flight -= 1;
            entry.answered |= !failed;
        }
    }

    /// Whether any is under way.
    pub fn in_flight(&self) -> bool {
        self.0.iter().any(|entry| entry.in_flight > 0)
    }

    /// The question of somebody.
    pub fn find(&mut self, is: impl Fn(&T) -> bool) -> Option<&mut T> {
        self.0.iter_mut().map(|entry| &mut entry.whose).find(|whose| is(whose))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `?` asks without a count, `0`, `1`, … with one; `!a` fails, `.a` is answered → who each asking is, and its attempt.
    fn told(events: &str) -> String {
        let mut tries = Tries::default();
        let mut next = b'a';
        let mut told = Vec::new();
        let mut most = 0;
        for event in events.split(' ') {
            let whose = event.as_bytes().get(1).copied();
            match event.bytes().next() {
                Some(b'!') => tries.end(|known| Some(*known) == whose, true),
                Some(b'.') => tries.end(|known| Some(*known) == whose, false),
                _ => {
                    let known =
                        tries.again(event.parse().ok(), most, |_| true).map(|(whose, attempt)| (*whose, attempt));
                    most = event.parse().map_or(most, |said: u32| most.max(said));
                    let (whose, attempt) = known.unwrap_or_else(|| {
                        tries.ask(next);
                        next += 1;
                        (next - 1, 0)
                    });
                    told.push(format!("{}{attempt}", char::from(whose)));
                }
            }
        }
        told.join(" ")
    }

    #[test]
    fn a_try_is_bound_to_what_failed() {
        for (events, expected) in [
            // One after the other: the second is a question of its own, unless the first failed.
            ("? .a ?", "a0 b0"),
            ("? !a ?", "a0 a1"),
            ("0 !a 0", "a0 a1"),
            ("0 !a 1 !a 2 .a 0", "a0 a1 a2 b0"),
            // Two at once, of which either failed; the other may have been answered before, after or not yet.
            ("? ? !a .b ?", "a0 b0 a1"),
            ("? ? .b !a ?", "a0 b0 a1"),
            ("? ? !b .a ?", "a0 b0 b1"),
            ("? ? .a !b ?", "a0 b0 b1"),
            ("0 0 !a 1 .b", "a0 b0 a1"),
            // A third asks while the first waits to try again.
            ("0 0 !a 0 1", "a0 b0 c0 a1"),
            ("0 0 !a .b 0 1", "a0 b0 c0 a1"),
            // It has been seen that clients try again: what is asked for the first time is another question.
            ("0 !a 1 .a 0 !b 0", "a0 a1 b0 c0"),
            ("0 !a 1 !a 0", "a0 a1 a2"),
            // Both failed, and try again in either order, as often as they say.
            ("0 0 !a !b 1 1", "a0 b0 a1 b1"),
            ("0 0 !a 1 !a !b 2 1", "a0 b0 a1 a2 b1"),
            ("0 0 !a 1 !a !b 1 2", "a0 b0 a1 b1 a2"),
            // The client gave up and tries again before its connection is seen to end: not the one that was answered.
            ("0 0 .b 1 !a .a", "a0 b0 a1"),
            ("0 1 !a !a 2", "a0 a1 a2"),
            ("0 1 !a .a 0", "a0 a1 b0"),
            // It tries again what was answered: nothing else can be meant.
            ("0 .a 1", "a0 a1"),
            // A first try that never arrived.
            ("1", "a0"),
            ("0 1 1", "a0 a1 b0"),
        ] {
            assert_eq!(told(events), expected, "{events}");
        }
    }

    #[test]
    fn what_was_answered_is_not_kept() {
        let mut tries = Tries::default();
        for whose in 0..1000 {
            tries.ask(whose);
            tries.end(|known| *known == whose, false);
        }
        assert!(tries.0.len() <= 2);
    }
}
