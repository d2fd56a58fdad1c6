//! Parameters of a request: each API's names for them in one place, read and written alike.

use serde_json::Value;

use super::{
    Conversation, Sampling, SurfaceError, fields,
    splice::{Member, Node, Splices, member},
};

/// What an API calls the parameters of a request. All call the temperature and the sampled part alike.
#[derive(Debug)]
pub(super) struct Parameters {
    /// What such a request is called, with its article.
    pub request: &'static str,
    /// The longest answer, in tokens.
    pub longest: &'static str,
    /// The strings at which an answer stops, if the API has them.
    pub stop: Option<&'static str>,
    /// The backend's seed, if the API has one.
    pub seed: Option<&'static str>,
}

impl Parameters {
    /// How answers are to be drawn.
    pub(super) fn sampling(&self, members: &[Member<'_>]) -> Sampling {
        Sampling {
            temperature: member(members, "temperature").and_then(|value| value.value()),
            top_p: member(members, "top_p").and_then(|value| value.value()),
            seed: self.seed.and_then(|key| member(members, key)?.value()),
        }
    }

    /// Writes the parameters that differ.
    ///
    /// # Errors
    /// [`SurfaceError::NoPlace`] for one that the API does not have.
    pub(super) fn write(
        &self,
        root: &Node<'_>,
        members: &[Member<'_>],
        before: &Conversation,
        after: &Conversation,
        splices: &mut Splices,
    ) -> Result<(), SurfaceError> {
        let (old, new) = (before.sampling, after.sampling);
        let all: [(bool, Option<&str>, &str, Value); 6] = [
            (before.model != after.model, Some("model"), "model", after.model.as_str().into()),
            (before.max_tokens != after.max_tokens, Some(self.longest), "longest answer", after.max_tokens.into()),
            (before.stop != after.stop, self.stop, "stop strings", after.stop.clone().into()),
            (old.temperature != new.temperature, Some("temperature"), "temperature", new.temperature.into()),
            (old.top_p != new.top_p, Some("top_p"), "top_p", new.top_p.into()),
            (old.seed != new.seed, self.seed, "seed", new.seed.into()),
        ];
        for (_, key, what, value) in all.into_iter().filter(|(differs, ..)| *differs) {
            let key = key.ok_or_else(|| SurfaceError::NoPlace(format!("{} has no {what}", self.request)))?;
            fields::set(root, members, key, &value.to_string(), splices);
        }
        Ok(())
    }
}

/// What an API calls parameters that it keeps in an object of their own.
#[derive(Debug)]
pub(super) struct NestedParameters {
    /// The object.
    pub config: &'static str,
    /// The longest answer, in tokens.
    pub longest: &'static str,
    /// The strings at which an answer stops.
    pub stop: &'static str,
    /// The part of the probability mass that is sampled from.
    pub top_p: &'static str,
}

impl NestedParameters {
    /// The parameters that differ, each with what it is to be.
    pub(super) fn changed(&self, before: &Conversation, after: &Conversation) -> Vec<(&'static str, Value)> {
        let (old, new) = (before.sampling, after.sampling);
        let all: [(bool, &'static str, Value); 5] = [
            (before.max_tokens != after.max_tokens, self.longest, after.max_tokens.into()),
            (before.stop != after.stop, self.stop, after.stop.clone().into()),
            (old.temperature != new.temperature, "temperature", new.temperature.into()),
            (old.top_p != new.top_p, self.top_p, new.top_p.into()),
            (old.seed != new.seed, "seed", new.seed.into()),
        ];
        all.into_iter().filter(|(differs, ..)| *differs).map(|(_, key, value)| (key, value)).collect()
    }

    /// Writes parameters into the object. `spell` says how an object with these members spells a name.
    pub(super) fn write(
        &self,
        root: &Node<'_>,
        members: &[Member<'_>],
        changed: Vec<(&'static str, Value)>,
        spell: impl Fn(&[Member<'_>], &str) -> String,
        splices: &mut Splices,
    ) {
        if changed.is_empty() {
            return;
        }
        let key = spell(members, self.config);
        let Some(config) = member(members, &key).filter(|config| !config.is_null()) else {
            let config: Value = changed.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
            return fields::set(root, members, &key, &config.to_string(), splices);
        };
        let inner = config.members();
        for (key, value) in changed {
            fields::set(&config, &inner, &spell(&inner, key), &value.to_string(), splices);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::surface::{self, Conversation, Sampling, Surface, SurfaceError, ToolChoice};

    fn edited(name: &str, body: &str, edit: impl Fn(&mut Conversation)) -> Result<String, SurfaceError> {
        let surface: &dyn Surface = *surface::ALL.iter().find(|surface| surface.name() == name).expect("listed");
        let before = surface.read_request(body.as_bytes()).expect("a request");
        let mut after = before.clone();
        edit(&mut after);
        let written = surface.write_request(body.as_bytes(), &before, &after)?;
        assert_eq!(surface.read_request(&written).expect("still a request"), after, "{name}");
        Ok(String::from_utf8(written.to_vec()).expect("utf-8"))
    }

    #[test]
    fn each_api_has_its_own_names() {
        let drawn = Sampling { temperature: Some(1.5), top_p: Some(0.5), seed: None };
        for (name, body, expected) in [
            (
                "openai_responses",
                r#"{"model":"m", "input":"x" , "temperature":0}"#,
                r#"{"top_p":0.5,"max_output_tokens":5,"model":"n", "input":"x" , "temperature":1.5}"#,
            ),
            (
                "anthropic_messages",
                r#"{"model":"m","max_tokens": 9,"messages":[]}"#,
                r#"{"temperature":1.5,"top_p":0.5,"model":"n","max_tokens": 5,"messages":[]}"#,
            ),
            (
                "openai_completions",
                r#"{"model":"m","prompt":"x","top_p":1}"#,
                r#"{"max_tokens":5,"temperature":1.5,"model":"n","prompt":"x","top_p":0.5}"#,
            ),
        ] {
            let written = edited(name, body, |asked| {
                (asked.model, asked.max_tokens, asked.sampling) = ("n".to_owned(), Some(5), drawn);
            });
            let parsed = |text: &str| serde_json::from_str::<serde_json::Value>(text).expect("JSON");
            assert_eq!(parsed(&written.expect("has a place")), parsed(expected), "{name}");
            let seeded = edited(name, body, |asked| asked.sampling.seed = Some(7));
            assert_eq!(seeded.is_ok(), name == "openai_completions", "{name}: {seeded:?}");
            let stopped = edited(name, body, |asked| asked.stop = vec!["END".to_owned()]);
            assert_eq!(stopped.is_ok(), name != "openai_responses", "{name}: {stopped:?}");
        }
    }

    #[test]
    fn the_choice_among_tools_follows_the_tools() {
        let responses =
            r#"{"model":"m","tools":[{"type":"function","name":"a"}],"tool_choice":"required","input":"x"}"#;
        let messages = r#"{"model":"m","messages":[],"tools":[{"name":"a"}],"tool_choice":{"type":"any","disable_parallel_tool_use":true}}"#;
        let none = |asked: &mut Conversation| (asked.tools, asked.tool_choice) = (Vec::new(), ToolChoice::Auto);
        let named = |asked: &mut Conversation| asked.tool_choice = ToolChoice::Named("a".to_owned());
        assert_eq!(edited("openai_responses", responses, none).as_deref(), Ok(r#"{"model":"m","input":"x"}"#));
        assert_eq!(edited("anthropic_messages", messages, none).as_deref(), Ok(r#"{"model":"m","messages":[]}"#));
        let one = edited("openai_responses", responses, named).expect("has a place");
        assert!(one.contains(r#""tool_choice":{"type":"function","name":"a"}"#), "{one}");
        let one = edited("anthropic_messages", messages, named).expect("has a place");
        let kept = r#""tool_choice":{"type":"tool","name":"a","disable_parallel_tool_use":true}"#;
        assert!(one.contains(kept), "{one}");
    }
}
