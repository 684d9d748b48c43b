//! From the projection of a run to the values its page shows: a pure file per section.

mod activities;
mod children;
mod commands;
mod data;
mod exceptions;
mod gone;
mod head;
pub mod history;
pub mod payloads;
mod places;
mod signals;
pub mod steps;
mod tasks;
mod timeline;
mod updates;
mod waits;

pub use timeline::story;

use self::places::Places;
use crate::{
    durable::{
        projection::Projected,
        repair::{self, Mode},
    },
    run::{
        diagnosis::Diagnosis,
        head::Head,
        page::{self, Page},
        timeline::draw::{Range, Story, draw},
        window::Asked,
    },
};

/// The mode is that of the repairs this copy would do.
pub fn page(p: &Projected<'_>, mode: Mode, story: &Story, asked: &Asked, range: Range) -> Page {
    let places = &Places::of(p);
    let explained = repair::explain(p, mode);
    let ahead = page::is_long(p.cx.snapshot.events.len());
    Page {
        head: head::head(p, &explained),
        diagnosis: explained.diagnosis,
        timeline: draw(story, asked, range),
        activities: activities::activities(p, asked, ahead),
        exceptions: exceptions::exceptions(p, asked, ahead, places),
        tasks: tasks::tasks(p, asked, ahead, places),
        waits: waits::waits(p, asked, ahead, places),
        signals: signals::signals(p, asked, ahead, places),
        updates: updates::updates(p, asked, ahead, places),
        commands: commands::commands(p, asked, ahead),
        children: children::children(p, asked),
        data: data::data(p, asked),
        history: history::history(p),
    }
}

/// What a list shows of a run that is pointed at.
pub fn card(p: &Projected<'_>, mode: Mode) -> (Head, Diagnosis) {
    let explained = repair::explain(p, mode);
    (head::head(p, &explained), explained.diagnosis)
}
