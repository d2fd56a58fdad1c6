//! Which tries of a step a fault meets. SDKs send a failed call again, so a fault that meets the first try only is
//! often healed before the agent program sees it.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};

/// `"all"`, `"first"`, or the number of attempts from the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Attempts {
    /// Every try: the agent program sees the failure.
    #[default]
    All,
    /// This many tries; those after pass.
    First(u32),
}

impl Attempts {
    /// Whether this try, 0 for the first, is met.
    pub fn include(self, attempt: u32) -> bool {
        match self {
            Attempts::All => true,
            Attempts::First(count) => attempt < count,
        }
    }

    /// The rest of a sentence: which tries.
    pub(super) fn words(self) -> String {
        match self {
            Attempts::All => "on every try".to_owned(),
            Attempts::First(1) => "on the first try".to_owned(),
            Attempts::First(count) => format!("on the first {count} tries"),
        }
    }
}

impl<'de> Deserialize<'de> for Attempts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AttemptsVisitor;
        impl Visitor<'_> for AttemptsVisitor {
            type Value = Attempts;
            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("`all`, `first` or a number from 1")
            }
            fn visit_str<E: Error>(self, word: &str) -> Result<Attempts, E> {
                match word {
                    "all" => Ok(Attempts::All),
                    "first" => Ok(Attempts::First(1)),
                    _ => Err(E::unknown_variant(word, &["all", "first"])),
                }
            }
            fn visit_i64<E: Error>(self, number: i64) -> Result<Attempts, E> {
                match u32::try_from(number) {
                    Ok(count) if count > 0 => Ok(Attempts::First(count)),
                    _ => Err(E::invalid_value(Unexpected::Signed(number), &self)),
                }
            }
        }
        deserializer.deserialize_any(AttemptsVisitor)
    }
}

impl JsonSchema for Attempts {
    fn schema_name() -> Cow<'static, str> {
        "Attempts".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "Which tries of a call are met: `all`, `first`, or how many from the first on.",
            "anyOf": [{"enum": ["all", "first"]}, {"type": "integer", "minimum": 1}]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn which_tries() {
        let read =
            |text: &str| serde::Deserialize::deserialize(toml::de::ValueDeserializer::parse(text).expect("toml")).ok();
        for (text, met) in
            [("\"all\"", [true, true, true]), ("\"first\"", [true, false, false]), ("2", [true, true, false])]
        {
            let attempts: Attempts = read(text).expect(text);
            assert_eq!([0, 1, 2].map(|attempt| attempts.include(attempt)), met, "{text}");
        }
        for bad in ["0", "-1", "\"none\"", "true"] {
            assert_eq!(read(bad), None::<Attempts>, "{bad}");
        }
    }
}
