//! What the page's server answers, in one table: requests are led by it, and the `OpenAPI` document is made from it.

use schemars::{Schema, SchemaGenerator};
use serde_json::Value;

use super::{
    compare::ComparedRuns,
    page_data::{
        DatasetPage, FoundRuns, FoundWords, PageError, PageStep, RunPage, RunTree, SamplePage, SampleStepPage,
        StoredBody, SuspectedRows, WrittenAnnotation,
    },
    shown::ShownStep,
};
use crate::{
    proxy::{HttpRoute, RouteAnswer, body_schema},
    recording::GivenAnnotation,
};

/// A request that the page's server answers.
pub(super) type ViewRoute = HttpRoute<ViewAction>;

/// What a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ViewAction {
    Page,
    PageFile,
    Session,
    Tree,
    Runs,
    Run,
    Step,
    Texts,
    Search,
    Trace,
    Attribution,
    RawBody,
    BodyFile,
    Diff,
    Campaign,
    Dataset,
    Sample,
    SampleAttribution,
    SampleTexts,
    Live,
    Annotate,
}

impl ViewAction {
    /// Whether those who annotate get it: they see what happened, and nothing else.
    pub(super) fn is_blind(self) -> bool {
        use ViewAction::{BodyFile, RawBody, Run, Runs, Search, Step, Texts, Tree};
        matches!(self, Tree | Runs | Run | Step | Texts | Search | RawBody | BodyFile)
    }
}

/// The schema of an error.
pub fn view_error_schema(generator: &mut SchemaGenerator) -> Schema {
    body_schema::<PageError<'static>>(generator)
}

/// Statuses of errors, with what each means.
pub const VIEW_ERRORS: &[(u16, &str)] = &[
    (400, "what was asked cannot be understood"),
    (401, "neither cookie nor token"),
    (404, "nothing has this name"),
    (413, "an annotation is too long"),
    (415, "an annotation is no JSON"),
    (422, "it is there and cannot be read"),
    (500, "a defect of Aegis: please report it"),
];

