//! A plan that plants nothing: a note to one agent at one of its calls.

use std::sync::Arc;

use super::{AgentPattern, Agents, Injection, Operator, Plan, When};
use bytes::Bytes;

use crate::{
    manipulator::{Adaptive, AppendInstruction, Context, InstructionTarget},
    surface::{self, door},
    trajectory::{Side, Step},
};

/// Why a step can take no note.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoNotePlace {
    /// Nothing reads its requests.
    #[error("no surface reads its requests (`{0}`), so nothing can be written into one")]
    Unread(String),
    /// It asks for no words.
    #[error("it asks for vectors: a note says nothing there")]
    Vectors,
    /// Nobody knows for sure who makes the call.
    #[error(
        "that `{0}` makes the call is only believed: declare it by an [[agent]] rule, a path /a/<agent>/ or a header"
    )]
    Believed(String),
    /// The API has no place for it.
    #[error("its API takes none: {0}")]
    Refused(String),
}

/// The plan that puts a note below the last user message of a step's request, and nothing else. It names no failure mode:
/// a run under it earns no label.
///
/// # Errors
/// [`NoNotePlace`].
pub fn note(step: &Step, text: &str) -> Result<Plan, NoNotePlace> {
    let attribution = &step.attribution;
    let surface = surface::for_path(&step.method, step.path.split('?').next().unwrap_or_default());
    let surface = surface.ok_or_else(|| NoNotePlace::Unread(step.surface.clone()))?;
    if !attribution.is_certain() {
        return Err(NoNotePlace::Believed(attribution.agent.to_string()));
    }
    let refused = |why: &dyn std::fmt::Display| NoNotePlace::Refused(why.to_string());
    let asked = door::request(surface, &step.request).map_err(|error| refused(&error))?;
    if asked.vectors.is_some() {
        return Err(NoNotePlace::Vectors);
    }
    let agent = AgentPattern::parse(attribution.agent.as_str()).map_err(|error| refused(&error))?;
    let edit = AppendInstruction { text: text.to_owned(), role: InstructionTarget::User };
    let injection = Injection {
        agents: Agents(vec![agent]),
        instance: Some(attribution.instance),
        failure_mode: None,
        when: When { call: Some(vec![step.call]), ..When::default() },
        choice: None,
        retell: false,
        name: "append_instruction".to_owned(),
        operator: Operator::Manipulator { side: Side::Request, manipulator: Arc::new(edit) },
        place: 0..0,
    };
    let context = Context {
        agent: attribution.agent.as_str(),
        conversation: &asked,
        earlier: &[],
        draw: 0,
        adaptive: Adaptive::default(),
    };
    let told = injection.edit_request(&asked, &context).map_err(|error| refused(&error))?;
    let plain = Bytes::from(door::without_codings(&step.request).into_owned());
    door::write_request(surface, &plain, &asked, &told).map_err(|error| refused(&error))?;
    let text = format!("# A note of `aegis retry`, no injection: {} at its call {}.\n", attribution.agent, step.call);
    Ok(Plan::handmade(text, vec![injection]))
}
