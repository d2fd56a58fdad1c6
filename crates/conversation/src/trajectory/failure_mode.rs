//! The 14 failure modes of MAST. A code alone is ambiguous (public tables disagree on the names), so a mode is
//! always written as code + name + taxonomy version.

use serde::{Deserialize, Serialize, Serializer, ser::SerializeStruct};

use super::nearest;

/// The taxonomy whose codes and names this crate writes: MAST, arXiv 2503.13657v2, table 1.
pub const TAXONOMY: &str = "MAST-2503.13657v2";

/// A code that MAST does not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown failure mode `{code}`: expected one of FM-1.1 to FM-1.5, FM-2.1 to FM-2.6, FM-3.1 to FM-3.3{}",
    .nearest.map(|n| format!("; did you mean `{n}`?")).unwrap_or_default())]
pub struct UnknownFailureMode {
    /// What was written.
    pub code: String,
    /// The nearest code or name, if any is near.
    pub nearest: Option<&'static str>,
}

macro_rules! failure_modes {
    ($($variant:ident $code:literal $name:literal $meaning:literal)*) => {
        /// A failure mode of MAST.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, schemars::JsonSchema)]
        #[schemars(with = "WrittenMode")]
        pub enum FailureMode { $(#[doc = concat!($name, ": ", $meaning)] $variant,)* }

        impl FailureMode {
            /// All modes, in code order.
            pub const ALL: &'static [FailureMode] = &[$(FailureMode::$variant),*];
            /// The code, for example `FM-1.3`.
            pub fn code(self) -> &'static str { match self { $(FailureMode::$variant => $code),* } }
            /// MAST's name, for example `step repetition`.
            pub fn name(self) -> &'static str { match self { $(FailureMode::$variant => $name),* } }
            /// One sentence: what an agent in this mode does.
            pub fn meaning(self) -> &'static str { match self { $(FailureMode::$variant => $meaning),* } }
        }
    };
}

failure_modes! {
    DisobeyTaskSpecification "FM-1.1" "disobey task specification" "violates a stated constraint, format or goal of the task"
    DisobeyRoleSpecification "FM-1.2" "disobey role specification" "acts outside the responsibilities of its own role"
    StepRepetition "FM-1.3" "step repetition" "does again, without need, a step that is already completed"
    LossOfConversationHistory "FM-1.4" "loss of conversation history" "falls back to an earlier state, recent context unseen"
    UnawareOfTermination "FM-1.5" "unaware of termination conditions" "does not recognise when the work is to stop"
    ConversationReset "FM-2.1" "conversation reset" "starts the dialogue over, progress lost"
    FailToAskForClarification "FM-2.2" "fail to ask for clarification" "acts on unclear data where it should ask"
    TaskDerailment "FM-2.3" "task derailment" "drifts from the given objective to something else"
    InformationWithholding "FM-2.4" "information withholding" "keeps from other agents what they need"
    IgnoredInput "FM-2.5" "ignored other agent's input" "disregards or insufficiently considers a peer's input"
    ReasoningActionMismatch "FM-2.6" "reasoning-action mismatch" "acts against its own reasoning"
    PrematureTermination "FM-3.1" "premature termination" "ends before the objective is met"
    IncompleteVerification "FM-3.2" "no or incomplete verification" "omits, wholly or in part, the check of outcomes"
    IncorrectVerification "FM-3.3" "incorrect verification" "checks, and confirms what is wrong or rejects what is right"
}

impl FailureMode {
    /// Reads a code such as `FM-1.3`.
    ///
    /// # Errors
    /// [`UnknownFailureMode`] with the nearest code.
    pub fn parse(code: &str) -> Result<Self, UnknownFailureMode> {
        Self::ALL.iter().copied().find(|mode| mode.code() == code).ok_or_else(|| UnknownFailureMode {
            code: code.chars().take(80).collect(),
            nearest: Self::near(code).or_else(|| {
                let by_name =
                    Self::ALL.iter().find(|mode| mode.name().eq_ignore_ascii_case(&code.replace(['_', '-'], " ")));
                by_name.map(|mode| mode.code())
            }),
        })
    }

    /// The code that was meant, if that can be told: its first figure is right.
    /// By letters alone every code is near every other.
    fn near(code: &str) -> Option<&'static str> {
        let kind = |code: &str| {
            let (kind, _) = code.split_once('.')?;
            Some(kind.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_uppercase())
        };
        let Some(wanted) = kind(code) else { return nearest(code, Self::ALL.iter().map(|mode| mode.code())) };
        let alike =
            Self::ALL.iter().map(|mode| mode.code()).filter(|known| kind(known).is_some_and(|kind| kind == wanted));
        // A number beyond the last is nearest to the last.
        nearest(code, alike.rev())
    }
}

/// A mode as it is written: for its schema alone.
#[derive(schemars::JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct WrittenMode {
    /// The code, for example `FM-1.3`.
    #[schemars(extend("enum" = FailureMode::ALL.iter().map(|mode| mode.code()).collect::<Vec<_>>()))]
    code: String,
    /// MAST's name, for example `step repetition`.
    name: String,
    /// The taxonomy that code and name are of.
    taxonomy: String,
}