const BYTES: RouteAnswer = RouteAnswer::Other("application/octet-stream");
const RAW: RouteAnswer = RouteAnswer::Json(body_schema::<StoredBody>);
const ATTRIBUTION: RouteAnswer = RouteAnswer::Json(body_schema::<SuspectedRows<'static>>);

/// All of them. Below `/api/` each needs the cookie of `/session`, or the token in `x-aegis-token`.
pub const VIEW_ROUTES: &[ViewRoute] = &[
    ViewRoute::get("/", "The page", ViewAction::Page, RouteAnswer::Other("text/html")),
    ViewRoute::get("/page/{file}", "A file of the page", ViewAction::PageFile, RouteAnswer::Other("text/javascript")),
    ViewRoute::get(
        "/page/vendor/{file}",
        "A file of the page that others wrote",
        ViewAction::PageFile,
        RouteAnswer::Other("text/javascript"),
    ),
    ViewRoute::post(
        "/session",
        "Takes the token as the body, and gives a cookie for `/api/`",
        ViewAction::Session,
        None,
        RouteAnswer::Nothing,
    ),
    ViewRoute::get(
        "/api/tree",
        "What there is: runs, campaigns, data sets",
        ViewAction::Tree,
        RouteAnswer::Json(body_schema::<RunTree<'static>>),
    ),
    ViewRoute::get(
        "/api/runs/{query}",
        "Runs of a long list; `query` is JSON, percent-encoded: `q`, `text`, `outcome`, `kind`, `labelled`, `trials`, `campaign`, `sort`",
        ViewAction::Runs,
        RouteAnswer::Json(body_schema::<FoundRuns<'static>>),
    ),
    ViewRoute::get(
        "/api/run/{run}",
        "A run, a row a step",
        ViewAction::Run,
        RouteAnswer::Json(body_schema::<RunPage<'static>>),
    ),
    ViewRoute::get(
        "/api/run/{run}/step/{step}",
        "A step as `aegis show --format json` prints it",
        ViewAction::Step,
        RouteAnswer::Json(body_schema::<ShownStep<'static>>),
    ),
    ViewRoute::get(
        "/api/run/{run}/texts/{step}",
        "A step, read: messages, replies, tools, changes",
        ViewAction::Texts,
        RouteAnswer::Json(body_schema::<PageStep<'static>>),
    ),
    ViewRoute::get(
        "/api/run/{run}/search/{words}",
        "Steps that hold words",
        ViewAction::Search,
        RouteAnswer::Json(body_schema::<FoundWords>),
    ),
    ViewRoute::get(
        "/api/run/{run}/trace",
        "`trace.json` of the run, as schemas/files/trace describes it",
        ViewAction::Trace,
        RouteAnswer::Json(body_schema::<Value>),
    ),
    ViewRoute::get(
        "/api/run/{run}/attribution",
        "What methods of attribution say of the run",
        ViewAction::Attribution,
        ATTRIBUTION,
    ),
    ViewRoute::get(
        "/api/run/{run}/raw/{step}/{body}",
        "A body as it is stored, for the eye: `request` or `sent`",
        ViewAction::RawBody,
        RAW,
    ),
    ViewRoute::get(
        "/api/run/{run}/raw/{step}/{body}/{attempt}",
        "A body of an attempt, for the eye: `reply` or `delivered`",
        ViewAction::RawBody,
        RAW,
    ),
    ViewRoute::get("/api/run/{run}/file/{step}/{body}", "The same body to be saved", ViewAction::BodyFile, BYTES),
    ViewRoute::get(
        "/api/run/{run}/file/{step}/{body}/{attempt}",
        "The same body of an attempt to be saved",
        ViewAction::BodyFile,
        BYTES,
    ),
    ViewRoute::get(
        "/api/diff/{a}/{b}",
        "Two runs, aligned by agent and call",
        ViewAction::Diff,
        RouteAnswer::Json(body_schema::<ComparedRuns<'static>>),
    ),
    ViewRoute::get(
        "/api/campaign/{campaign}",
        "`report.json` of a campaign, as schemas/files/report describes it",
        ViewAction::Campaign,
        RouteAnswer::Json(body_schema::<Value>),
    ),
    ViewRoute::get(
        "/api/dataset/{dataset}",
        "A data set: counts, findings, samples",
        ViewAction::Dataset,
        RouteAnswer::Json(body_schema::<DatasetPage<'static>>),
    ),
    ViewRoute::get(
        "/api/sample/{dataset}/{sample}",
        "A sample in the shape of a run; `sample` is its number",
        ViewAction::Sample,
        RouteAnswer::Json(body_schema::<SamplePage<'static>>),
    ),
    ViewRoute::get(
        "/api/sample/{dataset}/{sample}/attribution",
        "What methods of attribution say of the sample",
        ViewAction::SampleAttribution,
        ATTRIBUTION,
    ),
    ViewRoute::get(
        "/api/sample/{dataset}/{sample}/texts/{step}",
        "A step of a sample, read",
        ViewAction::SampleTexts,
        RouteAnswer::Json(body_schema::<SampleStepPage<'static>>),
    ),
    ViewRoute::get(
        "/api/live/{run}",
        "Follows a run that is written: an event a change, with the head and the rows that are new",
        ViewAction::Live,
        RouteAnswer::Other("text/event-stream"),
    ),
    ViewRoute::post(
        "/api/annotation/{run}",
        "Takes what the annotator of `view --annotate` says of a run; with `--modes`, which mode a change shows",
        ViewAction::Annotate,
        Some(annotation_schema),
        RouteAnswer::Json(body_schema::<WrittenAnnotation>),
    ),
];

/// Either of what annotators say.
fn annotation_schema(generator: &mut SchemaGenerator) -> Schema {
    #[derive(schemars::JsonSchema)]
    #[serde(untagged)]
    #[expect(dead_code, reason = "only its schema is asked for")]
    enum AnnotatorAnswer {
        Step(GivenAnnotation),
        Mode(super::mode_form::ModeAnswer),
    }
    body_schema::<AnnotatorAnswer>(generator)
}
