//! The parts of a canonical text, found without reading it as a document: there is no white space
//! in it, and every string is ASCII.

/// The members of a map: each key as it is written there, and the text of its value. None of what
/// is no map.
pub fn members(map: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let mut rest = inside(map, b'{');
    std::iter::from_fn(move || {
        let (key, after) = split(rest)?;
        let (value, after) = split(after.get(1..)?)?;
        rest = after.get(1..).unwrap_or_default();
        Some((key.get(1..key.len().checked_sub(1)?)?, value))
    })
}

/// The texts of the items of a list. None of what is no list.
pub fn items(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = inside(list, b'[');
    std::iter::from_fn(move || {
        let (item, after) = split(rest)?;
        rest = after.get(1..).unwrap_or_default();
        Some(item)
    })
}

fn inside(text: &[u8], bracket: u8) -> &[u8] {
    match text {
        [first, inside @ .., _] if *first == bracket => inside,
        _ => &[],
    }
}

/// The first value of what is left of a map or a list, and all behind it.
fn split(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut depth = 0_usize;
    let mut at = 0;
    loop {
        match text.get(at) {
            Some(b'"') => at += string(&text[at..]),
            Some(b'{' | b'[') => {
                depth += 1;
                at += 1;
            }
            Some(b'}' | b']') => {
                depth = depth.checked_sub(1)?;
                at += 1;
            }
            Some(b',' | b':') if depth == 0 => break,
            Some(_) => at += 1,
            None => break,
        }
    }
    (at > 0).then(|| text.split_at(at))
}

/// How long the string is that a text begins with.
fn string(text: &[u8]) -> usize {
    let mut at = 1;
    while let Some(found) = memchr::memchr2(b'"', b'\\', &text[at..]) {
        if text[at + found] == b'"' {
            return at + found + 1;
        }
        at = (at + found + 2).min(text.len());
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts<'t>(parts: impl Iterator<Item = &'t [u8]>) -> Vec<&'t str> {
        parts.map(|part| str::from_utf8(part).unwrap()).collect()
    }

    #[test]
    fn parts_are_split_where_they_end() {
        let map = br#"{"a":{"x":[1,{"y":"}],"}]},"b\",":"\\","c":-1.5,"d":[],"e":null}"#;
        let (keys, values): (Vec<_>, Vec<_>) = members(map).unzip();
        assert_eq!(texts(keys.into_iter()), ["a", "b\\\",", "c", "d", "e"]);
        assert_eq!(
            texts(values.into_iter()),
            [r#"{"x":[1,{"y":"}],"}]}"#, r#""\\""#, "-1.5", "[]", "null"]
        );
        assert_eq!(texts(items(b"[]")), [""; 0]);
        assert_eq!(texts(items(b"[1]")), ["1"]);
        assert_eq!(
            texts(items(br#"["a,b",[2,3],{"c":4}]"#)),
            [r#""a,b""#, "[2,3]", r#"{"c":4}"#]
        );
        assert_eq!(members(b"[1]").count() + items(b"{}").count(), 0);
        assert_eq!(members(b"7").count() + items(b"").count(), 0);
    }
}
