//! What a command says. Its reader may leave before it is done (`plimsoll verify … | head -1`):
//! the rest is then said to nobody, and the command ends as it would have.

use std::{
    fmt::Arguments,
    io::{ErrorKind, Write as _, stderr, stdout},
};

use super::CliError;

/// A line of what was asked for.
pub fn say(line: Arguments<'_>) -> Result<(), CliError> {
    match writeln!(stdout(), "{line}") {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(CliError::Failed(format!(
            "cannot write standard output: {error}"
        ))),
        _ => Ok(()),
    }
}

/// A line beside it. Where that cannot be written, there is nobody left to tell.
pub fn remark(line: Arguments<'_>) {
    let _ = writeln!(stderr(), "{line}");
}
