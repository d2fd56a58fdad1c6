//! What was once printed and was not true, or said nothing to who read it: each with the tests that hold it true now.

use crate::acceptance::{Point, held};

const RUN: &str = "tests/it/run_told.rs";
const SURVIVAL: &str = "tests/it/survival.rs";
const MISTAKES: (&str, &str) = ("tests/it/mistakes.rs", "each_is_answered_with_what_where_why_and_what_to_type");
const RESUME: &str = "tests/it/campaign/resume.rs";
const BUDGET: (&str, &str) = ("tests/it/campaign/budget.rs", "a_dry_run_does_nothing_and_says_the_most_it_could_cost");
const TRACER: &str = "crates/dataset/src/dataset/formats/tracer_tests.rs";
const TOLD: &str = "crates/dataset/src/dataset/formats/provenance_tests.rs";
const FORMATS: &str = "tests/it/formats.rs";
const DATASET: &str = "crates/dataset/src/dataset/tests.rs";
const ROWS: &str = "tests/it/rows.rs";
const PLAN: (&str, &str) =
    ("src/cli/plan.rs", "a_plan_without_tests_is_no_failure_and_an_explanation_is_json_where_that_is_asked_for");

/// What running programs under Aegis said.
const RUNS: &[Point] = &[
    ("a check that cannot be run is no success", &[(RUN, "a_check_that_cannot_tell_is_never_a_success")]),
    (
        "the plan `rate-limit` catches who ignores Retry-After",
        &[
            (SURVIVAL, "ready_made_plans_are_found_by_name_and_mistakes_are_answered"),
            ("tests/it/client_verdict.rs", "what_clients_do_is_told_from_the_recording"),
        ],
    ),
    (
        "an upstream that nobody reaches, or that refuses the key, is said, with its name",
        &[
            (RUN, "an_upstream_that_nobody_reaches_is_said_whatever_the_program_makes_of_it"),
            (RUN, "a_key_that_the_upstream_refuses_is_said"),
            (RESUME, "a_key_that_the_upstream_refuses_is_said"),
            (SURVIVAL, "an_upstream_that_nobody_reaches_is_no_verdict"),
        ],
    ),
    (
        "a JUnit file is red exactly where the exit code is",
        &[
            (RUN, "a_junit_file_is_red_exactly_where_the_exit_code_is"),
            (SURVIVAL, "each_end_has_its_result_its_exit_code_and_its_colour"),
            ("crates/recording/src/verdict/tests.rs", "a_fault_that_never_came_is_inconclusive"),
        ],
    ),
    (
        "a red run is red again, and one name can be run twice",
        &[
            (SURVIVAL, "a_red_run_is_red_again_and_another_name_draws_anew"),
            (SURVIVAL, "run_replaces_a_recording_only_where_it_is_told_to"),
        ],
    ),
    (
        "what was delivered is not said to have altered nothing",
        &[
            (RUN, "a_fault_that_was_delivered_is_not_said_to_have_altered_nothing"),
            ("tests/it/campaign/claims.rs", "a_repeat_delivers_the_same_bytes_and_the_null_arm_asks_what_was_recorded"),
        ],
    ),
    ("a time-out and an exit code are named", &[(RUN, "what_ran_out_of_time_is_said_to_have"), MISTAKES]),
    ("`-v` says each call as it passes", &[(RUN, "calls_are_seen_as_they_pass")]),
    ("RESULT is the last line where the README says so", &[(RUN, "the_last_line_is_result_where_the_readme_says_so")]),
    (
        "colour is what was asked for, in every verb",
        &[
            ("tests/it/viewer.rs", "colour_is_what_was_asked_for"),
            ("tests/it/terminal.rs", "verdicts_have_colours_on_a_terminal_alone"),
            ("src/cli/screen.rs", "one_place_decides_whether_there_are_colours"),
        ],
    ),
];

/// What campaigns, plans and configurations said.
const CAMPAIGNS: &[Point] = &[
    (
        "unknown money is unknown, and who stops a campaign is told how to go on",
        &[(RESUME, "who_stops_one_is_told_what_was_made_and_how_to_go_on")],
    ),
    ("a dry run counts what `--only` leaves, and what is expected", &[BUDGET, MISTAKES]),
    (
        "`130` and every other end are in the reference",
        &[("tests/it/readme.rs", "the_reference_says_what_the_code_says")],
    ),
    ("a plan without tests is no failure; an explanation is JSON where asked for", &[PLAN]),
    (
        "a misspelt agent is named with the nearest, by `plan check` and by the run",
        &[MISTAKES, ("crates/injection/src/plan/against.rs", "names_the_steps_or_what_came_nearest")],
    ),
    (
        "why a task is left out stands on the console, in the report and in the JUnit file",
        &[MISTAKES, ("tests/it/campaign/classes.rs", "tasks_whose_clean_runs_do_not_pass_are_left_out")],
    ),
    (
        "how far a long campaign is, and how long it takes still",
        &[("tests/it/terminal.rs", "a_long_campaign_shows_how_long_it_will_take")],
    ),
    ("misspelt keys of aegis.toml, and numbers as answers, are told how to be written", &[MISTAKES]),
];

