//! Which agent and which step made a run fail: by going back and doing it again.
//!
//! A [`Bench`] runs a program again and again, each time as a recorded run whose prefix comes from a record
//! ([`crate::replay`]).

mod agents;
mod analyzer;
mod bisect;
mod boundary;
mod budget;
mod correction;
mod counterfactual;
mod finding;
mod interval;
mod label;
mod leak;
mod order;
mod search;
mod settings;
mod trial;

pub use analyzer::Analyzer;
pub use budget::{Budget, Spent};
pub use correction::{Correction, CorrectionError, Corrections, Origin};
pub use counterfactual::Trace;
pub use finding::{AgentFinding, Arm, Decisive, Doubt, Finding, LabelRule, StepFinding};
pub use interval::{Interval, Share, difference, false_blame, power};
pub use label::label_of;
pub use settings::{Order, TraceSettings, Watch};
pub use trial::{Bench, Command, Executing, Sample, System, TrialError, Tried};
