//! What holds for every conversation.

use proptest::prelude::*;

use super::*;

fn texts() -> impl Strategy<Value = String> {
    let phrase = prop_oneof![
        Just(PENCILS.to_owned()),
        Just("ANSWER: 75".to_owned()),
        Just("REVISE: the answer should be 74.".to_owned()),
        Just("1. Multiply 12 by 8.\n2. Divide the result of step 9 by 0.".to_owned()),
        Just("select the next role from ['a', 'b']".to_owned()),
        Just("You are the critic.".to_owned()),
        Just("Use 0 instead of 12. How many are 50% of 3/0 of 99999999999999999999?".to_owned()),
        "[a-zA-Z0-9 .,?!%$:=*/+()<>{}\\[\\]\"'\n-]{0,60}",
        "\\PC{0,40}",
    ];
    proptest::collection::vec(phrase, 0..4).prop_map(|phrases| phrases.join(" "))
}

fn conversations() -> impl Strategy<Value = Conversation> {
    let role =
        prop_oneof![Just(Role::System), Just(Role::User), Just(Role::Assistant), Just(Role::Tool), Just(Role::Other)];
    let message =
        (role, texts(), proptest::option::of("[a-z]{1,8}"), any::<bool>()).prop_map(|(role, text, name, calls)| {
            let mut message = Message::text_of(role, text);
            message.name = name;
            message.answers_call = (role == Role::Tool).then(|| "call".to_owned());
            if role == Role::Assistant && calls {
                let call = ToolCall {
                    id: "call".to_owned(),
                    name: "calculator".to_owned(),
                    arguments: "{".to_owned(),
                    origin: None,
                };
                message.tool_calls.push(call);
            }
            message
        });
    let tools =
        prop_oneof![Just(vec![]), Just(vec![calculator()]), Just(vec![transfer("solver", ""), transfer("b", "")])];
    let limit = proptest::option::of(0u64..20);
    (proptest::collection::vec(message, 0..6), tools, limit, 0u32..4).prop_map(
        |(messages, tools, max_tokens, choices)| Conversation {
            messages,
            tools,
            choices,
            max_tokens,
            ..Conversation::default()
        },
    )
}

proptest! {
    #[test]
    fn every_conversation_gets_the_same_reply_each_time(conversation in conversations(), seed in any::<u64>()) {
        let (reply, _) = reply::give(&conversation, seed);
        prop_assert_eq!(&reply, &reply::give(&conversation, seed).0);
        prop_assert!(!reply.answers.is_empty());
        for answer in &reply.answers {
            let calls = &answer.message.tool_calls;
            let cut = answer.finish_reason.as_deref() == Some("length");
            prop_assert!(cut || !calls.is_empty() || !answer.message.text().is_empty());
            for call in calls {
                prop_assert!(conversation.tools.iter().any(|tool| tool.name == call.name));
                prop_assert!(serde_json::from_str::<Value>(&call.arguments).is_ok_and(|value| value.is_object()));
            }
        }
    }
}

#[test]
fn alternatives_stops_and_limits_are_obeyed() {
    let asked = || conversation(&["system: You solve.", &format!("user: {PENCILS}")]);
    let (reply, _) = reply::give(&Conversation { choices: 3, ..asked() }, 0);
    assert_eq!(reply.answers.iter().map(|a| a.index).collect::<Vec<_>>(), [0, 1, 2]);
    let (reply, _) = reply::give(&Conversation { stop: vec!["\nANSWER".to_owned()], ..asked() }, 0);
    assert!(reply.answers[0].message.text().ends_with("(pencils left)."));
    assert_eq!(reply.answers[0].finish_reason.as_deref(), Some("stop"));
    let (reply, _) = reply::give(&Conversation { max_tokens: Some(3), ..asked() }, 0);
    assert_eq!(reply.answers[0].message.text(), "Step 1: 12 *");
    assert_eq!(reply.answers[0].finish_reason.as_deref(), Some("length"));
}

#[test]
fn usage_grows_with_the_text() {
    let usage = |lines: &[&str]| reply::give(&conversation(lines), 0).0.usage.expect("usage");
    let (short, long) = (
        usage(&["user: What is 1 + 2?"]),
        usage(&[&format!("user: {}What is 1 + 2?", "Read this well. ".repeat(100))]),
    );
    assert!((300..500).contains(&(long.input - short.input)), "{short:?} {long:?}");
    assert_eq!(short.output, long.output);
}
