//! What the reference implementation of the method, its data and its neighbours get wrong, and what users ask of a
//! campaign: each point with the tests that hold it here.

use crate::acceptance::{Point, held};

const PROOF: &str = "tests/it/campaign/proof.rs";
const CLASSES: &str = "tests/it/campaign/classes.rs";
const REFERENCE: &str = "tests/it/campaign/reference.rs";
const RESUME: &str = "tests/it/campaign/resume.rs";
const BUDGET: &str = "tests/it/campaign/budget.rs";
const REWRITING: &str = "tests/it/rewriting.rs";
const HOSTILE: &str = "tests/it/rewriting_hostile.rs";
const QUESTION: &str = "crates/injection/src/manipulator/rewrite_with_model/tests.rs";
const TEMPLATES: &str = "crates/injection/src/manipulator/rewrite_with_model/template.rs";
const INVARIANTS: &str = "tests/it/invariants.rs";
const LINT: &str = "crates/dataset/src/dataset/lint/tests.rs";
const SAMPLER: &str = "crates/campaign/src/campaign/sample_tests.rs";
const SEEDED: &str = "every_seeded_defect_is_caught_by_its_rule_alone";

/// Labels and their proof.
const LABELS: &[Point] = &[
    (
        "a run that ended without an exception counts as a failure",
        &[(PROOF, "a_label_is_verified_only_with_all_that_proves_it")],
    ),
    (
        "a failure that ends in the right answer",
        &[(LINT, SEEDED), (PROOF, "plans_of_several_injections_are_narrowed_to_what_the_failure_needs")],
    ),
    (
        "a right answer in other words is graded wrong",
        &[
            ("crates/execution/src/verify/numeric.rs", "hard_cases"),
            ("crates/execution/src/verify/choice_tests.rs", "hard_cases"),
        ],
    ),
    (
        "a run is kept if the clean answer was wrong already",
        &[(CLASSES, "tasks_whose_clean_runs_do_not_pass_are_left_out")],
    ),
    ("an exception becomes an answer and is graded", &[(CLASSES, "injected_runs_that_crash_or_hang_are_no_failures")]),
    (
        "an upstream's error counts as the agent's",
        &[(CLASSES, "an_upstream_that_fails_makes_no_label_and_is_tried_again")],
    ),
    (
        "an aggregator is never labelled, or overwrites an agent",
        &[(REFERENCE, "an_aggregator_is_labelled_like_any_other_agent")],
    ),
    ("a second mode of an agent overwrites its first", &[(REFERENCE, "two_modes_of_one_agent_are_two_errors")]),
    (
        "a label names an agent that never speaks, or spells it otherwise",
        &[(LINT, SEEDED), (CLASSES, "plans_that_cannot_be_made_are_not_run")],
    ),
    ("a label is off by one", &[(LINT, SEEDED), (INVARIANTS, "planned_matched_applied_and_delivered_are_four_facts")]),
    ("labels come from file names", &[(PROOF, "a_label_is_verified_only_with_all_that_proves_it")]),
    ("the step that was changed is kept nowhere", &[(REFERENCE, "the_data_hold_what_was_asked_and_what_was_sent")]),
    (
        "all targets are blamed, needed or not",
        &[(PROOF, "plans_of_several_injections_are_narrowed_to_what_the_failure_needs")],
    ),
];

