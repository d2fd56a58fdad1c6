//! The door, tried with bodies of every dress.

use super::*;
use crate::surface::OpenaiChat;

fn packed(plain: &Bytes, encoding: Option<&str>) -> Bytes {
    let codings = codings(encoding).expect("known codings");
    UnpackedBody { codings, ..UnpackedBody::default() }.packed(plain).expect("in memory")
}

#[test]
fn what_is_packed_is_unpacked_and_packed_again() {
    let text = Bytes::from(br#"{"messages":[{"role":"user","content":"some text"}]}"#.repeat(20));
    for encoding in [
        None,
        Some("gzip"),
        Some("deflate"),
        Some("br"),
        Some("zstd"),
        Some("gzip, zstd"),
        Some("br,deflate"),
        Some("identity"),
    ] {
        let packed = packed(&text, encoding);
        assert_eq!(&*without_codings(&packed), &text[..], "{encoding:?}");
        for stated in [encoding, None, Some("x-unknown")] {
            let unpacked = UnpackedBody::unpack(&packed, stated);
            assert_eq!((&unpacked.plain, &unpacked.refused), (&text, &None), "{encoding:?} stated as {stated:?}");
            assert_eq!(unpacked.packed(&text).as_ref(), Ok(&packed), "{encoding:?} stated as {stated:?}");
        }
    }
    let mut raw = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::fast());
    raw.write_all(&text).expect("in memory");
    let raw = Bytes::from(raw.finish().expect("in memory"));
    assert_eq!(UnpackedBody::unpack(&raw, Some("deflate")).plain, text, "without the frame of zlib");
    assert_eq!(&*without_codings(&raw), &text[..], "without the frame of zlib");
    assert_eq!(UnpackedBody::unpack(&text, Some("gzip")).plain, text, "taken off before");
    let damaged = Bytes::from_static(b"\x1f\x8bx");
    for encoding in [None, Some("gzip"), Some("rot13")] {
        let unpacked = UnpackedBody::unpack(&damaged, encoding);
        assert!(unpacked.refused.is_some() && unpacked.plain == damaged, "{encoding:?}");
    }
}

#[test]
fn a_bomb_is_not_unpacked() {
    let member = packed(&Bytes::from(vec![b' '; 1 << 20]), Some("gzip"));
    // A file of many members is one body.
    let bomb = Bytes::from(member.repeat(3));
    assert!(bomb.len() < 1 << 20, "a small body");
    assert!(UnpackedBody::unpack(&bomb, Some("gzip")).refused.is_some());
    assert_eq!(&*without_codings(&bomb), &bomb[..], "given back as it is");
}

#[test]
fn the_bytes_tell_a_stream_from_a_whole_reply() {
    let whole = r#"{"id":"c","choices":[{"index":0,"message":{"role":"assistant","content":"It is 42."},"finish_reason":"stop"}]}"#;
    let stream =
        "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"It is 42.\"},\"finish_reason\":\"stop\"}]}\n\n";
    let bodies = [
        whole.to_owned(),
        format!("\n \n{whole}"),
        format!("\u{feff}{whole}"),
        format!("{whole}\n\ndata: [DONE]\n\n"),
        format!("{whole}[DONE]"),
        stream.to_owned(),
        format!("\u{feff}{stream}data: [DONE]\n\n"),
        format!(": open\n\n{stream}"),
        format!("event: x\n{stream}data:  [DONE] \n\n"),
        format!("data: ping\n\ndata:\n\n{stream}data: 3\n\n"),
        stream.replace(",\"delta\"", ",\ndata: \"delta\""),
    ];
    for body in &bodies {
        for typed_as_stream in [false, true] {
            for encoding in [None, Some("gzip"), Some("zstd"), Some("deflate"), Some("br")] {
                let sent = packed(&Bytes::from(body.clone()), encoding);
                let read = reply(&OpenaiChat, &sent, typed_as_stream).expect("a reply");
                let text = read.answers.first().map(|answer| answer.message.text());
                assert_eq!(text.as_deref(), Some("It is 42."), "{body:?} {typed_as_stream} {encoding:?}");
            }
            let read = reply(&OpenaiChat, body.as_bytes(), typed_as_stream).expect("a reply");
            let mut meant = read.clone();
            meant.answers[0].message.set_text("It is 7.");
            let written =
                write_reply(&OpenaiChat, &Bytes::from(body.clone()), typed_as_stream, &read, &meant).expect("a place");
            assert_eq!(String::from_utf8_lossy(&written), body.replace("42", "7"), "only the edited span differs");
        }
    }
}
