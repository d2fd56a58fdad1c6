//! Edits tried on a recorded run: whether they can be made there, down to the bytes that they would write. No model is asked.

use bytes::Bytes;

use super::{Facts, Hit, Injection, Operator, Plan, against, decide};
use crate::manipulator::{Adaptive, Context, ManipulatorError};
use crate::mode::{self, EditedPair};
use crate::surface::{self, Conversation, Surface, door, written};
use crate::trajectory::{Side, Step, StepIndex};

/// Why a plan plants nothing that meets no call.
const NO_CALL: &str = "it meets no call of the reference run";

/// A recorded run on which edits are tried.
#[derive(Debug)]
pub struct DryRun<'a> {
    steps: &'a [Step],
    /// Their requests, as plans see them.
    requests: Vec<Option<Conversation>>,
    /// What was answered, oldest first: agent and text.
    answers: Vec<(String, String)>,
    /// How many answers each step's plan has seen.
    answered: Vec<usize>,
    /// Whether an edit counts as impossible where it touches what its failure mode leaves alone.
    keeps_to_modes: bool,
}

impl<'a> DryRun<'a> {
    /// Reads a recorded run.
    pub fn new(steps: &'a [Step]) -> Self {
        let (mut answers, mut answered) = (Vec::new(), Vec::new());
        for step in steps {
            answered.push(answers.len());
            let reply = surface_of(step)
                .zip(step.last_attempt())
                .and_then(|(surface, attempt)| door::reply(surface, attempt.delivered(), attempt.streamed).ok());
            let texts = reply.iter().flat_map(|reply| &reply.answers).map(|answer| answer.message.text());
            let agent = step.attribution.agent.as_str();
            answers.extend(texts.filter(|text| !text.is_empty()).map(|text| (agent.to_owned(), text)));
        }
        Self { steps, requests: against::requests(steps), answers, answered, keeps_to_modes: false }
    }

    /// The same for edits that are drawn: one that touches what its failure mode leaves alone (a tool call, what a tool said) cannot be
    /// made. A plan that a person wrote is planted all the same, and its label says so.
    #[must_use]
    pub fn keeping_to_modes(self) -> Self {
        Self { keeps_to_modes: true, ..self }
    }

    /// Why a plan can plant nothing in a run of this name that repeats the recorded one: none of its injections can be made at any
    /// call that it meets. `None` where one can be made, or where that cannot be known.
    pub fn plan_obstacle(&self, plan: &Plan, run: &str) -> Option<String> {
        let mut why = None;
        for (place, step) in self.steps.iter().enumerate() {
            let facts = Facts {
                run,
                agent: step.attribution.agent.as_str(),
                instance: step.attribution.instance,
                call: step.call,
                step: step.step,
                conversation: self.requests.get(place).and_then(Option::as_ref),
                delivered: &|_| 0,
                ambiguous: step.attribution.ambiguous,
            };
            let met = decide(plan, &facts);
            for Hit { injection, draw } in met.request.iter().chain(&met.response).chain(&met.faults) {
                let injection = plan.injections.get(usize::try_from(*injection).unwrap_or(usize::MAX))?;
                let obstacle = self.obstacle(injection, step.step, *draw)?;
                why.get_or_insert(obstacle);
            }
        }
        Some(why.unwrap_or_else(|| NO_CALL.to_owned()))
    }

    /// Why an injection can change nothing at a step, with this draw. `None` where it can, or where that cannot be known: a model is
    /// asked for its words, or several agents speak in one reply.
    pub fn obstacle(&self, injection: &Injection, step: StepIndex, draw: u64) -> Option<String> {
        let Operator::Manipulator { side, .. } = injection.operator else { return None };
        if injection.is_neutral() {
            return None;
        }
        let place = self.steps.iter().position(|one| one.step == step)?;
        let step = self.steps.get(place)?;
        let request = self.requests.get(place).and_then(Option::as_ref);
        let (Some(surface), Some(request)) = (surface_of(step), request) else {
            return Some("no edit can be made in a call whose request is not read".to_owned());
        };
        let context = Context {
            agent: step.attribution.agent.as_str(),
            conversation: request,
            earlier: self.answers.get(..*self.answered.get(place)?).unwrap_or_default(),
            draw,
            adaptive: Adaptive::default(),
        };
        match side {
            Side::Request => self.request_obstacle(injection, surface, &unpacked(&step.request), &context),
            Side::Response => self.reply_obstacle(injection, surface, step, &context),
        }
    }

