//! What is done to a run, which verbs can do it, and what each of them must answer.

use aegis::ruling::NoLabel;

/// Who executes a program, or writes a label of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    Run,
    Serve,
    Fork,
    Test,
    Campaign,
    Trace,
    Prove,
    Retry,
}

pub const VERBS: [Verb; 8] =
    [Verb::Run, Verb::Serve, Verb::Fork, Verb::Test, Verb::Campaign, Verb::Trace, Verb::Prove, Verb::Retry];

/// What is done to a run.
pub struct Column {
    pub name: &'static str,
    /// What the program does besides.
    pub kind: &'static str,
    pub plan: String,
    /// Why there is no label, by whichever verb; `None` where there is one.
    pub answer: Option<NoLabel>,
    /// The class of the injected run in a campaign.
    pub class: &'static str,
    /// The call of the adder that a label would name.
    pub call: u64,
    /// Whether it is a run that begins like another.
    pub forked: bool,
    /// Whether the late pass has an objection to the step.
    pub late: bool,
    /// What is said of the step that a label would name, whatever else speaks against the run.
    pub of_step: Option<NoLabel>,
    /// Verbs in which it cannot come about, and why.
    pub cannot: &'static [(&'static [Verb], &'static str)],
}

impl Column {
    /// Why it cannot come about by a verb.
    pub fn impossible(&self, verb: Verb) -> Option<&'static str> {
        self.cannot.iter().find(|(verbs, _)| verbs.contains(&verb)).map(|(_, why)| *why)
    }
}

const NOTED: (&[Verb], &str) =
    (&[Verb::Retry], "an execution of a retry answers a note, which is the first gate: the column `note given`");
const NO_PLANT: (&[Verb], &str) =
    (&[Verb::Trace], "a trace names steps that nobody planted an error in; what a plan did is no matter of its label");
const TRIED: (&[Verb], &str) =
    (&[Verb::Campaign], "a campaign tries each edit on its reference first, and plants none that cannot be made there");

fn edit(agent: &str, call: u64, edit: &str) -> String {
    format!("[[injection]]\nagent = \"{agent}\"\nfailure_mode = \"FM-2.6\"\nwhen.call = {call}\n{edit}\n")
}

const CORRUPT: &str = "manipulator.corrupt_number = { which = \"last\", by = 10 }";

/// A column of the plain program with one corrupted number and no objection.
fn column(name: &'static str, kind: &'static str, edits: &[String]) -> Column {
    Column {
        name,
        kind,
        plan: format!("format = 1\nseed = 7\n{}", edits.concat()),
        answer: None,
        class: "verified",
        call: 0,
        forked: false,
        late: false,
        of_step: None,
        cannot: &[NOTED],
    }
}

fn refused(column: Column, answer: NoLabel, class: &'static str) -> Column {
    Column { answer: Some(answer), class, ..column }
}

/// Objections to a step: to who made the call, and to which call it is.
pub fn of_steps() -> Vec<Column> {
    use Verb::{Campaign, Fork, Prove, Retry, Run, Serve, Test, Trace};
    let corrupt = edit("adder", 0, CORRUPT);
    let third = edit("adder", 2, CORRUPT);
    vec![
        refused(
            column("contested name", "contested", std::slice::from_ref(&corrupt)),
            NoLabel::ContestedName,
            "ambiguous_agent",
        ),
        Column {
            late: true,
            cannot: &[
                (
                    &[Run, Serve, Fork, Test, Campaign],
                    "what has a plan has a named run, and the late pass leaves named runs alone",
                ),
                NOTED,
            ],
            ..refused(column("late agent", "plain", &[corrupt]), NoLabel::SeenLate, "")
        },
        Column {
            call: 2,
            cannot: &[
                (
                    &[Fork, Campaign],
                    "a record answers at once, so that calls do not overlap again: the column `overlap only in the reference`",
                ),
                NOTED,
            ],
            ..refused(column("overlap", "overlap", std::slice::from_ref(&third)), NoLabel::Overlapping, "")
        },
        Column {
            call: 2,
            forked: true,
            cannot: &[(&[Run, Serve, Test], "it begins like no other run"), NOTED],
            ..refused(
                column("overlap only in the reference", "overlap", &[third]),
                NoLabel::OverlappingInReference,
                "ambiguous_agent",
            )
        },
        Column {
            cannot: &[(&[Run, Serve, Fork, Test, Campaign, Trace, Prove], "`retry` alone gives notes")],
            ..refused(column("note given", "plain", &[]), NoLabel::Note, "")
        },
    ]
    .into_iter()
    .inspect(|column| assert!(column.impossible(Retry).is_some() || column.name == "note given"))
    .collect()
}

/// Objections to a run, and what is none.
pub fn of_runs() -> Vec<Column> {
    use Verb::{Campaign, Fork, Prove, Run, Serve, Test};
    let corrupt = edit("adder", 0, CORRUPT);
    let fault = "[[injection]]\nagent = \"critic\"\nwhen.call = 0\nfault.status = { code = 503 }\n".to_owned();
    let refuse = "side = \"request\"\nmanipulator.append_instruction = { text = \"REFUSE\" }";
    let suffix = "side = \"request\"\nmanipulator.append_instruction = { text = \"Add one.\" }";
    let of_plan = |column: Column| Column { cannot: &[NO_PLANT, NOTED], ..column };
    let never_made = |column: Column| Column { cannot: &[NO_PLANT, NOTED, TRIED], ..column };
    vec![
        column("labelled", "plain", std::slice::from_ref(&corrupt)),
        never_made(refused(
            column("failed edit", "plain", &[edit("adder", 0, "manipulator.negate_verdict = {}")]),
            NoLabel::ManipulatorFailed,
            "manipulator_failed",
        )),
        Column {
            of_step: Some(NoLabel::NotReadWhole),
            ..never_made(refused(
                column("reading not complete", "unread", std::slice::from_ref(&corrupt)),
                NoLabel::ManipulatorFailed,
                "manipulator_failed",
            ))
        },
        Column {
            of_step: Some(NoLabel::NotReadWhole),
            cannot: &[
                (
                    &[Run, Serve, Fork, Test, Campaign, Prove],
                    "no edit acts on a reply that was not read whole: the column `reading not complete`",
                ),
                NOTED,
            ],
            ..refused(column("error in a reply that was not read whole", "unread", &[]), NoLabel::NotReadWhole, "")
        },
        Column {
            of_step: Some(NoLabel::Unanswered),
            ..of_plan(refused(
                column("refused as edited", "plain", &[edit("adder", 0, refuse)]),
                NoLabel::EditRefused,
                "edit_refused",
            ))
        },
        Column {
            of_step: Some(NoLabel::Unanswered),
            ..of_plan(refused(
                column("client left", "left", &[edit("adder", 0, suffix)]),
                NoLabel::NotInjected,
                "not_injected",
            ))
        },
        of_plan(refused(column("fault planted", "plain", &[corrupt.clone(), fault]), NoLabel::FaultEnded, "fault")),
        Column { class: "crashed", ..column("child killed", "killed", &[corrupt]) },
    ]
}
