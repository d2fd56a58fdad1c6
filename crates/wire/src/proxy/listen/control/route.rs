//! What the control listener answers, in one table: requests are led by it, and the `OpenAPI` document is made from it.

use hyper::Method;
use schemars::{JsonSchema, Schema, SchemaGenerator};

use super::{
    refusal::ErrorReply,
    report::{AmendedReply, OutcomeReport, RosterReport, TakenReply, TaskReport},
    standing::{NewRun, OpenReply, RunList, RunReply},
};
use crate::recording::{Annotation, GivenAnnotation};

/// Makes a reference to the schema of a body.
pub type BodySchema = fn(&mut SchemaGenerator) -> Schema;

fn body<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

/// The schema of an error.
pub fn control_error_schema(generator: &mut SchemaGenerator) -> Schema {
    body::<ErrorReply<'static>>(generator)
}

/// Codes of the control listener's errors, with the status of each.
pub const CONTROL_CODES: &[(&str, u16)] = &[
    ("no_token", 401),
    ("too_many_requests", 429),
    ("operator_only", 403),
    ("no_such_path", 404),
    ("no_such_run", 404),
    ("no_such_user", 404),
    ("no_counts", 404),
    ("invalid_id", 400),
    ("invalid_body", 400),
    ("invalid_roster", 400),
    ("run_exists", 409),
    ("run_busy", 409),
    ("run_open", 409),
    ("other_plan", 409),
    ("facts_full", 409),
    ("recording_failed", 503),
    ("audit_failed", 503),
    ("internal", 500),
];

/// What a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ControlAction {
    List,
    Open,
    Annotate,
    Read,
    End,
    Keep,
    Release,
    Outcome,
    Roster,
    Task,
    Metrics,
}

/// A request that is answered.
#[derive(Debug)]
pub struct ControlRoute {
    /// The method.
    pub method: &'static str,
    /// The path; `{run}` stands for a run.
    pub path: &'static str,
    /// What comes of it, in a sentence without its full stop.
    pub about: &'static str,
    /// The body that it takes.
    pub takes: Option<BodySchema>,
    /// The body of its answer; `None` where that is text for Prometheus.
    pub answers: Option<BodySchema>,
    action: ControlAction,
}

impl ControlRoute {
    const fn get(path: &'static str, about: &'static str, action: ControlAction, answers: Option<BodySchema>) -> Self {
        Self { method: "GET", path, about, takes: None, answers, action }
    }

    const fn post(
        path: &'static str,
        about: &'static str,
        action: ControlAction,
        takes: Option<BodySchema>,
        answers: BodySchema,
    ) -> Self {
        Self { method: "POST", path, about, takes, answers: Some(answers), action }
    }
}

const OUTCOME: &str = "Sets the outcome of a run; of one that has ended, as a fact beside the recording";
const ROSTER: &str = "Names the agents of a run that has ended";
const TASK: &str = "Sets the task of a run that has ended";

