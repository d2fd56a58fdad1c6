//! A tracer: a model that was trained to say who erred, asked in the words it was trained on.

use super::{
    Abstention, Cuts, Dialogue, JudgeQuestion, LoggedRun, Method, MethodAnswer, Needs, Pause, PredictedStep, View,
    predicted, whowhen,
};
use crate::dataset::formats::{Prompt, TracerPrompt};

/// Longest answer, in tokens: a reasoning tracer thinks before its list.
const LONGEST_ANSWER: u64 = 2048;

/// A tracer under the name that its rows bear.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tracer {
    name: String,
    asking: TracerAsking,
}

/// How a tracer is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TracerAsking {
    /// As the public script of Who&When asks about the whole log: one error, three lines.
    WhoWhen,
    /// As Aegis published: a set of agents and failure modes, or nobody.
    Aegis(TracerPrompt),
    /// As the rows of an export ask: a set of agents, steps and failure modes, or nobody.
    Rows(TracerPrompt),
}

impl TracerAsking {
    /// The names that ship.
    pub fn names() -> impl Iterator<Item = &'static str> {
        std::iter::once(WHOWHEN).chain(TracerPrompt::names())
    }

    /// One of the [`names`](Self::names).
    pub fn named(name: &str) -> Option<Self> {
        match name {
            WHOWHEN => Some(Self::WhoWhen),
            AEGIS => TracerPrompt::named(name).map(Self::Aegis),
            _ => TracerPrompt::named(name).map(Self::Rows),
        }
    }

    /// Whether the tracer expects the right answer in its question.
    pub fn tells_answer(&self) -> bool {
        match self {
            Self::WhoWhen => false,
            Self::Aegis(prompt) | Self::Rows(prompt) => prompt.tells_answer(),
        }
    }
}

const WHOWHEN: &str = "whowhen";
const AEGIS: &str = "aegis";

impl Tracer {
    /// A tracer of that name.
    pub fn new(name: impl Into<String>, asking: TracerAsking) -> Self {
        Self { name: name.into(), asking }
    }
}

impl Method for Tracer {
    fn name(&self) -> &str {
        &self.name
    }

    fn description(&self) -> &'static str {
        match self.asking {
            TracerAsking::WhoWhen => "a tracer, asked as Who&When's script asks",
            TracerAsking::Aegis(_) => "a tracer, asked as Aegis published",
            TracerAsking::Rows(_) => "a tracer, asked as the rows it was trained on",
        }
    }

    fn needs(&self) -> Needs {
        Needs::Model
    }

    fn takes_clean(&self) -> bool {
        self.asking != TracerAsking::WhoWhen
    }

    fn published(&self) -> Option<&'static str> {
        match self.asking {
            TracerAsking::WhoWhen => Some(WHOWHEN),
            TracerAsking::Aegis(_) => Some(AEGIS),
            TracerAsking::Rows(_) => None,
        }
    }

    fn attribute(
        &self,
        run: &LoggedRun,
        view: View<'_>,
        dialogue: &mut Dialogue<'_>,
    ) -> Result<Vec<PredictedStep>, Pause> {
        self.answer(run, view, dialogue).map(|answer| answer.steps().to_vec())
    }

    fn answer(&self, run: &LoggedRun, view: View<'_>, dialogue: &mut Dialogue<'_>) -> Result<MethodAnswer, Pause> {
        let prompt = match &self.asking {
            TracerAsking::WhoWhen => {
                return whowhen::all_at_once(run, dialogue).map(|found| MethodAnswer::Ranked(vec![found]));
            }
            TracerAsking::Aegis(prompt) | TracerAsking::Rows(prompt) => prompt,
        };
        let Some(row) = &run.row else {
            return Err(Pause::Abstain(Abstention::Inapplicable("its row is not at hand".to_owned())));
        };
        if row.sample.steps.is_empty() {
            return Err(Pause::Abstain(Abstention::Inapplicable("no step of the run is known".to_owned())));
        }
        let asked = || question(prompt, prompt.ask(&row.sample, run.gold.is_some(), view.longest_log));
        dialogue.ask(asked, |words| predicted::traced(run, row, words))
    }
}

/// A prompt as the one message of a question. What it was trained to answer is not forced on it by a schema.
fn question(prompt: &TracerPrompt, asked: Prompt) -> JudgeQuestion {
    let whole = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
    let cuts = asked.cut.map(|cut| Cuts {
        steps: whole(cut.shortened_inputs + cut.dropped_inputs + cut.shortened_steps + cut.dropped_steps),
        characters: whole(cut.gone),
    });
    JudgeQuestion {
        system: String::new(),
        user: asked.text,
        schema: None,
        tool: prompt.tool(),
        longest_answer: LONGEST_ANSWER,
        cuts: cuts.unwrap_or_default(),
        longest_way: NOBODY.to_owned(),
    }
}

