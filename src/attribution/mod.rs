//! Which agent and which step made a run fail: by going back and doing it again.
//!
//! A [`Bench`] runs a program again and again, each time as a recorded run whose prefix comes from a record
//! ([`crate::replay`]).

mod agents;
mod analyzer;
mod budget;
mod correction;
mod counterfactual;
mod finding;
mod interval;
mod label;
mod leak;
mod order;
mod trial;

pub use analyzer::Analyzer;
pub use budget::{Budget, Spent};
pub use correction::{Correction, CorrectionError, Corrections, Origin};
pub use counterfactual::{Trace, TraceSettings, Watch};
pub use finding::{AgentFinding, Arm, Decisive, Finding, StepFinding};
pub use interval::{Interval, Share, difference, false_blame};
pub use label::{LabelRule, label_of};
pub use order::Order;
pub use trial::{Bench, Command, Executing, Sample, System, TrialError, Tried};