/// All of them.
pub const CONTROL_ROUTES: &[ControlRoute] = &[
    ControlRoute::get(
        "/aegis/v1/runs",
        "Lists the runs of the log directory, those written last first, 1,000 at most",
        ControlAction::List,
        Some(body::<RunList>),
    ),
    ControlRoute::post(
        "/aegis/v1/runs",
        "Opens a run, under the server's plan if it has one: it waits for calls that name it",
        ControlAction::Open,
        Some(body::<NewRun>),
        body::<OpenReply>,
    ),
    ControlRoute::post(
        "/aegis/v1/runs/{run}/annotations",
        "Adds what somebody says of a run: the step of the error that decided it and the reason, or no error",
        ControlAction::Annotate,
        Some(body::<GivenAnnotation>),
        body::<Annotation>,
    ),
    ControlRoute::get("/aegis/v1/runs/{run}", "Reads one run", ControlAction::Read, Some(body::<RunReply>)),
    ControlRoute::post(
        "/aegis/v1/runs/{run}/end",
        "Ends a run: it takes no more calls",
        ControlAction::End,
        None,
        body::<RunReply>,
    ),
    ControlRoute::post(
        "/aegis/v1/runs/{run}/keep",
        "Keeps a run, whatever is pruned",
        ControlAction::Keep,
        None,
        body::<RunReply>,
    ),
    ControlRoute::post(
        "/aegis/v1/runs/{run}/release",
        "Takes back that a run is kept",
        ControlAction::Release,
        None,
        body::<RunReply>,
    ),
    ControlRoute::post(
        "/aegis/v1/runs/{run}/outcome",
        OUTCOME,
        ControlAction::Outcome,
        Some(body::<OutcomeReport>),
        body::<TakenReply>,
    ),
    ControlRoute::post(
        "/aegis/v1/runs/{run}/roster",
        ROSTER,
        ControlAction::Roster,
        Some(body::<RosterReport>),
        body::<AmendedReply>,
    ),
    ControlRoute::post(
        "/aegis/v1/runs/{run}/task",
        TASK,
        ControlAction::Task,
        Some(body::<TaskReport>),
        body::<AmendedReply>,
    ),
    ControlRoute::post("/outcome", OUTCOME, ControlAction::Outcome, Some(body::<OutcomeReport>), body::<TakenReply>),
    ControlRoute::post(
        "/r/{run}/outcome",
        OUTCOME,
        ControlAction::Outcome,
        Some(body::<OutcomeReport>),
        body::<TakenReply>,
    ),
    ControlRoute::post("/roster", ROSTER, ControlAction::Roster, Some(body::<RosterReport>), body::<AmendedReply>),
    ControlRoute::post("/task", TASK, ControlAction::Task, Some(body::<TaskReport>), body::<AmendedReply>),
    ControlRoute::get(
        "/metrics",
        "Counts for Prometheus, in the OpenMetrics text format",
        ControlAction::Metrics,
        None,
    ),
];

/// What a request asks for, and the run that its path names.
pub(super) fn matched<'a>(method: &Method, path: &'a str) -> Option<(ControlAction, Option<&'a str>)> {
    CONTROL_ROUTES.iter().filter(|route| *method == route.method).find_map(|route| {
        let (mut asked, mut known, mut run) = (path.split('/'), route.path.split('/'), None);
        loop {
            match (asked.next(), known.next()) {
                (None, None) => return Some((route.action, run)),
                (Some(name), Some("{run}")) => run = Some(name),
                (Some(name), Some(known)) if name == known => {}
                _ => return None,
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_matched_whole() {
        for (method, path, expected) in [
            (Method::GET, "/aegis/v1/runs", Some((ControlAction::List, None))),
            (Method::GET, "/aegis/v1/runs/a", Some((ControlAction::Read, Some("a")))),
            (Method::POST, "/aegis/v1/runs/a/end", Some((ControlAction::End, Some("a")))),
            (Method::POST, "/r/a/outcome", Some((ControlAction::Outcome, Some("a")))),
            (Method::POST, "/outcome", Some((ControlAction::Outcome, None))),
            (Method::GET, "/outcome", None),
            (Method::GET, "/aegis/v1/runs/", Some((ControlAction::Read, Some("")))),
            (Method::GET, "/aegis/v1/runs/a/", None),
            (Method::POST, "/aegis/v1/runs/a/other", None),
            (Method::GET, "/metrics/more", None),
            (Method::GET, "", None),
        ] {
            assert_eq!(matched(&method, path), expected, "{method} {path}");
        }
    }

    #[test]
    fn every_code_of_a_refusal_is_listed() {
        let source = include_str!("refusal.rs");
        let code = |rest: &str| rest.split('"').nth(1).map(str::to_owned);
        let made: Vec<String> = source.split("StatusCode::").skip(1).filter_map(code).collect();
        assert!(made.len() > 10, "{made:?}");
        for code in made.iter().filter(|code| code.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')) {
            assert!(CONTROL_CODES.iter().any(|(listed, _)| listed == code), "`{code}` is not in CONTROL_CODES");
        }
    }
}
