//! The codec: what is written is read as it was, what is malformed gets the standard's reason, and no bytes panic it.
use super::{
    Connack, Fault, Outgoing, Packet, Qos, Reason, Split, Version, Writer, parse, put_user_property, put_varint, split,
    topic_of,
};
use proptest::prelude::*;

const V3: Option<Version> = Some(Version::V3);
const V5: Option<Version> = Some(Version::V5);

fn hex(text: &str) -> Vec<u8> {
    let digits: String = text.split_whitespace().collect();
    digits
        .as_bytes()
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

/// What a whole packet is, or why it is refused.
fn read(bytes: &[u8], version: Option<Version>) -> Result<Packet<'_>, Reason> {
    match split(bytes, version, 1 << 20).map_err(|fault: Fault| fault.reason)? {
        Split::Whole { first, start, end } => {
            parse(first, &bytes[start..end], version, 10).map_err(|(fault, _)| fault.reason)
        }
        Split::Part => panic!("the packet is not whole: {bytes:x?}"),
    }
}

type Case = (&'static str, Option<Version>, u8);

/// Packets and the reason they are refused with; 0: they are not.
const CASES: &[Case] = &[
    // Remaining length: five bytes; not the shortest form [MQTT-1.5.5-1].
    ("e0 80 80 80 80 01", V5, 0x81),
    ("c0 80 00", V5, 0x81),
    // Flags [MQTT-2.1.3-1], reserved types, packets of a server, a second CONNECT [MQTT-3.1.0-2].
    ("c1 00", V5, 0x81),
    ("00 00", V5, 0x81),
    ("20 02 00 00", V5, 0x82),
    ("21 02 00 00", V5, 0x81),
    ("10 0d 00 04 4d515454 05 02 0000 00 0000", V5, 0x82),
    ("f0 00", V3, 0x81),
    // PUBLISH: QoS 3, a repeat at QoS 0, packet identifier 0, no topic, wildcards, U+0000, no UTF-8, controls.
    ("36 05 0001 61 0001", V3, 0x81),
    ("38 03 0001 61", V3, 0x81),
    ("32 05 0001 61 0000", V3, 0x82),
    ("30 02 0000", V3, 0x81),
    ("30 03 0000 00", V5, 0x82),
    ("30 03 0001 23", V3, 0x90),
    ("30 04 0001 2b 00", V5, 0x90),
    ("30 04 0001 00 00", V5, 0x81),
    ("30 06 0003 eda080 00", V5, 0x81),
    ("30 04 0001 07 00", V5, 0x81),
    // Its properties: an alias of 0 or too high, a subscription identifier, repeated, unknown, of another packet, cut.
    ("30 07 0001 61 03 23 0000", V5, 0x94),
    ("30 07 0001 61 03 23 000b", V5, 0x94),
    ("30 06 0001 61 02 0b 01", V5, 0x82),
    ("30 08 0001 61 04 01 00 01 00", V5, 0x82),
    ("30 06 0001 61 02 04 00", V5, 0x81),
    ("30 07 0001 61 03 21 0001", V5, 0x81),
    ("30 05 0001 61 01 02", V5, 0x81),
    ("30 06 0001 61 02 01 02", V5, 0x82),
    ("30 08 0001 61 04 08 0001 23", V5, 0x82),
    // SUBSCRIBE: no filter, QoS 3, reserved bits, retain handling 3, bad wildcards, a shared one that is not local.
    ("82 03 0001 00", V5, 0x82),
    ("82 02 0001", V3, 0x82),
    ("82 06 0001 0001 61 03", V3, 0x82),
    ("82 06 0001 0001 61 04", V3, 0x81),
    ("82 07 0001 00 0001 61 40", V5, 0x81),
    ("82 07 0001 00 0001 61 30", V5, 0x82),
    ("82 08 0001 0003 612f23 00", V3, 0),
    ("82 0a 0001 0005 612f232f61 00", V3, 0x81),
    ("82 07 0001 0002 6123 00", V3, 0x81),
    ("82 07 0001 0002 2b61 00", V3, 0x81),
    ("82 05 0001 0000 00", V3, 0x81),
    ("82 10 0001 00 000a 2473686172652f672f61 04", V5, 0x82),
    ("82 0e 0001 00 0008 2473686172652f67 00", V5, 0x82),
    ("82 09 0001 02 0b00 0001 61 00", V5, 0x82),
    ("80 06 0001 0001 61 00", V3, 0x81),
    // UNSUBSCRIBE, acknowledgements, PINGREQ, DISCONNECT, AUTH.
    ("a2 03 0001 00", V5, 0x82),
    ("40 02 0000", V3, 0x82),
    ("40 03 0001 00", V3, 0x81),
    ("40 04 0001 ff 00", V5, 0x82),
    ("60 02 0001", V5, 0x81),
    ("62 03 0001 10", V5, 0x82),
    ("c0 01 00", V5, 0x81),
    ("e0 01 00", V3, 0x81),
    ("e0 01 01", V5, 0x82),
    ("e0 07 00 05 11 00000001", V5, 0),
    ("f0 00", V5, 0x82),
    ("f0 01 19", V5, 0x82),
    ("f1 00", V5, 0x81),
    ("f0 02 1a 00", V5, 0x82),
    ("f0 06 18 04 15 0001 61", V5, 0x82),
    ("f0 05 18 03 15 0002", V5, 0x81),
    ("f0 0a 18 08 15 0001 61 15 0001 61", V5, 0x82),
    ("f0 04 18 02 01 00", V5, 0x81),
    ("f0 03 18 00 00", V5, 0x81),
];

#[test]
fn malformed_packets_get_the_reason_of_the_standard() {
    for &(bytes, version, reason) in CASES {
        let got = read(&hex(bytes), version).err().map_or(0, |reason| reason.0);
        assert_eq!(got, reason, "{bytes} {version:?}");
    }
}

#[test]
fn a_connect_is_checked_to_its_last_byte() {
    let cases = [
        ("10 0d 0004 4d515454 04 02 003c 0001 61", 0),
        ("10 0d 0004 4d515454 05 02 003c 00 0000", 0),
        ("11 0d 0004 4d515454 04 02 003c 0001 61", 0x82),
        ("10 0d 0004 4d515455 04 02 003c 0001 61", 0x84),
        ("10 0d 0004 4d515454 03 02 003c 0001 61", 0x84),
        ("10 0d 0004 4d515454 06 02 003c 0001 61", 0x84),
        ("10 0d 0004 4d515454 04 03 003c 0001 61", 0x81),
        ("10 0d 0004 4d515454 04 0a 003c 0001 61", 0x81),
        ("10 0d 0004 4d515454 04 1e 003c 0001 61", 0x81),
        ("10 0d 0004 4d515454 04 06 003c 0001 61", 0x81),
        ("10 10 0004 4d515454 04 42 003c 0001 61 0001 61", 0x81),
        ("10 0e 0004 4d515454 04 02 003c 0001 61 00", 0x81),
        ("10 0d 0004 4d515454 04 02 003c 0001 00", 0x81),
        ("10 10 0004 4d515454 05 02 003c 03 21 0000 0000", 0x82),
        ("10 12 0004 4d515454 05 02 003c 05 27 00000000 0000", 0x82),
        ("10 11 0004 4d515454 05 02 003c 04 16 0001 61 0000", 0x82),
        ("10 0f 0004 4d515454 05 02 003c 02 01 00 0000", 0x81),
    ];
    for (bytes, reason) in cases {
        let got = read(&hex(bytes), None).err().map_or(0, |reason| reason.0);
        assert_eq!(got, reason, "{bytes}");
    }
}

#[test]
fn a_packet_that_is_too_large_is_refused_before_it_has_come() {
    assert_eq!(split(&hex("30 ff ff ff 7f"), V5, 1024).map_err(|fault| fault.reason), Err(Reason::PACKET_TOO_LARGE));
    assert_eq!(split(&hex("30 ff ff ff"), V5, 1024), Ok(Split::Part));
}

#[test]
fn a_connack_of_3_1_1_has_a_code_or_is_not_sent() {
    let writer = Writer { version: Version::V3, is_websocket: false };
    for (reason, bytes) in [(0x00, "20020000"), (0x84, "20020001"), (0x86, "20020004"), (0x87, "20020005"), (0x81, "")]
    {
        let mut out = Vec::new();
        writer.connack(&mut out, Reason(reason), &Connack::default());
        assert_eq!(out, hex(bytes));
    }
}

/// The tables of the standard: what each packet of a server may say.
#[test]
fn no_packet_says_a_reason_that_is_none_of_its_own() {
    const CONNACK: &str = "00 80 81 82 83 84 85 86 87 88 89 8a 8c 90 95 97 99 9a 9b 9c 9d 9f";
    const DISCONNECT: &str = "00 80 81 82 83 87 89 8b 8d 8e 8f 90 93 94 95 96 97 98 99 9a 9b 9c 9d 9e 9f a0 a1 a2";
    const PUBACK: &str = "00 10 80 83 87 90 91 97 99";
    const SUBACK: &str = "00 01 02 80 83 87 8f 91 97 9e a1 a2";
    for byte in 0..=255 {
        let reason = Reason(byte);
        for (table, said) in [
            (CONNACK, reason.in_connack()),
            (DISCONNECT, reason.in_disconnect()),
            (PUBACK, reason.in_puback()),
            (SUBACK, reason.in_suback()),
        ] {
            let allowed = hex(table);
            assert!(allowed.contains(&said.0), "{byte:#x} becomes {:#x}", said.0);
            assert!(said == reason || !allowed.contains(&byte), "{byte:#x} is as good as it is");
        }
    }
}

#[test]
fn a_connect_of_5_0_says_its_length_in_the_shortest_form() {
    let split = |bytes: &str| split(&hex(bytes), None, 1024).map_err(|fault| fault.reason);
    assert_eq!(split("10 8d 00 0004 4d515454 05 02 003c 00 0000"), Err(Reason::MALFORMED));
    assert!(matches!(split("10 8c 00 0004 4d515454 04 02 003c 0000"), Ok(Split::Whole { .. })));
}

fn topic() -> impl Strategy<Value = String> {
    proptest::collection::vec("[a-z0-9 äß]{0,5}", 1..5)
        .prop_map(|levels| levels.join("/"))
        .prop_filter("no topic", |t| !t.is_empty())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_is_read_as_it_was(
        topic in topic(),
        payload in proptest::collection::vec(any::<u8>(), 0..300),
        qos in 0_u8..3,
        packet_id in 1_u16..,
        flags in any::<(bool, bool, bool, bool)>(),
        expiry_s in proptest::option::of(any::<u32>()),
        users in proptest::collection::vec(("[a-z]{0,9}", "[a-z]{0,9}"), 0..4),
    ) {
        let (is_duplicate, is_retained, is_v5, is_websocket) = flags;
        let version = if is_v5 { Version::V5 } else { Version::V3 };
        let mut carried = Vec::new();
        users.iter().for_each(|(name, value)| put_user_property(&mut carried, name, value));
        let qos = Qos::from_bits(qos).unwrap();
        let sent = Outgoing {
            topic: &topic,
            payload: &payload,
            qos,
            packet_id,
            is_duplicate: is_duplicate && qos != Qos::AtMostOnce,
            is_retained,
            alias: 0,
            subscription_id: 0,
            further_ids: &[],
            expiry_s,
            response_topic: is_v5.then_some("a/b"),
            carried: &carried,
        };
        let mut out = Vec::new();
        let writer = Writer { version, is_websocket };
        writer.publish(&mut out, &sent);
        let header = if is_websocket { if out[1] & 127 == 126 { 4 } else { 2 } } else { 0 };
        let bytes = &out[header..];
        prop_assert_eq!(bytes.len(), writer.publish_bytes(&sent));
        let Ok(Packet::Publish(got)) = read(bytes, Some(version)) else { panic!("{bytes:x?}") };
        prop_assert_eq!((got.topic, got.payload, got.qos), (&*topic, &*payload, qos));
        prop_assert_eq!((got.is_duplicate, got.is_retained), (sent.is_duplicate, is_retained));
        prop_assert_eq!(got.packet_id, if qos == Qos::AtMostOnce { 0 } else { packet_id });
        if is_v5 {
            prop_assert_eq!((got.carried.expiry_s, got.carried.response_topic), (expiry_s, Some("a/b")));
            let mut forwarded = Vec::new();
            got.carried.put_forwarded(&mut forwarded);
            prop_assert_eq!(forwarded, carried);
        }
    }

    #[test]
    fn no_bytes_panic_it(first in any::<u8>(), bytes in proptest::collection::vec(any::<u8>(), 0..80), is_v5 in any::<bool>()) {
        let version = Some(if is_v5 { Version::V5 } else { Version::V3 });
        for version in [None, version] {
            let _ = split(&bytes, version, 60);
            if let Ok(Packet::Subscribe(packet)) = parse(first, &bytes, version, 5) {
                prop_assert!(packet.filters.iter().count() > 0);
            }
        }
    }

    /// A packet that is cut anywhere is waited for, and no packet is read from less than all of it.
    #[test]
    fn a_cut_packet_is_waited_for(length in 0_u32..400, cut in any::<proptest::sample::Index>()) {
        let mut bytes = vec![0x30];
        put_varint(&mut bytes, length);
        bytes.extend(std::iter::repeat_n(0, length as usize));
        let at = cut.index(bytes.len());
        prop_assert_eq!(split(&bytes[..at], V5, 1 << 20), Ok(Split::Part));
        let Ok(Split::Whole { end, .. }) = split(&bytes, V5, 1 << 20) else { panic!("{bytes:x?}") };
        prop_assert_eq!(end, bytes.len());
    }

    #[test]
    fn topics_and_subjects_are_each_others(topic in topic()) {
        let subject = super::subject_of(&topic);
        prop_assert_eq!(topic_of(&subject), Some(&*topic));
    }
}

#[test]
fn subjects_with_wildcard_characters_have_no_topic() {
    for subject in ["/a/+", "/a#b", "/"] {
        assert_eq!(topic_of(subject), None);
    }
}
