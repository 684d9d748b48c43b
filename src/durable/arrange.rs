//! Sorting of long lists of large values.

/// Sorts in place by a key that is made once per value, then by id, and moves every value once at
/// most: sorting by moves alone would carry rows of a kilobyte and more from place to place a
/// dozen times. Equals keep their order.
pub fn arrange<T, K: Ord>(
    values: &mut [T],
    key: impl Fn(&T) -> K,
    id: impl for<'v> Fn(&'v T) -> &'v str,
) {
    let keys: Vec<K> = values.iter().map(key).collect();
    let rank = |at: usize| (&keys[at], id(&values[at]), at);
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_unstable_by(|&a, &b| rank(a).cmp(&rank(b)));
    for place in 0..values.len() {
        let mut from = order[place];
        // What stood there has been swapped away, perhaps more than once.
        while from < place {
            from = order[from];
        }
        order[place] = from;
        values.swap(place, from);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_a_stable_sort(values: Vec<(u8, bool, u32)>) {
            let id = |of: bool| if of { "a" } else { "b" };
            let mut want = values.clone();
            want.sort_by_key(|(key, of, _)| (*key, id(*of)));
            let mut got = values;
            arrange(&mut got, |(key, _, _)| *key, |(_, of, _)| id(*of));
            prop_assert_eq!(got, want);
        }
    }
}
