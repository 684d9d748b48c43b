//! Sorting of long lists of large values.

use std::cmp::Ordering;

/// Sorts in place and moves every value once at most: sorting by moves alone would carry rows of a
/// kilobyte and more from place to place a dozen times. Equals keep their order.
pub fn arrange<T>(values: &mut [T], compare: impl Fn(&T, &T) -> Ordering) {
    if values.is_sorted_by(|a, b| compare(a, b).is_le()) {
        return;
    }
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_unstable_by(|&a, &b| compare(&values[a], &values[b]).then(a.cmp(&b)));
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
        fn it_is_a_stable_sort(values: Vec<(u8, u32)>) {
            let mut want = values.clone();
            want.sort_by_key(|(key, _)| *key);
            let mut got = values;
            arrange(&mut got, |a, b| a.0.cmp(&b.0));
            prop_assert_eq!(got, want);
        }
    }
}