impl Serialize for FailureMode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut mode = serializer.serialize_struct("FailureMode", 3)?;
        mode.serialize_field("code", self.code())?;
        mode.serialize_field("name", self.name())?;
        mode.serialize_field("taxonomy", TAXONOMY)?;
        mode.end()
    }
}

impl<'de> Deserialize<'de> for FailureMode {
    /// Accepts the code alone (plans) or the object that [`Serialize`] writes (records).
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = FailureMode;
            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("a failure mode code such as `FM-1.3`")
            }
            fn visit_str<E: serde::de::Error>(self, code: &str) -> Result<FailureMode, E> {
                FailureMode::parse(code).map_err(E::custom)
            }
            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<FailureMode, A::Error> {
                let mut code = None;
                while let Some((key, value)) = map.next_entry::<String, String>()? {
                    if key == "code" {
                        code = Some(value);
                    }
                }
                let code = code.ok_or_else(|| serde::de::Error::missing_field("code"))?;
                FailureMode::parse(&code).map_err(serde::de::Error::custom)
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fourteen_modes_with_distinct_codes_and_names() {
        assert_eq!(FailureMode::ALL.len(), 14);
        for mode in FailureMode::ALL {
            assert_eq!(FailureMode::parse(mode.code()), Ok(*mode));
            let json = serde_json::to_string(mode).expect("serialises");
            assert_eq!(serde_json::from_str::<FailureMode>(&json).expect("reads back"), *mode);
        }
    }

    #[test]
    fn unknown_codes_name_the_nearest() {
        assert_eq!(FailureMode::parse("FM-1.33").expect_err("unknown").nearest, Some("FM-1.3"));
        assert_eq!(FailureMode::parse("task derailment").expect_err("a name").nearest, Some("FM-2.3"));
        assert_eq!(FailureMode::parse("Task_Derailment").expect_err("a name").nearest, Some("FM-2.3"));
        for (code, near) in [
            ("FM-2.7", Some("FM-2.6")),
            ("fm2.3", Some("FM-2.3")),
            ("FM-21", Some("FM-2.1")),
            ("FM-3.11", Some("FM-3.1")),
            ("FM-9.9", None),
            ("FM-4.1", None),
            ("FM-", None),
        ] {
            assert_eq!(FailureMode::parse(code).expect_err("unknown").nearest, near, "{code}");
        }
        assert_eq!(FailureMode::parse("laziness").expect_err("no mode").nearest, None);
    }

    #[test]
    fn codes_names_and_meanings_are_those_of_mast() {
        for (mode, code, name, meaning) in [
            (FailureMode::StepRepetition, "FM-1.3", "step repetition", "does again"),
            (FailureMode::IgnoredInput, "FM-2.5", "ignored other agent's input", "disregards"),
            (
                FailureMode::IncorrectVerification,
                "FM-3.3",
                "incorrect verification",
                "checks, and confirms what is wrong",
            ),
        ] {
            assert_eq!((mode.code(), mode.name()), (code, name));
            assert!(mode.meaning().starts_with(meaning), "{}", mode.meaning());
        }
    }

    #[test]
    fn records_say_the_taxonomy_too_and_plans_need_not() {
        let mode = FailureMode::StepRepetition;
        let record = serde_json::json!({"code": "FM-1.3", "name": "step repetition", "taxonomy": TAXONOMY});
        assert_eq!(serde_json::to_value(mode).expect("serialises"), record);
        let read = |value: serde_json::Value| serde_json::from_value::<FailureMode>(value);
        for value in [record, "FM-1.3".into(), serde_json::json!({"taxonomy": "x", "code": "FM-1.3"})] {
            assert_eq!(read(value).expect("reads"), mode);
        }
        for (value, expected) in [
            (serde_json::json!({"name": "step repetition"}), "missing field `code`"),
            (serde_json::json!({"code": "FM-9.9"}), "unknown failure mode `FM-9.9`"),
            ("FM-9.9".into(), "unknown failure mode `FM-9.9`"),
            (5.into(), "expected a failure mode code such as `FM-1.3`"),
        ] {
            let error = read(value).expect_err(expected).to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
