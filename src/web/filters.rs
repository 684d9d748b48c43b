//! Template filters. A page's file says `use crate::web::filters;` so that the shared macros
//! find them.

#![expect(clippy::inline_always, reason = "written by `filter_fn`")]

use std::fmt::{self, Display, Write as _};

use askama::filters::Safe;
use chrono::{DateTime, TimeDelta, Utc};

use crate::run::tag::Mark;
use crate::web::{format, marks};

/// Loops and macros hand a value over behind any number of references.
pub trait Shown<T> {
    fn shown(&self) -> T;
}

impl Shown<Mark> for Mark {
    fn shown(&self) -> Mark {
        *self
    }
}

impl Shown<TimeDelta> for TimeDelta {
    fn shown(&self) -> TimeDelta {
        *self
    }
}

impl Shown<DateTime<Utc>> for DateTime<Utc> {
    fn shown(&self) -> DateTime<Utc> {
        *self
    }
}

impl Shown<i64> for i64 {
    fn shown(&self) -> i64 {
        *self
    }
}

impl Shown<i64> for usize {
    fn shown(&self) -> i64 {
        i64::try_from(*self).unwrap_or(i64::MAX)
    }
}

impl Shown<u64> for u64 {
    fn shown(&self) -> u64 {
        *self
    }
}

impl<T, R: Shown<T>> Shown<T> for &R {
    fn shown(&self) -> T {
        (**self).shown()
    }
}

/// Stored text as it must be shown: characters that are invisible, or that would reorder the
/// text around them, become visible marks. Escaping is still the template's; wrap the text in
/// `<bdi>` so that honest right-to-left text keeps to itself.
#[askama::filter_fn]
pub fn stored(text: impl Display, _: &dyn askama::Values) -> askama::Result<String> {
    let mut revealed = Revealed(String::new());
    write!(revealed, "{text}")?;
    Ok(revealed.0)
}

/// The drawing of a mark.
#[askama::filter_fn]
pub fn mark(mark: impl Shown<Mark>, _: &dyn askama::Values) -> askama::Result<Safe<&'static str>> {
    Ok(Safe(marks::svg(mark.shown())))
}

/// A length of time.
#[askama::filter_fn]
pub fn duration(length: impl Shown<TimeDelta>, _: &dyn askama::Values) -> askama::Result<String> {
    Ok(format::duration(length.shown()))
}

/// A whole number with thousands separated.
#[askama::filter_fn]
pub fn number(n: impl Shown<i64>, _: &dyn askama::Values) -> askama::Result<String> {
    Ok(format::number(n.shown()))
}

/// A size in bytes.
#[askama::filter_fn]
pub fn bytes(n: impl Shown<u64>, _: &dyn askama::Values) -> askama::Result<String> {
    Ok(format::bytes(n.shown()))
}

/// An id shortened in the middle, made safe to look at like [`stored`] text.
#[askama::filter_fn]
pub fn short_id(id: impl Display, _: &dyn askama::Values) -> askama::Result<String> {
    let mut revealed = Revealed(String::new());
    write!(revealed, "{}", format::short_id(&id.to_string()))?;
    Ok(revealed.0)
}

/// An id people chose, shortened in the middle when it is long.
#[askama::filter_fn]
pub fn middle(id: impl Display, _: &dyn askama::Values) -> askama::Result<String> {
    Ok(reveal(&format::middle(&id.to_string())))
}

/// The text with its hidden characters made visible.
///
/// ```
/// use plimsoll::web::filters::reveal;
///
/// assert_eq!(reveal("plain, naïve, 日本, שלום"), "plain, naïve, 日本, שלום");
/// assert_eq!(reveal("a\u{1b}[31mred"), "a␛[31mred");
/// assert_eq!(reveal("invoice\u{202e}fdp.exe"), "invoice⟦U+202E⟧fdp.exe");
/// assert_eq!(reveal("two\nlines\tand a tab"), "two\nlines\tand a tab");
/// ```
pub fn reveal(text: &str) -> String {
    let mut revealed = Revealed(String::with_capacity(text.len()));
    let _ = revealed.write_str(text);
    revealed.0
}

struct Revealed(String);

impl fmt::Write for Revealed {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        // Nearly all stored text is this.
        if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
            self.0.push_str(text);
            return Ok(());
        }
        for c in text.chars() {
            match c {
                '\n' | '\t' => self.0.push(c),
                // The control pictures stand 0x2400 above what they depict.
                '\0'..='\x1f' => self.0.extend(char::from_u32(0x2400 + u32::from(c))),
                '\x7f' => self.0.push('␡'),
                c if is_deceptive(c) => write!(self.0, "⟦U+{:04X}⟧", u32::from(c))?,
                c => self.0.push(c),
            }
        }
        Ok(())
    }
}

/// Characters that draw nothing or move their neighbours: C1 controls, direction marks and
/// overrides, zero-width spaces, line separators, the byte-order mark, tag characters. The
/// joiners (U+200C, U+200D) are left alone: honest scripts and emoji need them.
fn is_deceptive(c: char) -> bool {
    matches!(
        c,
        '\u{80}'..='\u{9f}'
            | '\u{ad}'
            | '\u{61c}'
            | '\u{180e}'
            | '\u{200b}'
            | '\u{200e}'
            | '\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}'
    )
}

#[cfg(test)]
mod tests {
    use askama::Template;

    use crate::web::filters;

    #[derive(Template)]
    #[template(source = "<bdi>{{ text|stored }}</bdi>", ext = "html")]
    struct Page<'a> {
        text: &'a str,
    }

    #[test]
    fn hostile_text_is_escaped_and_shown() {
        let table = [
            ("<script>", "<bdi>&#60;script&#62;</bdi>"),
            ("\u{0}\u{7}\u{7f}", "<bdi>␀␇␡</bdi>"),
            ("\u{85}", "<bdi>⟦U+0085⟧</bdi>"),
            ("\u{202e}\u{2066}", "<bdi>⟦U+202E⟧⟦U+2066⟧</bdi>"),
            ("a\u{200b}b\u{feff}", "<bdi>a⟦U+200B⟧b⟦U+FEFF⟧</bdi>"),
            ("\u{e0041}", "<bdi>⟦U+E0041⟧</bdi>"),
            ("👩\u{200d}🚀", "<bdi>👩\u{200d}🚀</bdi>"),
            ("\r\n", "<bdi>␍\n</bdi>"),
        ];
        for (text, html) in table {
            assert_eq!(Page { text }.render().unwrap(), html, "{text:?}");
        }
    }
}
