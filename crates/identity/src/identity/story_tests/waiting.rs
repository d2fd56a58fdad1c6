//! Stories of tools that are waited for.

use super::*;

#[test]
fn ids_and_retries_and_waiting_tools_name_the_run() {
    let mut story = Story::new();
    let lead = system("You lead.");
    let asked = story.ask(&[lead.clone(), user(TIDES)], &["ask"]);
    story.end(&asked, None, true);
    let retried = story.ask(&[lead.clone(), user(TIDES)], &["ask"]);
    assert_eq!((retried.line().as_str(), retried.who()), ("run1 retry", asked.who()), "the same question failed there");
    story.answer(&retried, &called("c1", "ask", "{}"));
    // A tool that calls a model with words of its own, while one run waits for it.
    assert_eq!(story.turn(&[system("You look things up."), user("moon")], &assistant("It pulls.")), "run1 pending");
    let back = [lead, user(TIDES), called("c1", "ask", "{}"), result("c1", "It pulls.")];
    assert_eq!(story.turn(&back, &assistant("The moon pulls the water.")), "run1 ids");
}

#[test]
fn who_comes_after_a_tool_was_answered_is_no_part_of_that_run() {
    // Two runs of one task and a model that repeats itself, ids and all: what names a call links to neither.
    let mut story = Story::new();
    let (lead, clerk) = (system("You lead."), [system("You are the clerk of a shop."), user("Name a colour.")]);
    for _ in 0..2 {
        let opened = [lead.clone(), user(TIDES)];
        story.turn(&opened, &called("c1", "ask", "{}"));
        let back = [&opened[..], &[called("c1", "ask", "{}"), result("c1", "It pulls.")]].concat();
        story.turn(&back, &assistant(FIRST));
    }
    assert_eq!(story.turn(&clerk, &assistant("Blue.")), format!("run{} new", story.runs.len()));

    // A program that was ended while its tool was at work, and two others after it.
    let mut story = Story::new();
    story.turn(&[lead, user(TIDES)], &called("c1", "ask", "{}"));
    let bees = user("Explain how bees navigate home.");
    assert_eq!(story.turn(&[system("You lead."), bees], &assistant("By the sun.")), "run2 new");
    assert_eq!(story.turn(&clerk, &assistant("Blue.")), "run3 new", "run 2 was at work since");
}
