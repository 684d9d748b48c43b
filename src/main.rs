//! Arguments in, one command out.

fn main() -> std::process::ExitCode {
    plimsoll::cli::main()
}
