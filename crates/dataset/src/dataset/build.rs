//! From a recorded run to a sample: what its agents asked and got, and what the label says of it.

use std::collections::BTreeMap;

use super::{
    Change, DatasetError, Input, LabelledError, Mode, OfferedTool, Sample, SampleKind, SampleMessage, SampleStep,
    Split, Task, Truth, backend, content, ids, order, sample::FORMAT, spoken, spoken::SpokenRows,
    step_surface::surface_of,
};
use crate::{
    recording::Recording,
    ruling::Ruling,
    surface::{self, Conversation, Reply, account, door},
    trajectory::{
        AgentName, Attempt, CallEnding, InjectedError, Label, LabelEntry, MissedCatch, ModeClaim, Side, Step,
        StepIndex, TokenDoubt, Verdict,
    },
};

/// What a recording does not say of its run.
#[derive(Debug, Clone)]
pub struct UnrecordedFacts {
    /// What the run is in the dataset.
    pub kind: SampleKind,
    /// The multi-agent system.
    pub system: String,
    /// The task.
    pub task: Task,
    /// The system's answer, as the checker read it.
    pub final_answer: String,
    /// The part of the dataset.
    pub split: Option<Split>,
    /// The id of the clean run of the same task and system; a clean run has none.
    pub clean_twin: Option<String>,
}

impl Sample {
    /// A run that no campaign knows as a sample. What it was to do is what was stated of it, else what its first user said; what it
    /// came to is what an agent said last. Messages to servers of tools are neither.
    ///
    /// # Errors
    /// As [`Sample::from_recording`].
    pub fn alone(recording: &Recording) -> Result<Self, DatasetError> {
        let label = recording.label.as_ref().filter(|label| Ruling::new(recording).objects_to(label).is_none());
        let kind = match (label, recording.manifest.outcome.verdict) {
            (Some(_), Verdict::Success) => SampleKind::Benign,
            (None, Verdict::Success) => SampleKind::Clean,
            _ => SampleKind::Failure,
        };
        let about = UnrecordedFacts {
            kind,
            system: String::new(),
            task: Task { id: recording.manifest.run.to_string(), ..Task::default() },
            final_answer: String::new(),
            split: None,
            clean_twin: None,
        };
        let mut sample = Self::from_recording(recording, about)?;
        let mut of_agents = sample.steps.iter().filter(|step| step.agent.is_agent());
        let answer = of_agents.clone().rev().find_map(|step| step.output.as_ref());
        sample.final_answer = answer.map(|said| said.text.clone()).unwrap_or_default();
        let first = of_agents.find(|step| step.input.is_some()).and_then(|step| sample.input(step.step));
        let asked =
            || first.and_then(|said| said.into_iter().find(|said| said.role == "user").map(|said| said.text.clone()));
        sample.task.question = recording.manifest.task.clone().or_else(asked).unwrap_or_default();
        Ok(sample)
    }

    /// The sample of a run. Its label is the recording's; a clean run's is left out, and one that a gate refuses.
    ///
    /// # Errors
    /// [`DatasetError::Stray`] when the label names a step that the recording does not hold.
    pub fn from_recording(recording: &Recording, about: UnrecordedFacts) -> Result<Self, DatasetError> {
        let steps = order::canonical(recording);
        let mut builder = Builder::default();
        let overlaps = order::overlaps(recording);
        let ruling = Ruling::new(recording);
        let mut numbers = BTreeMap::new();
        let mut built: Vec<SampleStep> = Vec::new();
        for (step, overlaps) in steps.iter().zip(overlaps) {
            let number = StepIndex::try_from(built.len()).unwrap_or(StepIndex::MAX);
            numbers.insert(step.step, NumberedStep { first: number, step });
            let row = SampleStep { ambiguous: ruling.is_ambiguous(step), ..builder.step(number, step, overlaps) };
            built.extend(builder.spoken.rows(step, row));
        }
        let stands = |label: &&Label| about.kind != SampleKind::Clean && ruling.objects_to(label).is_none();
        let label = recording.label.as_ref().filter(stands);
        let label = label.map(|label| truth(label, recording, &numbers)).transpose()?;
        let outcome = &recording.manifest.outcome;
        let mut sample = Self {
            format: FORMAT,
            id: recording.manifest.run.to_string(),
            kind: about.kind,
            system: about.system,
            backend: backend::class(&recording.manifest.upstream),
            task: about.task,
            split: about.split,
            outcome: outcome.verdict,
            outcome_evidence: outcome.evidence.clone(),
            final_answer: about.final_answer,
            tools: builder.tools,
            steps: built,
            label,
            clean_twin: about.clean_twin,
            equality: recording.manifest.equality.clone(),
            extra: serde_json::Map::new(),
        };
        ids::number(&mut sample);
        Ok(sample)
    }
}