/// Who is hit, when, with what.
const INJECTIONS: &[Point] = &[
    (
        "agents are told by words of the task, or by counting calls",
        &[
            (REFERENCE, "words_of_the_task_name_nobody"),
            ("tests/it/identity.rs", "overlapping_calls_of_one_agent_are_marked"),
        ],
    ),
    ("a role that nobody has is hit by nothing, and labelled", &[(CLASSES, "plans_that_cannot_be_made_are_not_run")]),
    (
        "every call of the target is hit, whatever the plan wants",
        &[
            ("crates/injection/src/plan/decide_tests.rs", "each_condition_alone"),
            (SAMPLER, "positions_are_calls_of_the_reference"),
        ],
    ),
    (
        "a call is edited twice",
        &[
            (INVARIANTS, "a_retry_meets_the_decision_of_its_first_attempt"),
            ("tests/it/plans.rs", "max_times_counts_delivered_edits"),
        ],
    ),
    ("an edit is undone before it is sent", &[(INVARIANTS, "planned_matched_applied_and_delivered_are_four_facts")]),
    (
        "tool calls, streams and content parts are not edited",
        &[
            (REWRITING, "tool_calls_and_structured_output_keep_their_shape"),
            (REWRITING, "an_edit_by_a_model_is_the_same_streamed_or_whole"),
            (QUESTION, "content_that_is_no_text_stays"),
        ],
    ),
    (
        "a request of another shape is edited to nothing",
        &[("tests/it/surfaces.rs", "a_plan_edits_every_surface_whole_and_streamed")],
    ),
    (
        "unknown keys of a plan are ignored, missing ones guessed",
        &[
            ("crates/injection/src/plan/plan_tests.rs", "every_problem_of_a_file_is_reported_at_once"),
            ("crates/injection/src/plan/plan_tests.rs", "types_and_names"),
        ],
    ),
    (
        "one plan for a whole set, drawn by hand",
        &[
            (SAMPLER, "each_stratum_comes_as_often_as_any_other"),
            (SAMPLER, "the_seed_and_the_place_decide_and_nothing_else"),
        ],
    ),
    ("draws without a seed", &[("crates/injection/src/plan/decide_tests.rs", "draws_are_fixed_for_ever")]),
    (
        "runs at the same time share their state",
        &[("tests/it/identity.rs", "sixteen_interleaved_runs_hold_no_foreign_exchange")],
    ),
    (
        "the trace shows the prompt as it was before the edit, and only that",
        &[(REFERENCE, "the_data_hold_what_was_asked_and_what_was_sent")],
    ),
    (
        "steps stand in another order than that of time",
        &[
            ("crates/dataset/src/dataset/tests.rs", "overlapping_steps_stand_in_one_order_and_the_label_follows"),
            ("crates/dataset/src/dataset/tests.rs", "a_step_that_waited_stays_after_what_it_waited_for"),
        ],
    ),
];

/// The model that rewrites, and the catalogue of modes.
const MANIPULATOR: &[Point] = &[
    ("no temperature is sent", &[(REWRITING, "an_edit_by_a_model_is_the_same_streamed_or_whole")]),
    ("it sees a made-up agent", &[(QUESTION, "the_question_holds_the_real_agent")]),
    (
        "it is asked once, and its words are not looked at",
        &[
            (QUESTION, "it_asks_again_with_the_reason_and_gives_up_after_its_tries"),
            (QUESTION, "hostile_answers_are_refused_with_the_reason"),
        ],
    ),
    (
        "where it fails the original is sent, and labelled",
        &[
            (HOSTILE, "a_hostile_model_leaves_the_step_untouched_and_the_run_unlabelled"),
            (CLASSES, "plans_that_cannot_be_made_are_not_run"),
        ],
    ),
    (
        "the kind of a task is guessed wrong",
        &[("crates/injection/src/manipulator/rewrite_with_model/kind.rs", "kinds_are_told_from_tasks")],
    ),
    (
        "every template orders a wrong answer",
        &[
            (TEMPLATES, "no_template_orders_to_be_wrong"),
            ("crates/injection/src/plan/catalogue_tests.rs", "default_texts_do_not_speak_of_injection"),
        ],
    ),
    ("two sides or kinds share a template", &[(TEMPLATES, "templates_differ_by_kind_and_side")]),
    (
        "modes are missing on a side",
        &[
            ("crates/injection/src/plan/shipped_tests.rs", "mast_is_whole"),
            (REWRITING, "every_mode_is_planted_on_both_sides_whole_and_streamed"),
        ],
    ),
    (
        "three lists of modes disagree",
        &[
            ("crates/conversation/src/trajectory/failure_mode.rs", "fourteen_modes_with_distinct_codes_and_names"),
            (LINT, SEEDED),
        ],
    ),
    (
        "injected words give themselves away",
        &[("crates/dataset/src/dataset/statistics/tests.rs", "the_probe_finds_tells_and_only_those")],
    ),
];

