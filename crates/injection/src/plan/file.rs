//! The plan format as it is written: what serde reads and the JSON schema describes. Everything that a check beyond
//! types may refuse carries its place.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use schemars::JsonSchema;
use serde::de::value::{BorrowedStrDeserializer, SeqAccessDeserializer};
use serde::de::{Error, IntoDeserializer, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use toml::Spanned;

use crate::trajectory::Pattern;
use crate::trajectory::{Call, Side, StepIndex};
use crate::{fault, manipulator};

/// An injection plan: which errors are planted in a run, where and when.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[schemars(extend("$id" = "urn:aegis:schema:plan"))]
#[serde(deny_unknown_fields)]
#[schemars(title = "Injection plan")]
pub(super) struct PlanFile {
    /// Format of the file: 1.
    #[schemars(with = "Option<i64>", extend("const" = 1))]
    pub(super) format: Option<Spanned<i64>>,
    /// Seed of all draws.
    #[schemars(with = "Option<u64>")]
    pub(super) seed: Option<Spanned<u64>>,
    /// Injections, in order of application.
    #[serde(default)]
    #[expect(dead_code, reason = "described here; read one by one, so that one problem does not hide the next")]
    pub(super) injection: Vec<InjectionEntry>,
    /// Tests of the plan.
    #[serde(default)]
    #[expect(dead_code, reason = "described here; read one by one, so that one problem does not hide the next")]
    pub(super) check: Vec<CheckEntry>,
}

/// One error: who, when, what.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct InjectionEntry {
    /// Target agent: a name, a list, or a glob with `*` and `?`. Helpers (`planner/selector`) by exact name only;
    /// agents that the upstream names by their path there, or a glob of it.
    #[schemars(with = "Option<OneOrMany<String>>")]
    pub(super) agent: Option<Spanned<OneOrMany<String>>>,
    /// Target tool of an MCP server, in place of an agent: `search`, `SERVER/search`, a list, or a glob. Edits of its result are on
    /// side `response`, the default; edits of the arguments that it gets on side `request`.
    #[schemars(with = "Option<OneOrMany<String>>")]
    pub(super) tool: Option<Spanned<OneOrMany<String>>>,
    /// Target peer that speaks A2A, in place of an agent: a name, a list, or a glob. Sides as those of a tool.
    #[schemars(with = "Option<OneOrMany<String>>")]
    pub(super) peer: Option<Spanned<OneOrMany<String>>>,
    /// Instance of the agent, 0-based. Default: all.
    #[schemars(with = "Option<u32>")]
    pub(super) instance: Option<Spanned<u32>>,
    /// Failure mode of MAST, `FM-1.1` to `FM-3.3`; omitted for faults only.
    #[schemars(with = "Option<String>", extend("pattern" = r"^FM-(1\.[1-5]|2\.[1-6]|3\.[1-3])$"))]
    pub(super) failure_mode: Option<Spanned<String>>,
    /// Which of the agent's calls; all conditions must hold.
    #[schemars(required, with = "WhenEntry")]
    pub(super) when: Option<Spanned<WhenEntry>>,
    /// Side that is edited; required if the manipulator has two.
    #[schemars(with = "Option<Side>")]
    pub(super) side: Option<Spanned<Side>>,
    /// Which alternative answer is edited, 0-based. Default: all.
    #[schemars(with = "Option<u32>")]
    pub(super) choice: Option<Spanned<u32>>,
    /// Puts what the agent got into later requests that refer to the unedited reply at the upstream.
    #[schemars(with = "Option<bool>")]
    pub(super) retell: Option<Spanned<bool>>,
    /// The edit, by name.
    #[schemars(with = "Option<manipulator::ListedManipulator>")]
    pub(super) manipulator: Option<Spanned<manipulator::ListedManipulator>>,
    /// The fault, by name.
    #[schemars(with = "Option<fault::ListedFault>")]
    pub(super) fault: Option<Spanned<fault::ListedFault>>,
}

/// When an injection fires.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WhenEntry {
    /// Number of the agent's call, or a list, 0-based.
    #[schemars(with = "Option<OneOrMany<u32>>")]
    pub(super) call: Option<Spanned<OneOrMany<Call>>>,
    /// Number of the run's step, or a list, 0-based; counted in a recorded run.
    #[schemars(with = "Option<OneOrMany<u32>>")]
    pub(super) step: Option<Spanned<OneOrMany<StepIndex>>>,
    /// Every nth call of the agent: 0, n, 2n, …
    #[schemars(with = "Option<std::num::NonZeroU32>")]
    pub(super) every: Option<Spanned<u32>>,
    /// The agent's first n calls.
    #[schemars(with = "Option<std::num::NonZeroU32>")]
    pub(super) first: Option<Spanned<u32>>,
    /// The agent's last n calls, counted in a recorded run.
    #[schemars(with = "Option<std::num::NonZeroU32>")]
    pub(super) last_n: Option<Spanned<u32>>,
    /// Regular expression that matches in a message of the request.
    pub(super) contains: Option<Pattern>,
    /// Tool of which the request brings a new result.
    #[schemars(with = "Option<String>")]
    pub(super) tool: Option<Spanned<String>>,
    /// Probability of the draw, fixed by seed, run, agent and call.
    #[schemars(with = "Option<f64>", extend("exclusiveMinimum" = 0, "maximum" = 1))]
    pub(super) probability: Option<Spanned<f64>>,
    /// Every call.
    #[schemars(with = "Option<bool>", extend("const" = true))]
    pub(super) always: Option<Spanned<bool>>,
    /// Maximum deliveries per agent instance.
    #[schemars(with = "Option<std::num::NonZeroU32>")]
    pub(super) max_times: Option<Spanned<u32>>,
}

