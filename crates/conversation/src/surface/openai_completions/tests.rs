//! Prompts of every kind, read and edited.

use super::OpenaiCompletions;
use crate::surface::{Message, Role, Surface};

#[test]
fn prompts_of_every_kind_are_read_and_edited_where_they_are_text() {
    for (prompt, texts, editable) in [
        (r#""Say hi""#, vec!["Say hi"], true),
        (r#"["a","b"]"#, vec!["a", "b"], true),
        ("[1,2,3]", vec![""], false),
        (r#"["a",[1,2]]"#, vec!["a", ""], true),
    ] {
        let body = format!(r#"{{"model":"m","prompt": {prompt},"n":2}}"#);
        let before = OpenaiCompletions.read_request(body.as_bytes()).expect(prompt);
        assert_eq!(before.messages.iter().map(Message::text).collect::<Vec<_>>(), texts, "{prompt}");
        let mut after = before.clone();
        after.messages[0].set_text("x");
        let written = OpenaiCompletions.write_request(body.as_bytes(), &before, &after);
        assert_eq!(written.is_ok(), editable, "{prompt}: {written:?}");
        if let Ok(written) = written {
            let expected = body.replacen(&format!("{:?}", texts[0]), "\"x\"", 1);
            assert_eq!(std::str::from_utf8(&written), Ok(expected.as_str()));
        }
    }
    for none in ["{}", r#"{"prompt":3}"#, r#"{"prompt":"a""#] {
        assert!(OpenaiCompletions.read_request(none.as_bytes()).is_err(), "{none}");
    }
}

#[test]
fn a_new_message_joins_the_prompt() {
    let body = br#"{"prompt":"Say hi"}"#;
    let before = OpenaiCompletions.read_request(body).expect("a request");
    let mut after = before.clone();
    after.messages.insert(0, Message::text_of(Role::System, "Be rude."));
    let written = OpenaiCompletions.write_request(body, &before, &after).expect("written");
    assert_eq!(&written[..], br#"{"prompt":"Be rude.\n\nSay hi"}"#);
}
