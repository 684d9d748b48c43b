//! The drawings of [`Mark`]. They stand in the page instead of in a sprite file: most are
//! shorter than the reference to a sprite would be, and nothing is fetched to show a state.

use crate::run::tag::Mark;

macro_rules! drawn {
    ($shape:literal) => {
        concat!(
            r#"<svg class="mark" viewBox="0 0 10 10" aria-hidden="true">"#,
            $shape,
            "</svg>"
        )
    };
}

pub fn svg(mark: Mark) -> &'static str {
    match mark {
        Mark::Pulse => drawn!(r#"<circle class="pulse" cx="5" cy="5" r="4"/>"#),
        Mark::Dot => drawn!(r#"<circle cx="5" cy="5" r="4"/>"#),
        Mark::Ring => drawn!(r#"<circle class="l" cx="5" cy="5" r="3.6"/>"#),
        Mark::Hourglass => {
            drawn!(r#"<path d="M1.8.6h6.4v1.2L5.8 5l2.4 3.2v1.2H1.8V8.2L4.2 5 1.8 1.8z"/>"#)
        }
        Mark::Loop => {
            drawn!(r#"<path class="l" d="M8.4 5a3.4 3.4 0 1 1-1-2.4"/><path d="M9 .6v3H6z"/>"#)
        }
        Mark::Tick => drawn!(r#"<path class="l" d="M1.4 5.4 4 8l4.6-6"/>"#),
        Mark::Arrow => drawn!(r#"<path class="l" d="M1 5h7M5.4 2l3 3-3 3"/>"#),
        Mark::Cross => drawn!(r#"<path class="l" d="m1.8 1.8 6.4 6.4m0-6.4L1.8 8.2"/>"#),
        Mark::Clock => drawn!(
            r#"<g class="l thin"><circle cx="5" cy="5" r="4"/><path d="M5 2.6V5l1.8 1.2"/></g>"#
        ),
        Mark::Slash => drawn!(
            r#"<g class="l thin"><circle cx="5" cy="5" r="4"/><path d="m2.4 7.6 5.2-5.2"/></g>"#
        ),
        Mark::Stop => drawn!(r#"<rect x="1.4" y="1.4" width="7.2" height="7.2" rx="1"/>"#),
        Mark::Exclamation => {
            drawn!(r#"<path class="l" d="M5 .8v5.4"/><circle cx="5" cy="8.6" r="1.2"/>"#)
        }
        Mark::Lock => drawn!(
            r#"<rect x="1.6" y="4.4" width="6.8" height="4.8" rx="1"/><path class="l thin" d="M3 4.6V3a2 2 0 0 1 4 0v1.6"/>"#
        ),
        Mark::Repair => drawn!(
            r#"<path d="M9.3 2.9 7.6 4.6 5.9 4.1 5.4 2.4 7.1.7A2.9 2.9 0 0 0 3.5 4.4L.6 7.3a1.5 1.5 0 0 0 2.1 2.1l2.9-2.9a2.9 2.9 0 0 0 3.7-3.6z"/>"#
        ),
        Mark::Question => drawn!(
            r#"<path class="l thin" d="M2.8 3.2a2.2 2.2 0 1 1 3 2C5.2 5.5 5 5.8 5 6.6"/><circle cx="5" cy="8.8" r="1"/>"#
        ),
    }
}