/// What data sets and their exports said.
const DATA: &[Point] = &[
    (
        "no file is lost without a word",
        &[
            (FORMATS, "nothing_is_lost_without_a_word"),
            ("tests/it/outputs.rs", "what_is_there_is_lost_only_where_that_was_asked_for"),
            ("tests/it/outputs.rs", "a_campaign_takes_no_place_of_other_data"),
        ],
    ),
    (
        "clean rows do not swamp failures, and parts are never mixed",
        &[(TRACER, "parts_are_never_mixed_and_clean_runs_never_more_than_failures")],
    ),
    (
        "what a simulator said goes out under no model's name",
        &[(TOLD, "what_a_simulator_said_is_never_told_as_a_models_words")],
    ),
    (
        "a verified failure is counted once, and one merged with another is said",
        &[
            (ROWS, "one_edit_under_two_modes_is_one_verified_failure_with_both"),
            (DATASET, "an_edit_under_two_declared_modes_is_one_error_with_both"),
        ],
    ),
    (
        "predictions over exported files are scored against the data set",
        &[(TRACER, "a_log_over_exported_files_is_scored_against_the_dataset_itself")],
    ),
    ("an Inspect log counts its samples", &[(TRACER, "an_inspect_log_says_how_many_samples_it_has")]),
    (
        "a prompt says what it leaves out, one step as one",
        &[(TRACER, "a_budget_cuts_inputs_first_and_says_what_is_gone")],
    ),
    (
        "a score says of how many runs it is",
        &[("tests/it/score.rs", "predictions_are_scored_beside_rules_without_a_model")],
    ),
    (
        "exported traces have the role that public ones have",
        &[("crates/dataset/src/dataset/formats/formats_tests.rs", "the_rows_that_trainers_take")],
    ),
    (
        "a card counts samples",
        &[(
            "crates/dataset/src/dataset/formats/selected_claims_tests.rs",
            "a_folder_says_what_each_of_its_formats_leaves_out",
        )],
    ),
    ("rewards read what Python reads", &[("crates/statistics/src/score/reward/hierarchical_tests.rs", "texts")]),
    ("a recording goes out without a data set", &[(FORMATS, "one_recorded_run_goes_out_where_nothing_is_claimed")]),
];

const SUGGESTED: &str = "tests/it/suggested.rs";
const ORIGIN: (&str, &str) = (SUGGESTED, "a_reply_says_where_it_came_from_and_a_run_how_long_its_calls_took");

/// What was suggested, and what was said of how runs came about.
const RUN_FACTS: &[Point] = &[
    (
        "each line that a first use found untrue is typed again, and what is printed now is so",
        &[("tests/it/told_lines.rs", "each_line_of_a_first_use_is_so")],
    ),
    (
        "a line that is suggested can be typed, also of imported runs and of those of a server",
        &[
            (SUGGESTED, "each_line_that_a_verb_suggests_can_be_typed"),
            (SUGGESTED, "what_a_run_says_can_be_done_can_be_done_and_the_rest_is_refused"),
        ],
    ),
    (
        "the calls of a traced run were live, and those of its executions recorded as far as they were",
        &[ORIGIN, ("crates/viewer/src/viewer/tests.rs", "executions_of_a_trace_say_which_steps_a_record_answered")],
    ),
    ("altered bytes that are given again are not called live", &[ORIGIN]),
    (
        "an imported reply is remade, neither masked nor answered",
        &[ORIGIN, ("tests/it/foreign.rs", "verbs_read_an_imported_run_and_none_takes_it_for_a_recorded_one")],
    ),
    ("a run takes as long as its calls", &[ORIGIN]),
    (
        "executions of a trace are not nothing",
        &[("src/cli/show/evidence.rs", "each_thing_that_was_executed_has_a_line")],
    ),
    (
        "ready-made plans are taken by name",
        &[("crates/campaign/src/campaign/read_tests.rs", "ready_made_plans_are_taken_by_name")],
    ),
    (
        "a dry run refuses what the line itself is refused for",
        &[("tests/it/campaign/rewriting.rs", "a_dry_run_counts_what_models_are_asked"), BUDGET],
    ),
    (
        "a tool without a schema takes any arguments",
        &[("crates/conversation/src/surface/schema_tests.rs", "rules_of_items_members_and_bounds")],
    ),
    (
        "agents of a recorded run can be named later, and its outcome given",
        &[
            ("tests/it/amend.rs", "names_and_outcomes_that_are_given_later_are_read_by_every_verb"),
            ("tests/it/amend.rs", "names_that_are_given_later_count_as_declared_and_a_label_says_whose_they_are"),
            ("tests/it/amend.rs", "a_server_takes_what_becomes_known_of_its_runs_after_they_have_ended"),
            ("tests/it/amend.rs", "an_imported_trace_takes_the_names_of_a_roster"),
        ],
    ),
];

#[test]
fn what_was_untrue_is_held_true() {
    [RUNS, CAMPAIGNS, DATA, RUN_FACTS].into_iter().for_each(held);
}
