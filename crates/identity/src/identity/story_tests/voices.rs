//! One name, one speaker: what lives side by side under a name, and what is one history.

use super::*;

#[test]
fn one_name_over_two_prompts_is_nobodys_on_arrival_and_late() {
    let mut story = Story::new();
    let clerk = |duty: &str| json!({"role": "system", "name": "Clerk", "content": format!("You {duty}.")});
    let first = story.ask(&[clerk("write"), user(TIDES)], &[]);
    story.answer(&first, &said(FIRST));
    assert!(first.told.is_certain());
    let second = story.ask(&[clerk("check"), user(FIRST)], &[]);
    story.answer(&second, &said(SECOND));
    assert!(second.told.ambiguous, "{:?}", second.told);
    let again = story.ask(&[clerk("write"), user(SECOND)], &[]);
    assert!(again.told.ambiguous);
    story.answer(&again, &said("So be it, then."));
    let late = story.late();
    let of_first = late[&first.run].iter().find(|step| step.step == first.step).expect("it is seen otherwise");
    assert_eq!(of_first.ambiguous, Some(true), "who else spoke is known only late");
}

#[test]
fn one_history_is_one_agent_whatever_changes_in_it() {
    let mut story = Story::new();
    let bot = |knows: &str| json!({"role": "system", "name": "Bot", "content": format!("You act. You know: {knows}.")});
    let first = story.ask(&[bot("nothing"), user(TIDES)], &["find"]);
    story.answer(&first, &said(FIRST));
    let second = story.ask(&[bot("tides"), user(TIDES), said(FIRST), user("And now?")], &["find", "mail"]);
    assert!(second.told.is_certain(), "{:?}", second.told);
    // Nobody named: other tools, its own words.
    let mut story = Story::new();
    let first = story.ask(&[system("You act."), user(TIDES)], &["find"]);
    story.answer(&first, &said(FIRST));
    let second = story.ask(&[system("You act."), user(TIDES), said(FIRST), user("And now?")], &["mail"]);
    assert_eq!(first.told.agent, second.told.agent);
    story.answer(&second, &said(SECOND));
    // Tools that grow.
    let third = story.ask(&[system("You act."), user(SECOND)], &["mail", "pay"]);
    assert_eq!(first.told.agent, third.told.agent);
    story.answer(&third, &said("Paid in full."));
    assert!(story.late().is_empty(), "{:?}", story.late());
}