/// What earlier steps leave to later ones.
#[derive(Debug, Default)]
struct Builder {
    /// The last step of each agent instance, and its whole input.
    last: BTreeMap<(AgentName, u32), (StepIndex, Vec<SampleMessage>)>,
    tools: Vec<OfferedTool>,
    /// Turns in order of their first steps.
    turns: Vec<u32>,
    spoken: SpokenRows,
}

/// A step of the recording, with the number of its first row.
struct NumberedStep<'a> {
    first: StepIndex,
    step: &'a Step,
}

impl NumberedStep<'_> {
    /// The number of the row that an error is in.
    fn row_of(&self, error: &InjectedError) -> StepIndex {
        self.first + spoken::row_of(self.step, error)
    }
}

impl Builder {
    fn step(&mut self, number: StepIndex, step: &Step, overlaps: bool) -> SampleStep {
        let asked = surface_of(step).and_then(|surface| door::request_at(surface, &step.path, &step.request).ok());
        let attempt = step.last_attempt();
        let answer = attempt.and_then(|attempt| read(step, attempt, attempt.delivered()));
        let answer = answer.and_then(|reply| reply.answers.into_iter().next());
        let tools = asked.iter().flat_map(|asked| &asked.tools).map(|tool| self.offer(tool)).collect();
        SampleStep {
            step: number,
            call: step.call,
            turn: self.turn(step.turn),
            agent: step.attribution.agent.clone(),
            raw_agent: None,
            instance: step.attribution.instance,
            source: Some(step.attribution.source),
            ambiguous: false,
            overlaps,
            model: asked.as_ref().map(|asked| asked.model.clone()).filter(|model| !model.is_empty()),
            input: asked.map(|asked| self.input(number, step, &asked)),
            tools,
            output: answer.as_ref().map(|answer| SampleMessage::from(&answer.message)),
            account: Some(account::of_step(step))
                .filter(|account| !account.is_whole())
                .map(|account| account.words().to_owned()),
            finish_reason: answer.and_then(|answer| answer.finish_reason),
            status: attempt.and_then(|attempt| attempt.status).filter(|status| *status != 200),
            attempts: u32::try_from(step.attempts.len()).ok().filter(|attempts| *attempts > 1),
            doubt: attempt.and_then(|attempt| doubt(step, attempt)),
            extra: serde_json::Map::new(),
        }
    }

    fn turn(&mut self, turn: u32) -> u32 {
        let known = self.turns.iter().rposition(|known| *known == turn);
        let number = known.unwrap_or_else(|| {
            self.turns.push(turn);
            self.turns.len() - 1
        });
        u32::try_from(number).unwrap_or(u32::MAX)
    }

    fn offer(&mut self, tool: &surface::Tool) -> String {
        let offered = OfferedTool {
            name: tool.name.clone(),
            description: tool.description.clone(),
            parameters: tool.parameters.clone(),
        };
        if !self.tools.contains(&offered) {
            self.tools.push(offered);
        }
        tool.name.clone()
    }

