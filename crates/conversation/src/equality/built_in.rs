//! The rules that hold unless a file switches them off. None touches digits that a task may be about.

/// A rule that the program brings along.
#[derive(Debug)]
pub(super) struct BuiltIn {
    pub(super) name: &'static str,
    /// What is volatile; the group `keep`, at its beginning, only says where.
    pub(super) pattern: &'static str,
    /// Whether it is a point in time.
    pub(super) is_time: bool,
    /// Whether it must hold a letter and a digit: a number may be what a task is about.
    pub(super) is_mixed: bool,
}

/// In the order in which they are tried: what one has replaced, no other finds.
pub(super) const BUILT_IN: &[BuiltIn] = &[
    // A header that a client writes into a prompt as a line of its own.
    time("header", r"(?P<keep>(?m:^)x-[a-z0-9]+-[a-z0-9-]+: )[^\n]+"),
    value("uuid", r"\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b"),
    time(
        "instant",
        r"\b\d{4}-\d{2}-\d{2}(?:[T ]| at )\d{2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?: ?(?:Z|UTC|GMT|[+-]\d{2}:?\d{2})\b)?",
    ),
    time("date", r"\b\d{4}-\d{2}-\d{2}\b"),
    time(
        "day",
        r"\b(?:(?:Mon|Tues?|Wed(?:nes)?|Thu(?:rs)?|Fri|Sat(?:ur)?|Sun)(?:day)?,? )?(?:\d{1,2} (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*|(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]* \d{1,2}),? \d{4}(?:,? (?:at )?\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?: ?[AaPp]\.?[Mm]\b\.?)?(?: ?(?:Z|UTC|GMT|[+-]\d{2}:?\d{2})\b)?)?\b",
    ),
    // As C writes it: `Mon Nov 23 05:38:00 2026`.
    time(
        "stamp",
        r"\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) {1,2}\d{1,2} \d{2}:\d{2}:\d{2} (?:[A-Z]{3,4} )?\d{4}\b",
    ),
    // Seconds or milliseconds since 1970, of the years 2017 to 2036, and only behind a name that says so.
    time(
        "epoch",
        r#"(?P<keep>(?i:\b(?:timestamp|epoch|unix[_ ]?time|created(?:_at)?|updated(?:_at)?|expires(?:_at)?))["']?\s*[:=]\s*["']?)(?:1[5-9]|20)\d{8}(?:\d{3}|\.\d{1,9})?\b"#,
    ),
    time("clock", r"\b\d{2}:\d{2}:\d{2}(?:[.,]\d+)?\b"),
    value("id", r"\b(?:call|chatcmpl|cmpl|msg|resp|toolu|run|thread|item|fc|rs)[_-][A-Za-z0-9]{8,}\b"),
    mixed(
        "nonce",
        r#"(?P<keep>(?i:\b(?:nonce|(?:request|trace|span|session|correlation)[_ -]?id))["']?\s*[:=]\s*["']?)[A-Za-z0-9_-]{6,}"#,
    ),
    mixed("hex", r"\b[0-9a-f]{32}\b"),
    value("address", r"\b0x[0-9a-fA-F]{6,16}\b"),
    value("home", r"(?:/home|/Users)/[A-Za-z0-9._-]*[A-Za-z0-9_-]|\b[A-Za-z]:\\+Users\\+[A-Za-z0-9._-]*[A-Za-z0-9_-]"),
    value("path", r#"(?:/private)?(?:/tmp|/var/tmp|/var/folders)/[^\s"'`,;:)\]}>]+"#),
];

const fn value(name: &'static str, pattern: &'static str) -> BuiltIn {
    BuiltIn { name, pattern, is_time: false, is_mixed: false }
}

const fn mixed(name: &'static str, pattern: &'static str) -> BuiltIn {
    BuiltIn { name, pattern, is_time: false, is_mixed: true }
}

const fn time(name: &'static str, pattern: &'static str) -> BuiltIn {
    BuiltIn { name, pattern, is_time: true, is_mixed: false }
}

#[cfg(test)]
mod tests {
    use crate::equality::Rules;

    fn masked(text: &str) -> String {
        Rules::default().apply_text(text)
    }

    #[test]
    fn built_in_rules_mask_what_is_volatile_and_nothing_else() {
        for (name, a, b) in [
            ("header", "x-some-header: version=2.48f; id=71fea;\nPlan.", "x-some-header: version=2.1; id=9;\nPlan."),
            ("uuid", "id 3f2b8c1e-1111-4222-8333-abcdefabcdef", "id 00000000-1111-4222-8333-abcdefabcdef"),
            ("instant", "at 2026-11-21T10:00:00.123Z!", "at 2025-01-02 11:22:33+00:00!"),
            ("date", "on 2026-11-21.", "on 2024-02-29."),
            ("day", "Saturday, November 21, 2026", "Monday, May 4, 2025"),
            ("day", "21 November 2026", "4 May 2025"),
            ("day", "It is Monday, 23 November 2026 05:38.", "It is Tuesday, 4 May 2025 17:01."),
            ("day", "Mon, 23 Nov 2026 05:38:00 GMT", "Tue, 04 May 2025 11:00:59 +0200"),
            ("day", "November 23, 2026 at 5:38 PM", "May 4, 2025 at 11:01 AM"),
            ("instant", "2026-11-23 at 05:38", "2025-01-02 at 11:22"),
            ("stamp", "Mon Nov 23 05:38:00 2026", "Tue May  4 11:00:59 2025"),
            ("epoch", "timestamp: 1795412280", "timestamp: 1700000000"),
            ("epoch", "{\"created_at\": 1795412280.123}", "{\"created_at\": 1700000000.5}"),
            ("epoch", "Timestamp=1795412280123", "Timestamp=1700000000999"),
            ("hex", "ref 9f86d081884c7d659a2feaa0c55ad015", "ref 0cc175b9c0f1b6a831c399e269772661"),
            ("nonce", "nonce: a8f5f167f44f", "nonce: 6b1b36cbb04b"),
            ("nonce", "X-Request-ID: req-8842a", "X-Request-ID: req-1177b"),
            ("home", concat!("in /", "home/ada/x/y.py"), concat!("in /", "home/bob/x/y.py")),
            ("home", "in /Users/ada.l.", "in /Users/bob."),
            ("home", r"in C:\Users\ada\x.py", r"in C:\Users\bob\x.py"),
            ("clock", "it is 10:11:12", "it is 23:59:59.5"),
            ("id", "call_abcdef123456", "call_ZZZZZZ999999"),
            ("address", "<object at 0x7f10aabbccdd>", "<object at 0x7fffffffffff>"),
            ("path", "see /tmp/pytest-1/x.txt", "see /tmp/other/y.txt"),
        ] {
            assert!(masked(a).contains(&format!("<{name}")), "{name}: {}", masked(a));
            assert_eq!(masked(a), masked(b), "{name}");
        }
        for plain in ["She has 1234567890 apples and 12:30", "v1.2.3", "call me", "3-4-5", "step 2026"] {
            assert_eq!(masked(plain), plain);
        }
        // What a rule names stays where it says what follows it, and a path goes on behind its home.
        assert_eq!(masked("timestamp: 1795412280"), "timestamp: <epoch>");
        assert_eq!(masked("nonce=a8f5f167f44f"), "nonce=<nonce:0>");
        assert_eq!(masked(concat!("/", "home/ada/x/y.py")), "<home:0>/x/y.py");
        for plain in [
            "12345678901234567890123456789012",
            "nonce: 12345678",
            "the epoch 1795412280",
            "the train of 05:38",
            "timestamp: 12",
            "created 1795412280 files",
            "/homework/3",
        ] {
            assert_eq!(masked(plain), plain);
        }
    }

    #[test]
    fn what_a_model_says_of_its_own_is_its_answer() {
        let said = |reply: &str, request: &str| Rules::default().apply_reply(reply, request);
        for (one, other) in [
            ("due 2026-03-01", "due 2026-04-01"),
            ("at 09:15:30", "at 09:15:31"),
            ("id 3f2b8c1e-1111-4222-8333-abcdefabcdef", "id 00000000-1111-4222-8333-abcdefabcdef"),
            ("md5 0123456789abcdef0123456789abcdef", "md5 0123456789abcdef0123456789abcdee"),
            ("see /tmp/one/x.txt", "see /tmp/two/x.txt"),
            (concat!("in /", "home/ada/x"), concat!("in /", "home/bob/x")),
        ] {
            assert_ne!(said(one, "When?"), said(other, "When?"), "{one}");
            // What its request holds, too, it repeats.
            assert_eq!(said(one, one), said(other, other), "{one}");
        }
    }

    /// Where numbers stand in tasks, in answers to them and in results of tools.
    const SENTENCES: &[&str] = &[
        "{}",
        "She has {} apples.",
        "It costs ${}.",
        "ANSWER: {}",
        "{} + 7 = ?",
        "{}%",
        "-{} °C",
        "x={}",
        "count: {}",
        "{\"result\": {}, \"unit\": \"km\"}",
        "a train of 12:{} o'clock",
        "Room {}, floor 3",
        "{}/7 of all",
        "in {} seconds",
        "created {} files",
        "May has {} days",
        "the year {}",
        "id {}",
        "step {} of 9",
        "population: {}; area: 12",
        "tel. {}",
        "total = {}",
        "time: {} s",
        "id: {}",
        "nonce: {}",
        concat!("/", "home/ada/{}"),
        "{} Mar",
    ];

    proptest::proptest! {
        #[test]
        fn requests_that_differ_in_a_number_stay_different(
            sentence in 0..SENTENCES.len(),
            one in "[1-9][0-9]{0,31}|[0-9]{1,3}\\.[0-9]{1,6}|[1-9][0-9]{0,2}(,[0-9]{3}){1,3}",
            other in "[1-9][0-9]{0,31}|[0-9]{1,3}\\.[0-9]{1,6}|[1-9][0-9]{0,2}(,[0-9]{3}){1,3}",
        ) {
            proptest::prop_assume!(one != other);
            let text = |number: &str| masked(&SENTENCES[sentence].replace("{}", number));
            proptest::prop_assert_ne!(text(&one), text(&other));
        }
    }
}
