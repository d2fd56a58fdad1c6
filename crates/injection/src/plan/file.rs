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
    /// The format of this file.
    #[schemars(with = "Option<i64>", extend("const" = 1))]
    pub(super) format: Option<Spanned<i64>>,
    /// What every draw depends on.
    #[schemars(with = "Option<u64>")]
    pub(super) seed: Option<Spanned<u64>>,
    /// The injections in the order in which they apply.
    #[serde(default)]
    #[expect(dead_code, reason = "described here; read one by one, so that one problem does not hide the next")]
    pub(super) injection: Vec<InjectionEntry>,
    /// The plan's own tests.
    #[serde(default)]
    #[expect(dead_code, reason = "described here; read one by one, so that one problem does not hide the next")]
    pub(super) check: Vec<CheckEntry>,
}

/// An error that is planted: by whom, when, which.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct InjectionEntry {
    /// The agent: a name, a list, or a glob with `*` and `?`. A helper such as `planner/selector` by exact name only; an agent that the upstream names as `/root/solver`, or `/root/*`.
    #[schemars(required, with = "OneOrMany<String>")]
    pub(super) agent: Option<Spanned<OneOrMany<String>>>,
    /// Which of several equal agents of that name, 0-based; each when left out.
    #[schemars(with = "Option<u32>")]
    pub(super) instance: Option<Spanned<u32>>,
    /// The failure mode of MAST, `FM-1.1` to `FM-3.3`; left out for faults only.
    #[schemars(with = "Option<String>", extend("pattern" = r"^FM-(1\.[1-5]|2\.[1-6]|3\.[1-3])$"))]
    pub(super) failure_mode: Option<Spanned<String>>,
    /// Which of the agent's calls. Every condition that is given must hold.
    #[schemars(required, with = "WhenEntry")]
    pub(super) when: Option<Spanned<WhenEntry>>,
    /// The side that is edited; implied where the manipulator has only one.
    #[schemars(with = "Option<Side>")]
    pub(super) side: Option<Spanned<Side>>,
    /// Which alternative answer is edited, 0-based; each when left out.
    #[schemars(with = "Option<u32>")]
    pub(super) choice: Option<Spanned<u32>>,
    /// Where the upstream keeps the reply and a later request goes on from it: that request says what the agent was
    /// told, in place of what is kept.
    #[schemars(with = "Option<bool>")]
    pub(super) retell: Option<Spanned<bool>>,
    /// The edit, by name.
    #[schemars(with = "Option<manipulator::ListedManipulator>")]
    pub(super) manipulator: Option<Spanned<manipulator::ListedManipulator>>,
    /// The disturbance, by name.
    #[schemars(with = "Option<fault::ListedFault>")]
    pub(super) fault: Option<Spanned<fault::ListedFault>>,
}

/// When an injection fires.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WhenEntry {
    /// The agent's own call is this, or one of these; 0-based.
    #[schemars(with = "Option<OneOrMany<u32>>")]
    pub(super) call: Option<Spanned<OneOrMany<Call>>>,
    /// The run's step is this, or one of these; 0-based, counted in a recorded run.
    #[schemars(with = "Option<OneOrMany<u32>>")]
    pub(super) step: Option<Spanned<OneOrMany<StepIndex>>>,
    /// The agent's own call is a multiple of this: 0, n, 2n, …
    #[schemars(with = "Option<std::num::NonZeroU32>")]
    pub(super) every: Option<Spanned<u32>>,
    /// One of the agent's first so many calls.
    #[schemars(with = "Option<std::num::NonZeroU32>")]
    pub(super) first: Option<Spanned<u32>>,
    /// One of the agent's last so many calls, counted in a recorded run.
    #[schemars(with = "Option<std::num::NonZeroU32>")]
    pub(super) last_n: Option<Spanned<u32>>,
    /// The text of a message of the request matches this regular expression.
    pub(super) contains: Option<Pattern>,
    /// The request brings a new result of this tool.
    #[schemars(with = "Option<String>")]
    pub(super) tool: Option<Spanned<String>>,
    /// A draw of this probability, fixed by seed, run, agent and call.
    #[schemars(with = "Option<f64>", extend("exclusiveMinimum" = 0, "maximum" = 1))]
    pub(super) probability: Option<Spanned<f64>>,
    /// Every call.
    #[schemars(with = "Option<bool>", extend("const" = true))]
    pub(super) always: Option<Spanned<bool>>,
    /// At most so many deliveries to each agent instance.
    #[schemars(with = "Option<std::num::NonZeroU32>")]
    pub(super) max_times: Option<Spanned<u32>>,
}

/// A test of the plan: a call, and what becomes of it. Draws of `when.probability` are taken to say yes.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CheckEntry {
    /// The agent that calls.
    #[schemars(required, with = "String")]
    pub(super) agent: Option<Spanned<String>>,
    /// Which of several equal agents it is, 0-based.
    #[serde(default)]
    pub(super) instance: u32,
    /// Its own call, 0-based.
    #[serde(default)]
    pub(super) call: Call,
    /// The step of the run, 0-based; for injections that aim by `step`.
    pub(super) step: Option<StepIndex>,
    /// The request: `role: text`, `role(name): text`, `tool(name): result`, `assistant calls name({"a": 1})`.
    #[schemars(required, with = "Vec<String>")]
    pub(super) messages: Option<Spanned<Vec<Spanned<String>>>>,
    /// Earlier answers of the run, oldest first: `agent: text`.
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    pub(super) earlier: Vec<Spanned<String>>,
    /// The tools on offer, by name.
    #[serde(default)]
    pub(super) tools: Vec<String>,
    /// Whether the answer must be a JSON object.
    #[serde(default)]
    pub(super) json: bool,
    /// What the model answers.
    pub(super) reply: Option<String>,
    /// The tool calls that the model makes: `name({"a": 1})`.
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    pub(super) reply_calls: Vec<Spanned<String>>,
    /// What the manipulator's model answers: the text as it rewrites it. No model is asked.
    pub(super) rewrite: Option<String>,
    /// The tool calls as the manipulator's model rewrites them, in the order of `reply_calls`.
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    pub(super) rewrite_calls: Vec<Spanned<String>>,
    /// The exact request (a list, written as `messages`), or the exact answer (a text).
    #[schemars(with = "Option<OneOrMany<String>>")]
    pub(super) expect: Option<Spanned<Lines>>,
    /// The exact tool calls of the answer.
    #[schemars(with = "Option<Vec<String>>")]
    pub(super) expect_calls: Option<Vec<Spanned<String>>>,
    /// A text, or texts, that the answer holds; without a reply, the request.
    pub(super) expect_contains: Option<OneOrMany<String>>,
    /// Whether anything happens to the call at all.
    pub(super) expect_changed: Option<bool>,
    /// The names of the tools on offer, exactly.
    pub(super) expect_tools: Option<Vec<String>>,
    /// A text, or texts, that the question to the manipulator's model holds.
    pub(super) expect_question: Option<OneOrMany<String>>,
    /// The fault that the call meets, by name.
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