    fn input(&mut self, number: StepIndex, step: &Step, asked: &Conversation) -> Input {
        let whole: Vec<SampleMessage> = asked.messages.iter().map(SampleMessage::from).collect();
        let key = (step.attribution.agent.clone(), step.attribution.instance);
        let before = self.last.get(&key);
        let kept = before.map_or(0, |(_, before)| before.iter().zip(&whole).take_while(|(a, b)| a == b).count());
        let input = Input {
            follows: before.filter(|_| kept > 0).map(|(step, _)| *step),
            kept: u32::try_from(kept).unwrap_or(u32::MAX),
            messages: whole.get(kept..).unwrap_or_default().to_vec(),
        };
        self.last.insert(key, (number, whole));
        input
    }
}

/// The label with the sample's step numbers, and what was changed.
fn truth(
    label: &Label,
    recording: &Recording,
    numbers: &BTreeMap<StepIndex, NumberedStep<'_>>,
) -> Result<Truth, DatasetError> {
    let run = &recording.manifest.run;
    let at = |step: StepIndex| numbers.get(&step).ok_or(DatasetError::Stray { run: run.clone(), step });
    let told = |entry: &LabelEntry| Ok(labelled(entry, at(entry.error.step)?));
    let errors = label.errors.iter().map(told).collect::<Result<Vec<_>, DatasetError>>()?;
    let others = label.others.iter().map(told).collect::<Result<Vec<_>, DatasetError>>()?;
    let not_shown = label.not_shown.iter().map(told).collect::<Result<Vec<_>, DatasetError>>()?;
    let mut changes: Vec<Change> = Vec::new();
    for LabelEntry { error, .. } in label.planted() {
        let numbered = at(error.step)?;
        let row = numbered.row_of(error);
        if !changes.iter().any(|change| change.step == row && change.side == error.side) {
            changes.extend(change(numbered.step, row, error));
        }
    }
    changes.sort_by_key(|change| change.step);
    let evidence = label.evidence.clone().map(|mut evidence| {
        evidence.fork_step = evidence.fork_step.and_then(|step| Some(numbers.get(&step)?.first));
        evidence.cleared = evidence.cleared.iter().filter_map(|step| Some(numbers.get(step)?.first)).collect();
        evidence.cleared.sort_unstable();
        evidence
    });
    let missed_catch = label.missed_catch.iter().filter_map(|found| {
        let step = numbers.get(&found.step)?.first;
        Some(MissedCatch { step, ..found.clone() })
    });
    Ok(Truth {
        missed_catch: missed_catch.collect(),
        status: label.status,
        definition: label.definition.clone(),
        seed: Some(label.seed),
        outcome: label.outcome,
        errors,
        others,
        not_shown,
        changes,
        evidence,
    })
}

/// What was planted, with the sample's step number.
fn labelled(entry: &LabelEntry, numbered: &NumberedStep<'_>) -> LabelledError {
    let (error, step) = (&entry.error, numbered.step);
    let failure_mode = error.failure_mode.map(|mode| Mode { taxonomy: entry.taxonomy.clone(), ..Mode::from(mode) });
    let hashed = hashes(step, error.side);
    let [before, after] = hashed.unwrap_or_else(|| [error.before.clone(), error.after.clone()]);
    let (agent, call) = spoken::principal(step, error);
    let found = entry.is_found();
    LabelledError {
        agent,
        culprit: error.culprit(),
        raw_agent: None,
        instance: error.instance,
        step: Some(numbered.row_of(error)),
        call: Some(call),
        mode_claim: failure_mode.as_ref().map(|_| entry.mode_claim.clone().unwrap_or(ModeClaim::DECLARED)),
        failure_mode,
        other_modes: Vec::new(),
        proposed_mode: entry.proposed_mode.map(Mode::from),
        side: Some(error.side),
        operator: (!found).then(|| error.operator.clone()),
        shown_by: found.then(|| error.operator.clone()),
        injection: (!found).then_some(error.injection),
        before,
        after,
        reason: None,
        extra: serde_json::Map::new(),
    }
}

/// What the upstream said of the tokens of the reply; of one that was edited nothing is known.
fn doubt(step: &Step, attempt: &Attempt) -> Option<TokenDoubt> {
    let said = attempt.reply_with_logprobs.as_ref().unwrap_or(&attempt.reply);
    let own = attempt.reply_delivered.is_none();
    own.then(|| TokenDoubt::from_logprobs(&surface_of(step)?.logprobs(said, attempt.streamed)))?
}

