//! One name, one speaker: what lives side by side under a name, and what is one history.

use super::*;

#[test]
fn one_name_over_two_prompts_is_nobodys_on_arrival_and_late() {
    let mut story = Story::new();
    let clerk = |duty: &str| json!({"role": "system", "name": "Clerk", "content": format!("You {duty}.")});
    let first = story.ask(&[clerk("write"), user(TIDES)], &[]);
    story.answer(&first, &assistant(FIRST));
    assert!(first.attribution.is_certain());
    let second = story.ask(&[clerk("check"), user(FIRST)], &[]);
    story.answer(&second, &assistant(SECOND));
    assert!(second.attribution.ambiguous, "{:?}", second.attribution);
    let again = story.ask(&[clerk("write"), user(SECOND)], &[]);
    assert!(again.attribution.ambiguous);
    story.answer(&again, &assistant("So be it, then."));
    let late = story.late();
    let of_first = late[&first.run].iter().find(|step| step.step == first.step).expect("it is seen otherwise");
    assert_eq!(of_first.ambiguous, Some(true), "who else spoke is known only late");
}

#[test]
fn one_history_is_one_agent_whatever_changes_in_it() {
    let mut story = Story::new();
    let bot = |knows: &str| json!({"role": "system", "name": "Bot", "content": format!("You act. You know: {knows}.")});
    let first = story.ask(&[bot("nothing"), user(TIDES)], &["find"]);
    story.answer(&first, &assistant(FIRST));
    let second = story.ask(&[bot("tides"), user(TIDES), assistant(FIRST), user("And now?")], &["find", "mail"]);
    assert!(second.attribution.is_certain(), "{:?}", second.attribution);
    // Nobody named: other tools, its own words.
    let mut story = Story::new();
    let first = story.ask(&[system("You act."), user(TIDES)], &["find"]);
    story.answer(&first, &assistant(FIRST));
    let second = story.ask(&[system("You act."), user(TIDES), assistant(FIRST), user("And now?")], &["mail"]);
    assert_eq!(first.attribution.agent, second.attribution.agent);
    story.answer(&second, &assistant(SECOND));
    // Tools that grow.
    let third = story.ask(&[system("You act."), user(SECOND)], &["mail", "pay"]);
    assert_eq!(first.attribution.agent, third.attribution.agent);
    story.answer(&third, &assistant("Paid in full."));
    assert!(story.late().is_empty(), "{:?}", story.late());
}