    fn request_obstacle(
        &self,
        injection: &Injection,
        surface: &dyn Surface,
        body: &Bytes,
        context: &Context<'_>,
    ) -> Option<String> {
        let before = context.conversation;
        let after = match injection.edit_request(before, context) {
            Ok(after) => after,
            Err(error) => return refusal(&error),
        };
        let write = || {
            let edited = door::write_request(surface, body, before, &after).map_err(|error| error.to_string())?;
            written::request(surface, body, &edited, &after)
        };
        self.forbidden(injection, &EditedPair::Request(before, &after)).or_else(|| write().err())
    }

    fn reply_obstacle(
        &self,
        injection: &Injection,
        surface: &dyn Surface,
        step: &Step,
        context: &Context<'_>,
    ) -> Option<String> {
        let Some(attempt) = step.last_attempt().filter(|attempt| attempt.is_answered()) else {
            return Some("the call got no answer".to_owned());
        };
        let body = unpacked(&attempt.reply);
        let read = match door::reading(surface, &body, attempt.streamed) {
            Ok(read) => read,
            Err(error) => return Some(error.to_string()),
        };
        if let Some(piece) = read.unplaced.first() {
            return Some(written::not_placed(piece));
        }
        let before = &read.view;
        if !before.utterances.is_empty() {
            return None;
        }
        let after = match injection.edit_reply(before, context) {
            Ok(after) => after,
            Err(error) => return refusal(&error),
        };
        let write = || {
            let edited = door::write_reply(surface, &body, attempt.streamed, before, &after);
            written::reply(surface, &edited.map_err(|error| error.to_string())?, attempt.streamed, before, &after)
        };
        let mut answers = before.answers.iter().zip(&after.answers);
        let forbidden = answers.find_map(|(one, other)| self.forbidden(injection, &EditedPair::Answer(one, other)));
        forbidden.or_else(|| write().err())
    }

    /// What the injection's mode leaves alone and the edit touches, as a clause.
    fn forbidden(&self, injection: &Injection, edit: &EditedPair<'_>) -> Option<String> {
        let mode = injection.failure_mode.filter(|_| self.keeps_to_modes)?;
        mode::out_of_bounds(mode, edit).map(|touched| touched.wrong().to_owned())
    }
}

/// What keeps an edit from being made; nothing where only a model's answer is missing.
fn refusal(error: &ManipulatorError) -> Option<String> {
    (!matches!(error, ManipulatorError::Ask(_))).then(|| error.to_string())
}

fn surface_of(step: &Step) -> Option<&'static dyn Surface> {
    surface::for_path(&step.method, step.path.split('?').next().unwrap_or_default())
}

