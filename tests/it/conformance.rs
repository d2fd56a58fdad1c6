//! Every shape in which a provider says something × read, edited by each manipulator, ended, replayed. The list is
//! `tests/shapes`; `tests/shapes/SHAPES.md` holds what comes of it.

mod edits;
mod page;
mod planted;
mod reading;
mod requests;
mod shapes;
mod traces;
mod upstream;

use std::{collections::BTreeSet, sync::Arc};

use aegis::{
    plan,
    proxy::{AskingSettings, ManipulatorModel, RunSetup, upstream::Upstream},
    recording,
    replay::{Cassette, Replayed},
    simulator::Simulator,
    surface::{Message, Role, Surface},
    trajectory::{CallEnding, Label, RunId},
};
use futures_util::{StreamExt, stream};

use self::{
    edits::Outcome,
    shapes::{Ending, Shape},
    upstream::Shapes,
};
use crate::lab::{Lab, Reply, Setup};

/// Calls that are made at the same time.
const AT_ONCE: usize = 8;

/// What came of one shape; an error says what is not as it should be.
struct Row {
    read: Result<(), String>,
    edited: Vec<Outcome>,
    ended: Result<(), String>,
    replayed: Result<(), String>,
}

/// A request whose reply is of this shape.
fn asked(shape: &Shape) -> Vec<u8> {
    let surface = shape.surface();
    let blank = surface.read_request(surface.blank_request()).expect("a request");
    let mut asked = blank.clone();
    asked.messages =
        vec![Message::text_of(Role::System, "You count."), Message::text_of(Role::User, "How many towers?")];
    let body = surface.write_request(surface.blank_request(), &blank, &asked);
    let body = body.map_or_else(|_| surface.blank_request().to_vec(), |body| body.to_vec());
    if !shape.is_stream() {
        return body;
    }
    String::from_utf8(body).expect("utf-8").replacen('{', "{\"stream\": true, ", 1).into_bytes()
}

async fn post(lab: &Lab, number: usize, agent: &str, served: &str, body: &[u8], surface: &dyn Surface) -> Reply {
    lab.post(&format!("/r/shape-{number}/a/{agent}{}?shape={served}", surface.path()), body).await
}

/// Makes the calls of one shape's run: a peer, one that nobody edits, one for each manipulator.
async fn converse(lab: &Lab, number: usize, shape: &Shape, agents: &[String]) -> Vec<Reply> {
    let (body, served) = (asked(shape), number.to_string());
    let surface = shape.surface();
    post(lab, number, "peer", "peer", &body, surface).await;
    let mut got = vec![post(lab, number, "plain", &served, &body, surface).await];
    for agent in agents {
        got.push(post(lab, number, agent, &served, &body, surface).await);
    }
    got
}

fn row(lab: &Lab, plan: &plan::Plan, number: usize, shape: &Shape, got: &[Reply]) -> Row {
    let recording = recording::read(&lab.logs.join(format!("shape-{number}"))).expect("a recording");
    let steps = &recording.trajectory.steps;
    let plain = &steps[1];
    let attempt = plain.last_attempt().expect("an attempt");
    let edited = (0..plan.injections.len())
        .map(|at| edits::judge(shape, plan, at, &recording, &steps[at + 2], &got[at + 1].body));
    Row {
        read: passed(shape, &got[0], &attempt.reply).and_then(|()| is_read(shape, attempt.usage)),
        edited: edited.collect(),
        ended: ended(shape, attempt.ending, recording.label.as_ref()),
        replayed: Ok(()),
    }
}

/// The bytes are those of the upstream, for the client and in the record.
fn passed(shape: &Shape, got: &Reply, recorded: &[u8]) -> Result<(), String> {
    let sent = shape.bytes();
    if got.status != 200 || got.body != sent || recorded != sent {
        return Err(format!("other bytes came than were sent: {} {}", got.status, got.text()));
    }
    Ok(())
}

fn is_read(shape: &Shape, usage: Option<aegis::trajectory::Usage>) -> Result<(), String> {
    let meant = shape.meant();
    if usage != shape.usage() && shape.ending == Ending::Answered {
        return Err(format!("the tokens are {usage:?}, and {:?} were meant", shape.usage()));
    }
    if meant.is_empty() || shape.ending != Ending::Answered && meant.iter().all(|answer| answer.text.is_empty()) {
        return Ok(());
    }
    let read = reading::read(shape.surface(), &shape.bytes(), shape.is_stream());
    match read {
        // What nobody can place need not be read.
        Err(_) if shape.unplaced.is_some() => Ok(()),
        Err(why) => Err(why),
        Ok(read) => {
            let said = edits::said(&read);
            if said != meant {
                return Err(format!("it says {said:?}, and {meant:?} was meant"));
            }
            reading::accounts(shape.surface(), &shape.bytes(), shape.is_stream(), shape.unplaced.as_deref())
        }
    }
}

