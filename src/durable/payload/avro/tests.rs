use super::*;
use serde_json::json;

fn text(s: &str) -> Value {
    Value::String(s.to_owned())
}

#[test]
fn the_published_vectors_hold_both_ways() {
    let bytes = || Value::Bytes(vec![0x00, 0xFF]);
    let vectors = [
        ("wwHioz3/VYAiNwA=", Value::Null),
        ("wwHioz3/VYAiNwIB", Value::Bool(true)),
        ("wwHioz3/VYAiNwQO", Value::Long(7)),
        ("wwHioz3/VYAiNwYAAAAAAAAcQA==", Value::Double(7.0)),
        ("wwHioz3/VYAiNwgEAP8=", bytes()),
        ("wwHioz3/VYAiNwoMaMOpbGxv", text("héllo")),
        (
            "wwHioz3/VYAiNwwMAAIBBA4GAAAAAAAAHEAIBAD/Cgh0ZXh0AA==",
            Value::Array(vec![
                Value::Null,
                Value::Bool(true),
                Value::Long(7),
                Value::Double(7.0),
                bytes(),
                text("text"),
            ]),
        ),
        (
            "wwHioz3/VYAiNw4EAmEEAgJiDAICAAAA",
            Value::Map(vec![
                ("a".to_owned(), Value::Long(1)),
                ("b".to_owned(), Value::Array(vec![Value::Bool(false)])),
            ]),
        ),
        ("wwHioz3/VYAiNw4A", Value::Map(vec![])),
    ];
    for (stored, value) in vectors {
        assert_eq!(decode(stored), Ok(value.clone()), "{stored}");
        assert_eq!(encode(&value), stored);
    }
}

#[test]
fn what_is_not_a_payload_is_named() {
    let cases = [
        ("", "empty_payload"),
        ("%%%", "invalid_base64"),
        ("{\"a\":1}", "json_bytes_labeled_avro"),
        ("JSUl", "invalid_single_object_magic"),
        ("wwE=", "invalid_single_object_magic"),
        ("wwEdoz3/VYAiNwA=", "unsupported_payload_schema"),
        ("wwHioz3/VYAiNw==", "invalid_avro_value"),
        ("wwHioz3/VYAiNwAA", "invalid_avro_value"),
        ("wwHioz3/VYAiNxA=", "invalid_avro_value"),
    ];
    for (stored, code) in cases {
        assert_eq!(decode(stored).map_err(DecodeError::code), Err(code.into()));
    }
}

#[test]
fn nesting_is_bounded() {
    let nested = |levels: usize| (0..levels).fold(Value::Null, |v, _| Value::Array(vec![v]));
    assert!(decode(&encode(&nested(MAX_DEPTH))).is_ok());
    assert_eq!(
        decode(&encode(&nested(MAX_DEPTH + 1))),
        Err(DecodeError::TooDeep)
    );
}

#[test]
fn a_lying_block_count_runs_out_of_input_not_of_memory() {
    let mut bytes = [MAGIC.as_slice(), FINGERPRINT.as_slice()].concat();
    write_long(6, &mut bytes);
    write_long(i64::MAX, &mut bytes);
    assert_eq!(
        decode(&STANDARD.encode(bytes)),
        Err(DecodeError::InvalidValue)
    );
}

#[test]
fn blocks_with_a_byte_size_are_read() {
    let mut bytes = [MAGIC.as_slice(), FINGERPRINT.as_slice()].concat();
    write_long(6, &mut bytes);
    write_long(-2, &mut bytes);
    write_long(2, &mut bytes);
    write_long(0, &mut bytes);
    write_long(0, &mut bytes);
    write_long(0, &mut bytes);
    assert_eq!(
        decode(&STANDARD.encode(bytes)),
        Ok(Value::Array(vec![Value::Null, Value::Null]))
    );
}

#[test]
fn a_map_that_no_php_array_can_be_is_told_by_its_pairs() {
    for (keys, is_array) in [
        (&["a", "b"][..], true),
        (&[], false),
        (&["a", "1"], false),
        (&["0"], false),
        (&["-1"], false),
        (&["9223372036854775807"], false),
        (&["9223372036854775808"], true),
        (&["-0"], true),
        (&["+1"], true),
        (&["01"], true),
        (&["1.0"], true),
        (&[""], true),
    ] {
        let entries = keys.iter().map(|key| ((*key).to_owned(), Value::Null));
        let map: serde_json::Map<_, _> = keys
            .iter()
            .map(|key| ((*key).to_owned(), json!(null)))
            .collect();
        let listed: Vec<_> = keys.iter().map(|key| json!([key, null])).collect();
        let want = if is_array {
            json!(map)
        } else {
            json!({"pairs": listed})
        };
        let shown = serde_json::Value::from(&Value::Map(entries.collect()));
        assert_eq!(shown, want, "{keys:?}");
    }
}

/// The engine's codec lists the entries of a map no PHP array can be; what it tells of a run has
/// pairs, and so have we.
fn in_pairs(told: &serde_json::Value) -> serde_json::Value {
    if told["$type"] != "map" {
        return told.clone();
    }
    let entries = told["entries"].as_array().into_iter().flatten();
    let pairs: Vec<_> = entries
        .map(|entry| json!([entry["key"], entry["value"]]))
        .collect();
    json!({"pairs": pairs})
}

/// Every value the real engine encoded, both ways.
#[test]
fn the_engines_own_values_round_trip() {
    let Some(corpus) = crate::demo::corpus("codec/values.json") else {
        return;
    };
    let corpus: serde_json::Value = serde_json::from_str(&corpus).expect("the corpus is JSON");
    let mut seen = 0;
    for case in corpus["values"].as_array().expect("a list of values") {
        let (Some(stored), name) = (case["avro"].as_str(), &case["name"]) else {
            continue; // the engine refused to encode this one
        };
        let value = decode(stored).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(encode(&value), stored, "{name}");
        let shown = serde_json::Value::from(&value);
        let told = &in_pairs(&case["avro_json_projection"]);
        // serde_json reads some long floats one bit off, so numbers are compared as such.
        let close = matches!((shown.as_f64(), told.as_f64()), (Some(a), Some(b)) if (a - b).abs() <= a.abs() * 1e-15);
        assert!(close || shown == *told, "{name}: {shown}");
        seen += 1;
    }
    assert!(seen > 20, "only {seen} values");
}
