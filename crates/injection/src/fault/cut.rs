//! `cut`: the reply ends early.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Attempts, Disturbance, Fault, Moment};

/// Ends the reply early.
///
/// A clean cut closes the framing properly: SDKs take the short reply for the whole. Any other is a connection that
/// closes mid-body: SDKs raise an error, and do not try again.
///
/// ```toml
/// [[injection]]
/// agent = "solver"
/// when.call = 0
/// fault.cut = { at = { after_frames = 5 }, clean = true }
///
/// [[check]]
/// agent = "solver"
/// messages = ["user: What is 12 + 30?"]
/// expect_fault = "cut"
/// ```
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cut {
    /// When.
    #[serde(default = "before_end")]
    pub at: Moment,
    /// Whether the framing is closed properly.
    #[serde(default)]
    pub clean: bool,
    /// With `clean`: whether an event stream still gets its end marker.
    #[serde(default)]
    pub done: bool,
    /// Which attempts of a call are disturbed.
    #[serde(default)]
    pub attempts: Attempts,
}

fn before_end() -> Moment {
    Moment::BeforeEnd
}

impl Fault for Cut {
    fn disturb(&self, _: u64, attempt: u32) -> Option<Disturbance> {
        let cut = Disturbance::Cut { at: self.at, clean: self.clean, end_marker: self.done };
        self.attempts.include(attempt).then_some(cut)
    }

    fn check(&self) -> Result<(), String> {
        if self.done && !self.clean {
            return Err("`done` needs `clean = true`: a broken connection carries no end marker".to_owned());
        }
        if self.at == Moment::BeforeRequest {
            return Err("`at` is `before_request`: expected a point of the reply, or the fault `reset`".to_owned());
        }
        Ok(())
    }

    fn explain(&self) -> String {
        let how = match (self.clean, self.done) {
            (true, true) => "as if it were whole, end marker included",
            (true, false) => "as if it were whole, without its end marker",
            (false, _) => "by closing the connection",
        };
        format!("ends the reply {} {how}, {}", self.at, self.attempts.words())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passes_its_parameters_on_and_refuses_contradictions() {
        let cut = Cut { at: Moment::BeforeEnd, clean: true, done: false, attempts: Attempts::First(1) };
        let expected = Disturbance::Cut { at: Moment::BeforeEnd, clean: true, end_marker: false };
        assert_eq!((cut.disturb(0, 0), cut.disturb(0, 1)), (Some(expected), None));
        assert_eq!(cut.check(), Ok(()));
        assert!(Cut { clean: false, done: true, ..cut.clone() }.check().is_err());
        assert!(Cut { at: Moment::BeforeRequest, ..cut }.check().is_err());
    }
}
