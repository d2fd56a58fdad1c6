//! What the control listener answers, in one table: requests are led by it, and the `OpenAPI` document is made from it.

use hyper::Method;
use schemars::{Schema, SchemaGenerator};

use super::{
    refusal::ErrorReply,
    report::{AmendedReply, AnnotationList, OutcomeReport, RosterReport, TakenReply, TaskReport},
    standing::{NewRun, OpenReply, RunList, RunReply},
};
use crate::{
    proxy::listen::http_route::{HttpRoute, RouteAnswer, body_schema},
    recording::{Annotation, GivenAnnotation},
};

/// The schema of an error.
pub fn control_error_schema(generator: &mut SchemaGenerator) -> Schema {
    body_schema::<ErrorReply<'static>>(generator)
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
pub enum ControlAction {
    List,
    Open,
    Annotate,
    Annotations,
    Read,
    End,
    Keep,
    Release,
    Outcome,
    Roster,
    Task,
    Metrics,
}

/// A request that the control listener answers.
pub type ControlRoute = HttpRoute<ControlAction>;

const OUTCOME: &str = "Sets the outcome of a run; of one that has ended, as a fact beside the recording";
const ROSTER: &str = "Names the agents of a run that has ended";
const TASK: &str = "Sets the task of a run that has ended";

/// All of them.
pub const CONTROL_ROUTES: &[ControlRoute] = &[
    ControlRoute::get(
        "/aegis/v1/runs",
        "Lists the runs of the log directory, those written last first, 1,000 at most",
        ControlAction::List,
        RouteAnswer::Json(body_schema::<RunList>),
    ),
    ControlRoute::post(
        "/aegis/v1/runs",
        "Opens a run, under the server's plan if it has one: it waits for calls that name it",
        ControlAction::Open,
        Some(body_schema::<NewRun>),
        RouteAnswer::Json(body_schema::<OpenReply>),
    ),
    ControlRoute::post(
        "/aegis/v1/runs/{run}/annotations",
        "Adds what somebody says of a run: the step of the error that decided it and the reason, or no error",
        ControlAction::Annotate,
        Some(body_schema::<GivenAnnotation>),
        RouteAnswer::Json(body_schema::<Annotation>),
    ),
    ControlRoute::get(
        "/aegis/v1/runs/{run}/annotations",
        "Lists what was said last of a run, by everybody, in the order of names",
        ControlAction::Annotations,
        RouteAnswer::Json(body_schema::<AnnotationList>),
    ),
    ControlRoute::get(
        "/aegis/v1/runs/{run}",
        "Reads one run",
        ControlAction::Read,
        RouteAnswer::Json(body_schema::<RunReply>),
    ),
    ControlRoute::post(
        "/aegis/v1/runs/{run}/end",
        "Ends a run: it takes no more calls",
        ControlAction::End,
        None,
        RouteAnswer::Json(body_schema::<RunReply>),
    ),
    ControlRoute::post(
        "/aegis/v1/runs/{run}/keep",
        "Keeps a run, whatever is pruned",
        ControlAction::Keep,
        None,
        RouteAnswer::Json(body_schema::<RunReply>),
    ),
    ControlRoute::post(
        "/aegis/v1/runs/{run}/release",
        "Takes back that a run is kept",
        ControlAction::Release,
        None,
        RouteAnswer::Json(body_schema::<RunReply>),
    ),
    ControlRoute::post(
        "/aegis/v1/runs/{run}/outcome",
        OUTCOME,
        ControlAction::Outcome,
        Some(body_schema::<OutcomeReport>),
        RouteAnswer::Json(body_schema::<TakenReply>),
    ),
    ControlRoute::post(
        "/aegis/v1/runs/{run}/roster",
        ROSTER,
        ControlAction::Roster,
        Some(body_schema::<RosterReport>),
        RouteAnswer::Json(body_schema::<AmendedReply>),
    ),
    ControlRoute::post(
        "/aegis/v1/runs/{run}/task",
        TASK,
        ControlAction::Task,
        Some(body_schema::<TaskReport>),
        RouteAnswer::Json(body_schema::<AmendedReply>),
    ),
    ControlRoute::post(
        "/outcome",
        OUTCOME,
        ControlAction::Outcome,
        Some(body_schema::<OutcomeReport>),
        RouteAnswer::Json(body_schema::<TakenReply>),
    ),
    ControlRoute::post(
        "/r/{run}/outcome",
        OUTCOME,
        ControlAction::Outcome,
        Some(body_schema::<OutcomeReport>),
        RouteAnswer::Json(body_schema::<TakenReply>),
    ),
    ControlRoute::post(
        "/roster",
        ROSTER,
        ControlAction::Roster,
        Some(body_schema::<RosterReport>),
        RouteAnswer::Json(body_schema::<AmendedReply>),
    ),
    ControlRoute::post(
        "/task",
        TASK,
        ControlAction::Task,
        Some(body_schema::<TaskReport>),
        RouteAnswer::Json(body_schema::<AmendedReply>),
    ),
    ControlRoute::get(
        "/metrics",
        "Counts for Prometheus, in the OpenMetrics text format",
        ControlAction::Metrics,
        RouteAnswer::Other("application/openmetrics-text"),
    ),
];

/// What a request asks for, and the run that its path names.
pub(super) fn matched<'p>(method: &Method, path: &'p str) -> Option<(ControlAction, Option<&'p str>)> {
    let (action, named) = ControlRoute::matched(CONTROL_ROUTES, method, path)?;
    Some((action, named.first().copied()))
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
