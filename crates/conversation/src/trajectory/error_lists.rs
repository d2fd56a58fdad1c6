//! The planted errors of a label, sorted by what is shown of each.

use super::{Evidence, JointCause, Necessity, Need};

/// Where a label lists a planted error.
#[derive(Debug, Clone, Copy)]
enum ErrorList {
    /// Among the errors: the failure needs it, or it is one of those that did it together.
    Errors,
    /// Among the others: the failure does not need it.
    Others,
    /// Apart from both: nothing is shown of it.
    NotShown,
}

/// The planted errors of a label, each in its list.
#[derive(Debug, Clone, PartialEq)]
pub struct ErrorLists<T> {
    /// Those that the failure needs, or that did it together.
    pub errors: Vec<T>,
    /// Those that it does not need.
    pub others: Vec<T>,
    /// Those of which nothing is shown.
    pub not_shown: Vec<T>,
}

impl Evidence {
    /// What several planted errors are to the failure; `None` where there are not several.
    pub fn joint_cause(&self) -> Option<JointCause> {
        JointCause::from_necessities(&self.necessity)
    }

    /// The same evidence, with the word for what its errors are together.
    #[must_use]
    pub fn with_joint_cause(self) -> Self {
        let cause = self.joint_cause();
        Self {
            overdetermined: cause == Some(JointCause::Overdetermined),
            joint: cause == Some(JointCause::Joint),
            ..self
        }
    }

    /// Sorts planted errors into the lists of a label. `about`: whether what is known is about this one.
    pub fn sorted<T>(&self, planted: impl Iterator<Item = T>, about: impl Fn(&Necessity, &T) -> bool) -> ErrorLists<T> {
        let cause = self.joint_cause();
        let list = |error: &T| {
            let known = self.necessity.iter().find(|one| about(one, error)).map(|one| one.state);
            match (known, cause) {
                (None | Some(Need::Necessary), _)
                | (_, Some(JointCause::Overdetermined))
                | (Some(Need::NotShown), Some(JointCause::Joint)) => ErrorList::Errors,
                (Some(Need::NotShown), _) => ErrorList::NotShown,
                (Some(Need::NotNeeded), _) => ErrorList::Others,
            }
        };
        let mut lists = ErrorLists { errors: Vec::new(), others: Vec::new(), not_shown: Vec::new() };
        for error in planted {
            match list(&error) {
                ErrorList::Errors => lists.errors.push(error),
                ErrorList::Others => lists.others.push(error),
                ErrorList::NotShown => lists.not_shown.push(error),
            }
        }
        lists
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trajectory::necessity::tests::one;

    #[test]
    fn what_several_errors_are_together_is_told_from_each() {
        use Need::{Necessary, NotNeeded, NotShown};
        for (states, cause, lists) in [
            (&[][..], None, [4, 0, 0]),
            (&[(Necessary, 2e3), (Necessary, 1e3)], Some(JointCause::Necessary), [4, 0, 0]),
            (&[(Necessary, 2e3), (NotNeeded, 0.1)], Some(JointCause::Necessary), [3, 1, 0]),
            (&[(Necessary, 2e3), (NotShown, 0.1), (NotNeeded, 0.1)], Some(JointCause::Necessary), [2, 1, 1]),
            // One that contributes beside one that is necessary is not shown all the same.
            (&[(Necessary, 2e3), (NotShown, 50.0)], Some(JointCause::Necessary), [3, 0, 1]),
            (&[(NotNeeded, 0.1), (NotNeeded, 0.1)], Some(JointCause::Overdetermined), [4, 0, 0]),
            (&[(NotShown, 50.0), (NotShown, 40.0)], Some(JointCause::Joint), [4, 0, 0]),
            (&[(NotShown, 50.0), (NotNeeded, 0.1), (NotShown, 40.0)], Some(JointCause::Joint), [3, 1, 0]),
            (&[(NotShown, 50.0), (NotShown, 39.0)], Some(JointCause::NotShown), [2, 0, 2]),
            (&[(NotShown, 50.0), (NotNeeded, 0.1)], Some(JointCause::NotShown), [2, 1, 1]),
        ] {
            let number = |at: usize| u32::try_from(at).expect("few");
            let necessity =
                states.iter().enumerate().map(|(at, (state, e))| one(number(at), *state, *e)).collect::<Vec<_>>();
            let evidence = Evidence { necessity, ..Evidence::default() }.with_joint_cause();
            assert_eq!(evidence.joint_cause(), cause, "{states:?}");
            let words = (evidence.overdetermined, evidence.joint);
            assert_eq!(words, (cause == Some(JointCause::Overdetermined), cause == Some(JointCause::Joint)));
            // Four errors: of those about which nothing is said the label says what it said.
            let sorted = evidence.sorted(0..4_u32, |one, error| one.injection == *error);
            let counts = [&sorted.errors, &sorted.others, &sorted.not_shown].map(Vec::len);
            assert_eq!(counts, lists, "{states:?}");
        }
    }
}