fn unpacked(body: &Bytes) -> Bytes {
    Bytes::from(door::without_codings(body).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::parse;
    use crate::trajectory::{CallEnding, CloseCause, sample};

    /// A call of the solver: what it is asked, in text or JSON, and what it answers.
    fn step(number: u32, format: &str, answer: &str, ending: CallEnding) -> Step {
        let request = format!(
            r#"{{"model":"m","response_format":{{"type":"{format}"}},"messages":[{{"role":"user","content":"Add."}}]}}"#
        );
        let message =
            serde_json::json!({"choices": [{"index": 0, "message": {"role": "assistant", "content": answer}}]});
        let mut step = sample::step(&[], &[(Some(CloseCause::Complete), 200)]);
        step.attempts[0].reply = message.to_string().into();
        step.attempts[0].ending = Some(ending);
        Step { step: number, call: number, turn: number, request: request.into(), ..step }
    }

    #[test]
    fn a_drawn_edit_keeps_to_what_its_mode_is_about() {
        let mut steps = [step(0, "text", "I look 2 prices up.", CallEnding::Answered)];
        let arguments = serde_json::json!({"name": "price", "arguments": "{\"count\":12}"});
        let mut reply: serde_json::Value = serde_json::from_slice(&steps[0].attempts[0].reply).expect("JSON");
        reply["choices"][0]["message"]["tool_calls"] =
            serde_json::json!([{"id": "c1", "type": "function", "function": arguments}]);
        steps[0].attempts[0].reply = reply.to_string().into();
        steps[0].request = r#"{"model":"m","messages":[{"role":"user","content":"Add."},{"role":"assistant","tool_calls":[
            {"id":"c0","type":"function","function":{"name":"price","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c0","content":"7"}]}"#
            .into();
        let obstacle = |mode: &str, edit: &str, drawn: bool| {
            let text = format!(
                "[[injection]]\nagent = \"solver\"\nfailure_mode = \"{mode}\"\nwhen.call = 0\nmanipulator.{edit}\n"
            );
            let plan = parse(&text, "p").unwrap_or_else(|error| panic!("{error}"));
            let dry_run = DryRun::new(&steps);
            let dry_run = if drawn { dry_run.keeping_to_modes() } else { dry_run };
            dry_run.plan_obstacle(&plan, "r").unwrap_or_default()
        };
        for (mode, edit, expected) in [
            ("FM-1.1", "edit_tool_call.set = { \"/count\" = 13 }", "changes a tool call"),
            ("FM-2.6", "edit_tool_call.set = { \"/count\" = 13 }", ""),
            ("FM-1.1", "corrupt_number = {}", ""),
            ("FM-2.6", "corrupt_tool_result.how = \"error\"", "changes what a tool said"),
        ] {
            let found = obstacle(mode, edit, true);
            assert!(found.contains(expected) && found.is_empty() == expected.is_empty(), "{mode} {edit}: {found}");
            assert_eq!(obstacle(mode, edit, false), "", "{mode} {edit}: a person's own plan is planted");
        }
    }

    #[test]
    fn an_edit_is_tried_down_to_the_bytes() {
        let steps = [
            step(0, "text", "I begin.", CallEnding::Answered),
            step(1, "json_object", "{\"sum\": 42}", CallEnding::Answered),
            step(2, "text", "12 + 30 = 42", CallEnding::Failed),
            Step { path: "/v1/unread".to_owned(), ..step(3, "text", "42", CallEnding::Answered) },
        ];
        let dry_run = DryRun::new(&steps);
        for (when, edit, expected) in [
            ("call = 0", "manipulator.end_early = {}", None),
            ("call = 1", "manipulator.end_early = {}", Some("must be JSON")),
            ("call = 0", "manipulator.corrupt_number = {}", Some("0 numbers")),
            ("call = 1", "manipulator.corrupt_number = {}", None),
            ("call = 2", "manipulator.corrupt_number = {}", Some("no answer")),
            ("call = 3", "manipulator.corrupt_number = {}", Some("is not read")),
            ("call = 0", "manipulator.repeat_step = {}", Some("no earlier, different answer")),
            ("call = 0", "manipulator.withhold_findings = {}", Some("no sentence")),
            ("call = 0", "manipulator.drop_history.keep_last = 1", Some("")),
            ("call = 0", "manipulator.append_instruction.text = \"Now.\"", None),
            ("call = 0", "manipulator.rewrite_with_model.instruction = \"Be wrong.\"", None),
            ("call = 3", "fault.hang = {}", None),
            ("call = 9", "fault.hang = {}", Some(NO_CALL)),
            // One call at which it can be made is enough; of none the first says why.
            ("always = true", "manipulator.corrupt_number = {}", None),
            ("call = [0, 2]", "manipulator.corrupt_number = {}", Some("0 numbers")),
        ] {
            let mode = if edit.starts_with("fault") { "" } else { "failure_mode = \"FM-2.6\"\n" };
            let side = if edit.contains("rewrite") { "side = \"response\"\n" } else { "" };
            let text = format!("[[injection]]\nagent = \"solver\"\n{mode}{side}when.{when}\n{edit}\n");
            let plan = parse(&text, "p").unwrap_or_else(|error| panic!("{error}"));
            let obstacle = dry_run.plan_obstacle(&plan, "r");
            assert_eq!(obstacle.is_some(), expected.is_some(), "{when} {edit}: {obstacle:?}");
            assert!(obstacle.unwrap_or_default().contains(expected.unwrap_or_default()), "{when} {edit}");
        }
    }
}
