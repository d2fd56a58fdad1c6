//! Client verdict: how a program met the faults of its run, told from what was recorded.
//!
//! [`read()`] finds the calls that met trouble, planned or the upstream's own, with every try ([`Met`] says what each met);
//! the list of [`RULES`] then says what the client did: a trait worth knowing, or a defect. A planned fault that
//! was never delivered is inconclusive, never passed. [`survival()`] adds what the program came to, and whether any injection came to
//! work: what `test` reports. Pure: a recording in, a verdict out. `run` and `show` report it.
//! To add a rule: a function and one row of the list.

mod call;
mod delivery;
mod end;
mod junit;
mod met;
mod read;
mod reply;
mod report;
mod retry;
pub mod suite;
mod survival;
mod unfired;

pub use call::{TroubledCall, Try};
pub use delivery::InjectionDelivery;
pub use junit::{JudgedRun, Strictness, cases, junit};
pub use met::Met;
pub use read::read;
pub use report::{AgentSummary, CallVerdict, ClientVerdict, FaultVerdict, Judgement, Remark};
pub use survival::{FindingKind, FindingPlace, Survival, SurvivalFinding, SurvivalResult, survival};

/// What a rule says of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Weight {
    /// Worth knowing; nothing is wrong with it.
    Trait,
    /// A client that is made well does not do this.
    Defect,
}

/// One way in which a client may meet trouble.
#[derive(Debug, Clone, Copy)]
pub struct ClientRule {
    /// Its name in reports.
    pub name: &'static str,
    /// What it says of the client.
    pub weight: Weight,
    /// What it looks for, with its threshold.
    pub says: &'static str,
    /// Where the rule comes from.
    pub source: &'static str,
    /// What was seen, in words, where it holds.
    pub judge: fn(&TroubledCall) -> Option<String>,
}

/// Every rule, in the order in which reports list them.
pub const RULES: &[ClientRule] = &[
    ClientRule {
        name: "healed",
        weight: Weight::Trait,
        says: "a later try of the call was answered",
        source: "openai-python and anthropic-python READMEs, Retries: connection errors, 408, 409, 429 and 5xx, twice",
        judge: retry::healed,
    },
    ClientRule {
        name: "retried",
        weight: Weight::Trait,
        says: "the call was tried again, and no try was answered",
        source: "the same",
        judge: retry::retried,
    },
    ClientRule {
        name: "cannot_be_told",
        weight: Weight::Trait,
        says: "equal words follow the failure, and nothing tells another try from another call that asks the same",
        source: "two callers that ask the same leave the same bytes as one that tries again",
        judge: retry::why_undecided,
    },
    ClientRule {
        name: "ignored_retry_after",
        weight: Weight::Defect,
        says: "a try came before the time that the reply named in retry-after or retry-after-ms",
        source: "RFC 9110 §10.2.3; OpenAI and Anthropic, Rate limits",
        judge: retry::ignored_retry_after,
    },
    ClientRule {
        name: "retried_non_retryable",
        weight: Weight::Defect,
        says: "a try followed a status other than 408, 409, 429 and 5xx, or `x-should-retry: false`; one with a renewed key may \
               follow 401 and 403",
        source: "openai-python and openai-node, which statuses are retried; OpenAI, Error codes",
        judge: retry::retried_non_retryable,
    },
    ClientRule {
        name: "no_backoff",
        weight: Weight::Defect,
        says: "a try came within 100 ms of a 429 or 5xx that named no time, or again within 100 ms of a lost connection",
        source: "OpenAI, Rate limits: exponential backoff; both SDKs wait 375 ms at least",
        judge: retry::no_backoff,
    },
    ClientRule {
        name: "retry_storm",
        weight: Weight::Defect,
        says: "more than 11 tries of one call, or more than 5 within a second",
        source: "OpenAI Cookbook, How to handle rate limits: 10 retries at most",
        judge: retry::retry_storm,
    },
    ClientRule {
        name: "hung_up",
        weight: Weight::Trait,
        says: "the client closed the connection itself before the reply was whole",
        source: "the SDKs' `timeout`",
        judge: end::hung_up,
    },
    ClientRule {
        name: "endured_stall",
        weight: Weight::Defect,
        says: "the client waited 60 s or more for a reply that never ended",
        source: "RFC 9110 §9.5: a client bounds its waits; the SDKs' own bound is 10 minutes",
        judge: end::endured_stall,
    },
    ClientRule {
        name: "accepted_truncated",
        weight: Weight::Defect,
        says: "a reply that was cut short was taken for the answer: quoted in a later request, or, where its connection \
               ended as after a whole one, never asked for again by a program that then ended well",
        source: "OpenAI and Anthropic, Streaming: a reply is whole when its finish or stop reason is there",
        judge: reply::accepted_truncated,
    },
    ClientRule {
        name: "took_altered",
        weight: Weight::Trait,
        says: "a reply with other content than the model gave was taken",
        source: "nothing on the wire shows a client that it is another",
        judge: reply::took_altered,
    },
    ClientRule {
        name: "gave_up",
        weight: Weight::Trait,
        says: "no try was answered and no more were made; the program went on or ended well without",
        source: "the SDKs raise the error after their last try",
        judge: end::gave_up,
    },
    ClientRule {
        name: "crashed",
        weight: Weight::Defect,
        says: "the program's next act was to end with an error code or by a signal, and no check called that a success",
        source: "an error that nobody caught ends Python and Node with exit code 1",
        judge: end::crashed,
    },
    ClientRule {
        name: "stuck",
        weight: Weight::Defect,
        says: "the program ran out of its time while it waited for the call or tried it again",
        source: "`run --timeout`",
        judge: end::stuck,
    },
];

#[cfg(test)]
mod tests;
