//! The failure that ended a run, and the step it came from where history shows it.

use super::failures::Failure;

#[derive(Clone, Copy, Debug)]
pub struct Ending<'f> {
    pub failure: &'f Failure,
    /// The engine files a run's failure by its exception alone: the same exception, unhandled,
    /// names the step it came from.
    pub cause: Option<&'f Failure>,
}

/// Of a failed run; none when nothing says why.
pub fn ending(failures: &[Failure]) -> Option<Ending<'_>> {
    let failure = failures
        .iter()
        .rfind(|failure| failure.propagation_kind.as_deref() == Some("terminal"))
        .or(failures.last())?;
    let cause = failures.iter().rfind(|other| {
        other.id != failure.id
            && !other.handled
            && other.message == failure.message
            && other.exception_class == failure.exception_class
    });
    Some(Ending { failure, cause })
}
