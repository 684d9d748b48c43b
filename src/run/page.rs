//! Everything one run's page shows, section by section.

use super::{
    activities::Activities, children::Children, commands::Commands, data::Data,
    diagnosis::Diagnosis, exceptions::Exceptions, head::Head, history::History, signals::Signals,
    tasks::Tasks, timeline::Timeline, updates::Updates, waits::Waits,
};

#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    pub head: Head,
    pub diagnosis: Diagnosis,
    pub timeline: Timeline,
    pub activities: Activities,
    pub exceptions: Exceptions,
    pub tasks: Tasks,
    pub waits: Waits,
    pub signals: Signals,
    pub updates: Updates,
    pub commands: Commands,
    pub children: Children,
    pub data: Data,
    pub history: History,
}