/// A call ended as the shape says, and one that was not answered earns no label.
fn ended(shape: &Shape, ending: Option<CallEnding>, label: Option<&Label>) -> Result<(), String> {
    shape.ending.holds(ending)?;
    if shape.ending != Ending::Answered && label.is_some_and(|label| !label.errors.is_empty()) {
        return Err("a label stands on a call that was not answered".to_owned());
    }
    Ok(())
}

/// Replays the unedited call of each run.
async fn replay(first: &Lab, shapes: &[Shape]) -> Vec<Result<(), String>> {
    let lab = Lab::over(Arc::new(Simulator::new(0)), Setup::default()).await;
    let one = async |number: usize| {
        let shape = &shapes[number];
        let cassette =
            Cassette::open(&first.logs.join(format!("shape-{number}"))).map_err(|error| error.to_string())?;
        let upstream = Some(Arc::new(Replayed::new(Arc::new(cassette))) as Arc<dyn Upstream>);
        let id = RunId::parse(&format!("shape-{number}")).expect("an id");
        lab.proxy.runs.open(&id, RunSetup { upstream, ..RunSetup::default() }).await.map_err(|e| e.to_string())?;
        let again = post(&lab, number, "plain", &number.to_string(), &asked(shape), shape.surface()).await;
        passed(shape, &again, &again.body)
    };
    stream::iter(0..shapes.len()).map(one).buffered(AT_ONCE).collect().await
}

async fn rows(shapes: &Arc<Vec<Shape>>) -> Vec<Row> {
    let (text, agents) = edits::plan("edits.toml");
    let setup = Setup {
        asking: Some(Arc::new(ManipulatorModel::new(Arc::new(Simulator::new(7)), AskingSettings::default()))),
        ..Setup::planned(&text)
    };
    let plan = setup.plan.clone().expect("a plan");
    let mut lab = Lab::over(Arc::new(Shapes(Arc::clone(shapes))), setup).await;
    let conversations = shapes.iter().enumerate().map(|(number, shape)| converse(&lab, number, shape, &agents));
    let got: Vec<_> = stream::iter(conversations).buffered(AT_ONCE).collect().await;
    lab.sealed("shape-0").await;
    let mut rows: Vec<_> = shapes
        .iter()
        .zip(&got)
        .enumerate()
        .map(|(number, (shape, got))| row(&lab, &plan, number, shape, got))
        .collect();
    for (row, replayed) in rows.iter_mut().zip(replay(&lab, shapes).await) {
        row.replayed = replayed;
    }
    rows
}

/// Cells that are not as they should be: (shape and column, what is wrong).
fn wrong(shapes: &[Shape], rows: &[Row]) -> Vec<(String, String)> {
    let (_, agents) = edits::plan("edits.toml");
    let mut wrong = Vec::new();
    for (shape, row) in shapes.iter().zip(rows) {
        let mut note = |column: &str, why: &str| wrong.push((format!("{}: {column}", shape.key()), why.to_owned()));
        for (column, cell) in [("read", &row.read), ("ended", &row.ended), ("replayed", &row.replayed)] {
            if let Err(why) = cell {
                note(column, why);
            }
        }
        let first = row.edited.iter().zip(&agents).find_map(|(outcome, edit)| match outcome {
            Outcome::Wrong(why) => Some(format!("{edit}: {why}")),
            _ => None,
        });
        if let Some(why) = first {
            note("edited", &why);
        }
    }
    wrong
}

#[tokio::test(flavor = "multi_thread")]
async fn every_shape_is_read_edited_ended_and_replayed() {
    let shapes = Arc::new(shapes::replies());
    let mut names = BTreeSet::new();
    shapes.iter().for_each(|shape| assert!(names.insert(shape.key()), "two shapes are called `{}`", shape.key()));
    assert!(shapes.len() >= 120, "{} shapes", shapes.len());
    let rows = rows(&shapes).await;
    page::assert_known(&wrong(&shapes, &rows), |cell| {
        !["request: ", "otlp: "].iter().any(|other| cell.starts_with(other))
    });
    page::assert_holds("tests/shapes/SHAPES.md", "shapes", &page::table(&shapes, &rows));
    page::assert_holds("docs/surfaces.md", "counts", &page::counts(&shapes));
}