/// The shortest answer that can be read.
const NOBODY: &str = "{\"faulty_agents\": []}";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        attribution::methods::{
            LoggedRow,
            testing::{VIEW, driven, run},
        },
        dataset::Sample,
    };

    /// Two steps as a row; the run has a step between them that the row has not.
    fn logged() -> LoggedRun {
        let step = |step: u32, agent: &str, text: &str| {
            serde_json::json!({"step": step, "call": 0, "turn": step, "agent": agent,
                "output": {"role": "assistant", "text": text}})
        };
        let sample: Sample = serde_json::from_value(serde_json::json!({
            "format": 1, "id": "r", "kind": "failure", "system": "s", "backend": "", "task": {"id": "t", "question": "q"},
            "outcome": "failure", "final_answer": "", "steps": [step(0, "A", "one"), step(1, "A", "three")],
        }))
        .expect("a sample");
        LoggedRun { row: Some(LoggedRow::unlabelled(&sample, vec![0, 2])), ..run(&["one", "two", "three"]) }
    }

    fn answers(name: &str, words: &[&str]) -> Result<MethodAnswer, Pause> {
        let tracer = Tracer::new(name, TracerAsking::named(name).expect(name));
        let run = logged();
        let said: Vec<_> = words.iter().map(|words| super::super::JudgeReply::Words((*words).to_owned())).collect();
        tracer.answer(&run, VIEW, &mut Dialogue::new(&said))
    }

    #[test]
    fn a_set_nobody_and_a_ranking_are_three_answers() {
        let steps = |answer: &MethodAnswer| answer.steps().iter().map(|found| found.step).collect::<Vec<_>>();
        let said =
            r#"{"faulty_agents": [{"agent_name": "a", "step": 1, "error_type": "FM-2.6"}, {"agent_name": "B"}]}"#;
        let Ok(set @ MethodAnswer::Set(_)) = answers("sft", &[said]) else { panic!("a set") };
        // The row's step 1 is the run's step 2.
        assert_eq!(steps(&set), [Some(2), None]);
        assert_eq!(set.steps()[0].agent.as_deref(), Some("A"), "the name that speaks");
        assert_eq!(set.steps()[0].failure_mode.as_deref(), Some("FM-2.6"));
        assert_eq!(answers("verl", &[NOBODY]), Ok(MethodAnswer::Set(Vec::new())));
        let ranked = r#"{"ranked": [{"agent": "B", "step": 1}, {"agent": "A", "step": 0}]}"#;
        let Ok(ranking @ MethodAnswer::Ranked(_)) = answers("grpo", &[ranked]) else { panic!("a ranking") };
        assert_eq!(steps(&ranking), [Some(2), Some(0)]);
        let Err(Pause::Abstain(why)) = answers("aegis", &["I do not know.", "Nor now."]) else { panic!("no answer") };
        assert_eq!(why.name(), "unreadable");
    }

    #[test]
    fn its_question_is_one_message_in_the_words_of_its_rows() {
        let run = logged();
        let row = &run.row.as_ref().expect("a row").sample;
        for name in ["aegis", "sft"] {
            let tracer = Tracer::new("mine", TracerAsking::named(name).expect(name));
            let (answer, asked) = driven(&tracer, &run, VIEW, &[NOBODY]);
            assert_eq!(answer, Ok(Vec::new()));
            let [asked] = asked.as_slice() else { panic!("one question") };
            let exported = TracerPrompt::named(name).expect(name).ask(row, false, VIEW.longest_log).text;
            assert_eq!((asked.system.as_str(), &asked.user, &asked.schema), ("", &exported, &None));
            assert_eq!((tracer.name(), tracer.takes_clean()), ("mine", true));
        }
        let whowhen = Tracer::new("w", TracerAsking::WhoWhen);
        let (answer, _) = driven(&whowhen, &run, VIEW, &["Agent Name: A\nStep Number: 1\nReason for Mistake: r"]);
        assert_eq!(answer.expect("an answer")[0].step, Some(1));
        assert!(!whowhen.takes_clean(), "it asks for one error");
    }

    #[test]
    fn without_its_row_a_run_cannot_be_asked_about() {
        let tracer = Tracer::new("sft", TracerAsking::named("sft").expect("it ships"));
        let (answer, asked) = driven(&tracer, &run(&["one"]), VIEW, &[]);
        assert!(matches!(answer, Err(Pause::Abstain(Abstention::Inapplicable(_)))) && asked.is_empty());
    }
}
