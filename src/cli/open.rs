//! `plimsoll open`: an exported bundle as a page, without any database.

use std::{fs::File, net::SocketAddr, path::PathBuf};

use super::{
    CliError,
    out::say,
    serve::{listen, until_stopped},
    verify::CheckedWith,
};
use crate::{
    config::values,
    durable::{
        engine_config::EngineConfig,
        export::{SigningKey, verify::Report},
    },
    web::{
        bundles::{Bundles, Kept, read},
        state::{App, ExportSettings, Settings},
    },
};

/// The longest file that is shown; `verify` checks longer ones too.
const LONGEST: u64 = 1024 * 1024 * 1024;

#[derive(clap::Args, Debug)]
pub struct OpenArgs {
    /// An exported bundle
    #[arg(value_name = "FILE")]
    file: PathBuf,

    #[command(flatten)]
    key: CheckedWith,

    /// Address and port of this machine to listen on
    #[arg(long, value_name = "ADDR:PORT", value_parser = values::address, default_value = "127.0.0.1:0")]
    listen: SocketAddr,

    /// The engine's configuration as JSON: the `workflows` object or its `v2` part
    #[arg(long, env = "PLIMSOLL_ENGINE_CONFIG", value_name = "FILE")]
    engine_config: Option<PathBuf>,

    /// Zone times are shown in, such as Europe/Berlin
    #[arg(long, env = "PLIMSOLL_DISPLAY_ZONE", value_name = "ZONE", value_parser = values::zone, default_value = "UTC")]
    display_zone: crate::zone::Zone,
}

pub async fn run(args: OpenArgs) -> Result<(), CliError> {
    if !args.listen.ip().is_loopback() {
        return Err(CliError::Usage(format!(
            "a bundle is shown on this machine only, not on {}",
            args.listen
        )));
    }
    let key = args.key.key()?;
    let engine = EngineConfig::load(args.engine_config.as_deref()).map_err(CliError::Usage)?;
    let kept = opened(&args.file, key.as_ref())?;
    let app = App::new(Settings {
        zone: args.display_zone,
        engine,
        export: ExportSettings { policy: None, key },
        bundles: Bundles::of_one_reader(),
        ..Settings::default()
    });
    let name = app.bundles.keep(kept).await;
    let name = name.map_err(|error| CliError::Failed(error.to_string()))?;
    let listener = listen(args.listen).await?;
    let address = listener
        .local_addr()
        .map_err(|error| CliError::Failed(error.to_string()))?;
    say(format_args!(
        "Plimsoll: http://{address}{}",
        app.base.path(&format!("/bundles/{name}"))
    ))?;
    until_stopped(app, listener).await;
    Ok(())
}

fn opened(path: &std::path::Path, key: Option<&SigningKey>) -> Result<Kept, CliError> {
    let wrong = |what: &str| CliError::Failed(format!("{}: {what}", path.display()));
    let file = File::open(path)
        .map_err(|error| CliError::Failed(format!("cannot read {}: {error}", path.display())))?;
    let bytes = file.metadata().map_or(0, |about| about.len());
    if bytes > LONGEST {
        return Err(wrong(
            "longer than 1 GB, too long to be shown; `plimsoll verify` checks it",
        ));
    }
    read(file, bytes, key).map_err(|report| wrong(&why(&report)))
}

fn why(report: &Report) -> String {
    let found: Vec<String> = report
        .decisive_first()
        .into_iter()
        .map(|finding| format!("{} ({})", finding.message, finding.rule))
        .take(5)
        .collect();
    format!("not a bundle: {}", found.join("; "))
}
