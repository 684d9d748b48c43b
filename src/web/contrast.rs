//! Holds the colours of the stylesheet to WCAG AA in both themes: text at least 4.5:1 on what it
//! stands on, marks and edges of controls at least 3:1.

use std::collections::HashMap;

const SHEET: &str = include_str!("../../static/plimsoll.css");

/// `--name: light-dark(#rrggbb, #rrggbb)` by name.
fn tokens() -> HashMap<&'static str, [f64; 2]> {
    SHEET
        .split("--")
        .filter_map(|part| {
            let (name, value) = part.split_once(':')?;
            let value = value.trim().strip_prefix("light-dark(")?;
            let (light, dark) = value.split_once(')')?.0.split_once(',')?;
            Some((name, [luminance(light), luminance(dark)]))
        })
        .collect()
}

/// Relative luminance as WCAG defines it.
fn luminance(hex: &str) -> f64 {
    let hex = hex.trim().strip_prefix('#').expect("a hex colour");
    let channel = |from: usize| {
        let value = u8::from_str_radix(&hex[from..from + 2], 16).expect("two hex digits");
        let value = f64::from(value) / 255.0;
        if value <= 0.040_45 {
            value / 12.92
        } else {
            ((value + 0.055) / 1.055).powf(2.4)
        }
    };
    0.2126 * channel(0) + 0.7152 * channel(2) + 0.0722 * channel(4)
}

fn contrast(a: f64, b: f64) -> f64 {
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}

#[test]
fn every_colour_can_be_read_in_both_themes() {
    let tokens = tokens();
    let surfaces = ["paper", "card", "sunken"];
    let mut pairs = Vec::new();
    for surface in surfaces {
        for text in ["ink", "ink-2", "ink-3", "link"] {
            pairs.push((text.to_owned(), surface.to_owned(), 4.5));
        }
        for shape in ["edge", "focus", "brand"] {
            pairs.push((shape.to_owned(), surface.to_owned(), 3.0));
        }
        for kind in [
            "activity",
            "timer",
            "signal",
            "child",
            "update",
            "condition",
        ] {
            pairs.push((format!("kind-{kind}"), surface.to_owned(), 3.0));
        }
    }
    for tone in crate::run::tag::Tone::ALL {
        let tone = tone.name();
        pairs.push((tone.to_owned(), format!("{tone}-bg"), 4.5));
        // Outlined tags stand on the surface itself.
        for surface in surfaces {
            pairs.push((tone.to_owned(), surface.to_owned(), 4.5));
        }
    }
    for (front, back, least) in pairs {
        let token = |name: &str| tokens.get(name).unwrap_or_else(|| panic!("no --{name}"));
        for (theme, (front_l, back_l)) in ["light", "dark"]
            .iter()
            .zip(token(&front).iter().zip(token(&back)))
        {
            let ratio = contrast(*front_l, *back_l);
            assert!(
                ratio >= least,
                "--{front} on --{back} is {ratio:.2}:1 in the {theme} theme, less than {least}:1"
            );
        }
    }
}