/// The bodies of one side of a step before and after what was done to it; `None` where nothing was.
fn bodies(step: &Step, side: Side) -> Option<[&[u8]; 2]> {
    match side {
        Side::Request => Some([&step.request, step.request_sent.as_ref()?]),
        Side::Response => {
            let attempt = step.last_attempt()?;
            Some([&attempt.reply, attempt.reply_delivered.as_ref()?])
        }
    }
}

/// The hashes of what one side of a step said before and after; `None` where nothing was done to it.
fn hashes(step: &Step, side: Side) -> Option<[String; 2]> {
    let bodies = bodies(step, side)?;
    let read = match side {
        Side::Request => {
            let surface = surface_of(step);
            bodies
                .map(|body| door::request_at(surface?, &step.path, body).ok().map(|asked| content::of_request(&asked)))
        }
        Side::Response => {
            let attempt = step.last_attempt()?;
            bodies.map(|body| read_body(step, attempt, body).map(|reply| content::of_reply(&reply)))
        }
    };
    match read {
        [Some(before), Some(after)] if before != after => Some([before, after]),
        // The edit is in what no surface reads: the bytes alone tell the two apart.
        _ => Some(bodies.map(content::of_bytes)),
    }
}

/// What one side of a step was, and became.
fn change(step: &Step, number: StepIndex, error: &InjectedError) -> Option<Change> {
    let side = error.side;
    if let Some([before, after]) = spoken::changed(step, error) {
        return Some(Change { step: number, side, before: vec![before], after: vec![after] });
    }
    let surface = surface_of(step);
    let bodies = bodies(step, side)?;
    let read: [Option<Vec<SampleMessage>>; 2] = match side {
        Side::Request => {
            bodies.map(|body| door::request(surface?, body).ok().map(|asked| sample_messages(&asked.messages)))
        }
        Side::Response => {
            let attempt = step.last_attempt()?;
            let answers =
                |reply: Reply| reply.answers.iter().map(|answer| SampleMessage::from(&answer.message)).collect();
            bodies.map(|body| read_body(step, attempt, body).map(answers))
        }
    };
    let [before, after] = match read {
        [Some(before), Some(after)] if before != after => differing(&before, &after),
        // The edit is not in the messages (a tool, a parameter), or no surface reads the body: the bodies say it.
        _ => bodies.map(|body| vec![raw(body)]),
    };
    Some(Change { step: number, side, before, after })
}

/// The messages between the common beginning and the common end.
fn differing(before: &[SampleMessage], after: &[SampleMessage]) -> [Vec<SampleMessage>; 2] {
    let head = before.iter().zip(after).take_while(|(a, b)| a == b).count();
    let (before, after) = (before.get(head..).unwrap_or_default(), after.get(head..).unwrap_or_default());
    let tail = before.iter().rev().zip(after.iter().rev()).take_while(|(a, b)| a == b).count();
    let middle = |all: &[SampleMessage]| all.get(..all.len() - tail).unwrap_or_default().to_vec();
    [middle(before), middle(after)]
}

fn sample_messages(messages: &[surface::Message]) -> Vec<SampleMessage> {
    messages.iter().map(SampleMessage::from).collect()
}

fn raw(body: &[u8]) -> SampleMessage {
    SampleMessage {
        role: "other".to_owned(),
        name: None,
        text: String::from_utf8_lossy(body).into_owned(),
        calls: Vec::new(),
        answers: None,
        opaque: 0,
    }
}

fn read(step: &Step, attempt: &Attempt, body: &[u8]) -> Option<Reply> {
    // An error body is no answer.
    read_body(step, attempt, body).filter(|_| !attempt.ending.is_some_and(CallEnding::is_error))
}

fn read_body(step: &Step, attempt: &Attempt, body: &[u8]) -> Option<Reply> {
    let surface = surface_of(step)?;
    door::reply(surface, body, attempt.streamed).ok()
}
