//! A judge and its critics (RAFFLES, arXiv 2509.06822): a candidate is held against three questions, each asked of a critic of
//! its own; what they object to goes back to the judge.

use serde_json::{Value, json};

use super::{
    Dialogue, LoggedRun, Method, Pause, PredictedStep, View, predicted,
    prompt::{LogPrompt, form},
};

/// Most times that the judge revises.
const ROUNDS: usize = 2;

/// What each critic is to doubt.
const CRITICS: [(&str, &str); 3] = [
    ("fault", "Is what the named step says or does really an error, given what its agent knew when it spoke?"),
    ("first", "Is it the first one? It is not if an earlier step already made the error that this one hands on."),
    ("decisive", "Is it decisive? It is not if the run would have failed all the same had this step alone been right."),
];

/// One judge, three critics, at most two revisions.
#[derive(Debug)]
pub(super) struct JudgeCritics;

impl Method for JudgeCritics {
    fn name(&self) -> &'static str {
        "judge-critics"
    }

    fn description(&self) -> &'static str {
        "a judge names a step, three critics doubt it, the judge revises (RAFFLES)"
    }

    fn attribute(
        &self,
        run: &LoggedRun,
        view: View<'_>,
        dialogue: &mut Dialogue<'_>,
    ) -> Result<Vec<PredictedStep>, Pause> {
        let mut objections: Vec<String> = Vec::new();
        let mut best: Option<(usize, PredictedStep)> = None;
        for round in 0..=ROUNDS {
            let question = || judge(run, view, &objections, round);
            let candidate = dialogue.ask(question, |words| predicted::culprit(run, words))?;
            let mut held = 0;
            objections.clear();
            for (name, doubt) in CRITICS {
                let question = || critic(run, view, &candidate, doubt);
                let (holds, why) = dialogue.ask(question, verdict)?;
                held += usize::from(holds);
                if !holds {
                    objections.push(format!(
                        "{} at step {} is not {name}: {why}",
                        agent_name(&candidate),
                        at(&candidate)
                    ));
                }
            }
            // Of equal ones the later: it knew the objections to the earlier.
            if best.as_ref().is_none_or(|(most, _)| held >= *most) {
                best = Some((held, candidate));
            }
            if objections.is_empty() {
                break;
            }
        }
        let share = |held: usize| u32::try_from(held).map_or(0.0, f64::from) / 3.0;
        Ok(best.into_iter().map(|(held, found)| found.scored(share(held))).collect())
    }
}

fn agent_name(candidate: &PredictedStep) -> &str {
    candidate.agent.as_deref().unwrap_or("(nobody)")
}

fn at(candidate: &PredictedStep) -> String {
    candidate.step.map_or_else(|| "(none)".to_owned(), |step| step.to_string())
}

fn judge(run: &LoggedRun, view: View<'_>, objections: &[String], round: usize) -> super::JudgeQuestion {
    let before = if objections.is_empty() {
        String::new()
    } else {
        format!(
            "Your last answer met these objections:\n- {}\nWeigh them, and answer again.\n",
            objections.join("\n- ")
        )
    };
    let asked = format!("{before}Which agent made the decisive error, and at which step?\n{}", form());
    // A dry run goes through every revision.
    let step = run.turns.get(round).map_or(0, |turn| turn.step);
    let longest_way = super::prompt::culprit_of(run, step);
    LogPrompt { longest_way, ..LogPrompt::about_whole_log(run, asked) }.question(view)
}

fn critic(run: &LoggedRun, view: View<'_>, candidate: &PredictedStep, doubt: &str) -> super::JudgeQuestion {
    let asked = format!(
        "Somebody says that {} made the decisive error at step {}: {}\n{doubt}\nAnswer with one JSON object: {{\"reason\": why, \
         \"holds\": true or false}}.",
        agent_name(candidate),
        at(candidate),
        candidate.reason
    );
    let schema = json!({
        "type": "object",
        "properties": {"reason": {"type": "string"}, "holds": {"type": "boolean"}},
        "required": ["reason", "holds"],
        "additionalProperties": false,
    });
    LogPrompt {
        pivot: candidate.step.and_then(|step| run.turns.iter().position(|turn| turn.step == step)),
        particular: "You are a critic of one claim and answer nothing else.",
        schema: Some(schema),
        longest_way: json!({"reason": "", "holds": false}).to_string(),
        ..LogPrompt::about_whole_log(run, asked)
    }
    .question(view)
}

fn verdict(words: &str) -> Result<(bool, String), String> {
    let fields = predicted::object(words).ok_or("it holds no JSON object")?;
    let holds = fields.get("holds").and_then(Value::as_bool).ok_or("it has no `holds` that is true or false")?;
    Ok((holds, fields.get("reason").and_then(Value::as_str).unwrap_or_default().to_owned()))
}
