//! What is masked, and what stays.

use super::*;

fn check(text: &str, expected: &str) {
    let redactor =
        Redactor::new(&Secrets { values: vec!["hunter2!".to_owned()], ..Secrets::default() }).expect("compiles");
    assert_eq!(redactor.text(text), expected, "{text}");
}

#[test]
fn keys_are_masked() {
    for (text, expected) in [
        ("key sk-proj-abc123DEF456 end", "key ******************** end"),
        (r"line\nsk-abcdefgh1 x", r"line\n************ x"),
        (r"line\u000ask-abcdefgh1 x", r"line\u000a************ x"),
        ("Authorization: Bearer abcdef123456==", "Authorization: Bearer **************"),
        (r#"{"api_key": "abcdefghijk12"}"#, r#"{"api_key": "*************"}"#),
        ("eyJhbGciOi.eyJzdWIiOi.c2ln", "**************************"),
        ("https://me:pw@host/x", "https://*****@host/x"),
        ("AKIAIOSFODNN7EXAMPLE", "********************"),
        ("my hunter2! here", "my ******** here"),
        (concat!("search tv", "ly-dev-abcdefgh12345678 it"), "search ************************* it"),
        (concat!("r", "8_abcdefgh1234567890"), "*********************"),
        ("token=abcdefghij12 &x", "token=************ &x"),
        ("secret_key: 'abcdefghij12'", "secret_key: '************'"),
        ("AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG", "AWS_SECRET_ACCESS_KEY=*********************"),
        ("AccountName=a;AccountKey=abcdefghij12+/==;E=x", "AccountName=a;AccountKey=****************;E=x"),
        (concat!("np", "m_abcdefgh1234567890AB"), "************************"),
        (concat!("S", "G.abcdefgh1234567890.AB"), "************************"),
        ("Cookie: a=b; sid=0123456789\r\nx", "Cookie: *******************\r\nx"),
        ("curl -H 'cookie: sid=0123456789' y", "curl -H 'cookie: **************' y"),
        ("Authorization: token 0123456789ab", "Authorization: token ************"),
        (r#"{\"Authorization\":\"0123456789ab\"}"#, r#"{\"Authorization\":\"************\"}"#),
        (r"a \u0073k-abcdefgh1 b", r"a ***************** b"),
        (r#"{"a":"sk\u002dabcdefgh1"}"#, r#"{"a":"*****************"}"#),
        (r"ghp_0123456789abcde\/fgh AccountKey=ab\/0123456789", r"ghp_0123456789abcde\/fgh AccountKey=**************"),
        (concat!("token ya", "29.a0AbcdEfgh_12345-678 x"), "token ************************* x"),
    ] {
        check(text, expected);
    }
}

#[test]
fn prose_and_code_stay() {
    for text in [
        "a risk-adjusted-return-model and sk-learn",
        "the bearer authentication scheme",
        "max_tokens: 1000, total_tokens=123456789",
        "api_key=os.environ['KEY']",
        "see https://example.org/a:b and mail me@example.org",
        "basic understanding of sk-ill",
        "Cookie: take 200 g of flour, and authorization: none",
        "token by token; the password is what you chose; key=value",
        r"caf\u00e9 \u0022 \/ and\/or",
        r#"{"requestState": "eyJhbGciOi.eyJzdWIiOi.c2ln"}"#,
        r#"{\"requestState\":\"eyJhbGciOi.eyJzdWIiOi.c2ln\"}"#,
    ] {
        check(text, text);
    }
}

#[test]
fn paths_and_headers() {
    let redactor = Redactor::default();
    assert_eq!(redactor.path("/v1/x?api-version=2&api-key=abc&a=b"), "/v1/x?api-version=2&api-key=***&a=b");
    assert_eq!(redactor.path("/v1/x?model=m"), "/v1/x?model=m");
    assert_eq!(redactor.path("/v1/x?jwt=abc&k=ab&%6bey=abc&ok=1"), "/v1/x?jwt=***&k=**&%6bey=***&ok=1");
    assert_eq!(redactor.path("/v1/%73k-abcdefgh1/x"), "/v1/**************/x");
    for (name, value, expected) in [
        ("Authorization", "Bearer x", "<redacted:8>"),
        ("Content-Type", "application/json", "application/json"),
        ("X-Stainless-Retry-Count", "1", "1"),
        ("cookie", "a=b", "<redacted:3>"),
        ("user-agent", "me sk-abcdefgh12345", "me ****************"),
    ] {
        assert_eq!(redactor.header(name, value.as_bytes()), expected, "{name}");
    }
}

#[test]
fn a_key_across_the_border_of_the_window_is_found_whole() {
    let redactor = Redactor::default();
    let text = b"Authorization: Bearer abcdefgh123456 and more text behind it";
    for border in 0..=text.len() {
        let (left, right) = (redactor.find(text, 0..border), redactor.find(text, border..text.len()));
        let seen: Vec<_> = left.into_iter().chain(right).collect();
        assert!(seen.iter().all(|span| *span == (22..36)) && !seen.is_empty(), "border {border}: {seen:?}");
    }
}

#[test]
fn what_a_user_says_is_secret_or_not() {
    let secrets = Secrets {
        values: vec!["p\"w/1".to_owned()],
        patterns: vec!["acme-[0-9]{4}".to_owned()],
        keep: vec!["sk-example-[a-z]+[0-9]".to_owned(), "acme-0000".to_owned()],
        keys_are_names: false,
    };
    let redactor = Redactor::new(&secrets).expect("compiles");
    for (text, expected) in [
        ("acme-1234 and acme-0000", "********* and acme-0000"),
        ("sk-example-abcdefgh1 and sk-other-abcdefgh1", "sk-example-abcdefgh1 and ******************"),
        (r#"{"a":"p\"w/1"}"#, r#"{"a":"******"}"#),
    ] {
        assert_eq!(redactor.text(text), expected, "{text}");
    }
}

#[test]
fn what_a_client_proved_itself_with_is_masked_from_then_on() {
    let redactor = Redactor::default();
    assert_eq!(redactor.text("it is 0a1b2c3d4e5f"), "it is 0a1b2c3d4e5f");
    redactor.clone().add_credentials("/", &[("Authorization", b"Bearer 0a1b2c3d4e5f"), ("x-other", b"0f0f0f0f0f0f")]);
    assert_eq!(redactor.text("it is 0a1b2c3d4e5f"), "it is ************");
    assert_eq!(redactor.text("it is 0f0f0f0f0f0f"), "it is 0f0f0f0f0f0f");
    let names = Redactor::new(&Secrets { keys_are_names: true, ..Secrets::default() }).expect("compiles");
    names.add_credentials("/", &[("authorization", b"Bearer researcher-1")]);
    assert_eq!(names.text("ask researcher-1"), "ask researcher-1");
}