/// A test of the plan: a call and its expected result. `when.probability` counts as a hit.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CheckEntry {
    /// Agent that makes the call.
    #[schemars(with = "Option<String>")]
    pub(super) agent: Option<Spanned<String>>,
    /// Tool that is called, in place of an agent: `SERVER/TOOL`. Its result is the `reply`.
    #[schemars(with = "Option<String>")]
    pub(super) tool: Option<Spanned<String>>,
    /// Peer that is asked, in place of an agent. Its answer is the `reply`.
    #[schemars(with = "Option<String>")]
    pub(super) peer: Option<Spanned<String>>,
    /// Its instance, 0-based.
    #[serde(default)]
    pub(super) instance: u32,
    /// Number of its call, 0-based.
    #[serde(default)]
    pub(super) call: Call,
    /// Number of the run's step, 0-based, for injections with `step`.
    pub(super) step: Option<StepIndex>,
    /// Request: `role: text`, `role(name): text`, `tool(name): result`, `assistant calls name({"a": 1})`.
    #[schemars(required, with = "Vec<String>")]
    pub(super) messages: Option<Spanned<Vec<Spanned<String>>>>,
    /// Earlier answers of the run, oldest first: `agent: text`.
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    pub(super) earlier: Vec<Spanned<String>>,
    /// Names of the offered tools.
    #[serde(default)]
    pub(super) tools: Vec<String>,
    /// Whether the answer must be a JSON object.
    #[serde(default)]
    pub(super) json: bool,
    /// Answer of the model.
    pub(super) reply: Option<String>,
    /// Tool calls of the model: `name({"a": 1})`.
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    pub(super) reply_calls: Vec<Spanned<String>>,
    /// Answer of the manipulator's model: the rewritten text. No model is asked.
    pub(super) rewrite: Option<String>,
    /// Tool calls rewritten by the manipulator's model, in the order of `reply_calls`.
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    pub(super) rewrite_calls: Vec<Spanned<String>>,
    /// The exact request (a list, as `messages`) or answer (a text).
    #[schemars(with = "Option<OneOrMany<String>>")]
    pub(super) expect: Option<Spanned<Lines>>,
    /// The exact tool calls of the answer.
    #[schemars(with = "Option<Vec<String>>")]
    pub(super) expect_calls: Option<Vec<Spanned<String>>>,
    /// Texts that the answer contains; without a reply, the request.
    pub(super) expect_contains: Option<OneOrMany<String>>,
    /// Whether the call is edited or disturbed at all.
    pub(super) expect_changed: Option<bool>,
    /// The exact names of the offered tools.
    pub(super) expect_tools: Option<Vec<String>>,
    /// Texts that the question to the manipulator's model contains.
    pub(super) expect_question: Option<OneOrMany<String>>,
    /// Name of the fault that disturbs the call.
    #[schemars(with = "Option<String>")]
    pub(super) expect_fault: Option<Spanned<String>>,
}

/// A text, or a list of texts with the place of each.
#[derive(Debug)]
pub(super) enum Lines {
    Text(String),
    List(Vec<Spanned<String>>),
}

impl<'de> Deserialize<'de> for Lines {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextOrList;
        impl<'de> Visitor<'de> for TextOrList {
            type Value = Lines;
            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a text or a list of texts")
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Lines, E> {
                Ok(Lines::Text(text.to_owned()))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Lines, A::Error> {
                Deserialize::deserialize(SeqAccessDeserializer::new(list)).map(Lines::List)
            }
        }
        deserializer.deserialize_any(TextOrList)
    }
}

/// One value, or a list of them.
#[derive(Debug, Clone, Default)]
pub struct OneOrMany<T>(pub Vec<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for OneOrMany<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OneOrList<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for OneOrList<T> {
            type Value = OneOrMany<T>;
            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a value or a list of values")
            }
            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<OneOrMany<T>, E> {
                T::deserialize(BorrowedStrDeserializer::new(text)).map(|one| OneOrMany(vec![one]))
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<OneOrMany<T>, E> {
                T::deserialize(text.into_deserializer()).map(|one| OneOrMany(vec![one]))
            }
            fn visit_i64<E: Error>(self, number: i64) -> Result<OneOrMany<T>, E> {
                T::deserialize(number.into_deserializer()).map(|one| OneOrMany(vec![one]))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<OneOrMany<T>, A::Error> {
                Deserialize::deserialize(SeqAccessDeserializer::new(list)).map(OneOrMany)
            }
        }
        deserializer.deserialize_any(OneOrList(PhantomData))
    }
}

impl<T: JsonSchema> JsonSchema for OneOrMany<T> {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        format!("OneOrMany_{}", T::schema_name()).into()
    }
    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let one = generator.subschema_for::<T>();
        schemars::json_schema!({ "anyOf": [one, { "type": "array", "items": one }] })
    }
}