/// What users of a campaign ask for.
const NEEDS: &[Point] = &[
    (
        "labels are in range, named as in the trace, of one taxonomy, in blocks of their own",
        &[(LINT, SEEDED), (LINT, "every_rule_has_a_fixture_and_a_name_of_its_own")],
    ),
    (
        "the place of an injection is in the data, and its bytes",
        &[
            (PROOF, "a_label_is_verified_only_with_all_that_proves_it"),
            (REFERENCE, "the_data_hold_what_was_asked_and_what_was_sent"),
        ],
    ),
    (
        "the beginning is the same, and not paid for",
        &[
            (PROOF, "a_label_is_verified_only_with_all_that_proves_it"),
            ("tests/it/replay.rs", "a_prefix_comes_from_the_record_and_the_rest_is_live"),
        ],
    ),
    (
        "it goes on after a kill, pays for nothing twice, and its totals add up",
        &[
            (RESUME, "killed_at_twenty_points_it_pays_for_nothing_twice"),
            (PROOF, "a_label_is_verified_only_with_all_that_proves_it"),
        ],
    ),
    ("a hung run ends by its deadline", &[(CLASSES, "a_hung_program_is_ended_with_its_group")]),
    (
        "the budget holds whatever runs side by side",
        &[
            (BUDGET, "bounds_hold_and_a_larger_budget_goes_on_where_it_ended"),
            ("crates/wire/src/budget/ledger.rs", "never_more_than_the_bound_whatever_runs_side_by_side"),
            (HOSTILE, "a_budget_holds_for_calls_at_the_same_time"),
        ],
    ),
    (
        "an upstream's refusals are told from planted ones, and heeded",
        &[
            (BUDGET, "an_upstream_that_says_429_is_asked_less"),
            ("tests/it/faults.rs", "a_step_that_a_fault_ended_is_not_put_down_to_the_upstream"),
        ],
    ),
    ("an SDK's retries are attempts of one step", &[("tests/it/identity.rs", "retries_are_attempts_of_one_step")]),
    (
        "a plan that never fired is a finding, with the nearest miss",
        &[
            (CLASSES, "plans_that_cannot_be_made_are_not_run"),
            ("crates/injection/src/plan/against.rs", "names_the_steps_or_what_came_nearest"),
        ],
    ),
    (
        "the same seed, the same data",
        &[
            (PROOF, "the_dataset_is_the_same_whatever_runs_side_by_side"),
            (INVARIANTS, "decisions_do_not_depend_on_the_order_of_arrival"),
        ],
    ),
    (
        "rates have intervals, and what wavers is left out",
        &[
            ("crates/conversation/src/trajectory/executed.rs", "intervals_are_wilsons"),
            (CLASSES, "tasks_whose_clean_runs_do_not_pass_are_left_out"),
        ],
    ),
    ("no key is in a plan, a report or a recording", &[("tests/it/secrets.rs", "no_secret_is_at_rest_or_said")]),
    ("ids collide, parts share tasks", &[(LINT, SEEDED)]),
    (
        "a prompt cut to size loses what is to be found in it",
        &[("crates/dataset/src/dataset/formats/prompt_tests.rs", "cutting_keeps_every_labelled_step_and_the_budget")],
    ),
];

#[test]
fn each_defect_has_its_test() {
    [LABELS, INJECTIONS, MANIPULATOR, NEEDS].into_iter().for_each(held);
}
