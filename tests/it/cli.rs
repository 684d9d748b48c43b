//! The command line as an operator meets it: what goes wrong is told in one line that says what
//! to do, and what starts also stops.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    path::Path,
    process::{Child, Command, ExitStatus, Output, Stdio},
    time::{Duration, Instant},
};

use plimsoll::{db::Dialect, durable::store::schema};

use crate::{
    rig::{self, TestDb, on_every_database},
    shop,
};

pub const PATIENCE: Duration = Duration::from_mins(1);

/// The binary with nothing of the caller's settings.
pub fn plimsoll(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
    command
        .args(args)
        .env_clear()
        .env("RUST_BACKTRACE", "1")
        .stdin(Stdio::null());
    command
}

/// Runs a command that must end by itself.
pub fn ends(args: &[&str]) -> Output {
    plimsoll(args).output().expect("the binary starts")
}

/// The one line a refusal says, checked for what no refusal may have.
pub fn refusal(args: &[&str], code: i32, says: &[&str]) -> String {
    let output = ends(args);
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{args:?}: {error}");
    assert!(
        output.stdout.is_empty(),
        "{args:?} writes to standard output"
    );
    assert_eq!(error.lines().count(), 1, "{args:?}: {error}");
    for word in says {
        assert!(error.contains(word), "{args:?}: {word:?} is not in {error}");
    }
    for never in ["panicked", "backtrace", "s3cret", "sqlx"] {
        assert!(!error.contains(never), "{args:?}: {never:?} is in {error}");
    }
    error
}

pub fn serve<'a>(url: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let mut args = vec!["serve", "--listen", "127.0.0.1:0", "--database-url", url];
    args.extend(more);
    args
}

/// A port of this machine where nobody listens.
fn closed_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

/// A started server; stopped, should the test not get to it.
pub struct Started {
    child: Child,
    pub address: SocketAddr,
    said: String,
}

impl Started {
    pub fn new(mut command: Command) -> Self {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the binary starts");
        let mut said = String::new();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        out.read_line(&mut said).unwrap();
        let address = said
            .split("http://")
            .nth(1)
            .and_then(|rest| rest.split('/').next())
            .and_then(|address| address.parse().ok());
        let Some(address) = address else {
            let output = child.wait_with_output().unwrap();
            panic!(
                "it did not start: {said}{}",
                String::from_utf8_lossy(&output.stderr)
            );
        };
        Self {
            child,
            address,
            said,
        }
    }

    /// Status and body of one request.
    pub fn get(&self, path: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        write!(
            stream,
            "GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let status = answer
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok());
        (status.expect("a status line"), answer)
    }

    /// Asks it to stop as a supervisor would; its exit status and what it logged.
    pub fn stop(self) -> (ExitStatus, String) {
        self.stop_by("-TERM")
    }

    fn stop_by(mut self, signal: &str) -> (ExitStatus, String) {
        let told = Command::new("kill")
            .args([signal, &self.child.id().to_string()])
            .status();
        assert!(told.unwrap().success());
        let until = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(Instant::now() < until, "it does not stop");
            std::thread::yield_now();
        };
        let mut log = String::new();
        self.child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut log)
            .unwrap();
        (status, log)
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_wrong_call_is_explained() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("plimsoll.toml");
    fs::write(&file, "base_path = '/x'\nbase_pth = '/y'\n").unwrap();
    let file = file.to_str().unwrap();
    let idle = folder.path().join("idle.json");
    fs::write(&idle, "{\"foo\": 1}").unwrap();
    let idle = idle.to_str().unwrap();
    for (args, says) in [
        (vec!["serve"], vec!["--database-url", "plimsoll demo"]),
        (
            serve("oracle://u:s3cret@host/db", &[]),
            vec!["sqlite:, postgres: or mysql:"],
        ),
        (
            serve("no url at all", &[]),
            vec!["sqlite:, postgres: or mysql:"],
        ),
        (
            serve("postgres://u:s3cret@host:notaport/db", &[]),
            vec!["cannot be read"],
        ),
        (
            serve("mysql://u:s3cret@host:99999999/db", &[]),
            vec!["cannot be read"],
        ),
        (
            serve("sqlite:/nowhere", &["--base-path", "x"]),
            vec!["base path", "start with a slash"],
        ),
        (
            serve("sqlite:/nowhere", &["--base-path", "/livez"]),
            vec!["address of a probe"],
        ),
        (
            serve("sqlite:/nowhere", &["--table-prefix", "a;b"]),
            vec!["prefix", "letters, digits"],
        ),
        (serve("sqlite:/nowhere", &["--log", "=!="]), vec!["--log"]),
        (
            serve("sqlite:/nowhere", &["--log", "inof"]),
            vec!["\"inof\" is not a level", "off, error, warn, info"],
        ),
        (
            serve("sqlite:/nowhere", &["--config", file]),
            vec!["plimsoll.toml line 2", "base_pth"],
        ),
        (
            serve("sqlite:/nowhere", &["--config", "/nowhere.toml"]),
            vec!["/nowhere.toml", "cannot read"],
        ),
        (
            serve("sqlite:/nowhere", &["--engine-config", "/nowhere.json"]),
            vec!["/nowhere.json"],
        ),
        (
            serve("sqlite:/nowhere", &["--engine-config", idle]),
            vec!["idle.json", "no setting of the engine", "`v2`"],
        ),
        (
            vec![
                "serve",
                "--database-url",
                "sqlite:/nowhere",
                "--listen",
                "0.0.0.0:0",
            ],
            vec!["refusing to listen on 0.0.0.0:0", "--insecure-listen"],
        ),
        (
            vec!["demo", "--listen", "0.0.0.0:0"],
            vec!["refusing to listen"],
        ),
    ] {
        refusal(&args, 2, &says);
    }
}

#[test]
fn a_flag_that_does_not_exist_is_named() {
    for (args, says) in [
        (
            vec!["serve", "--databse-url", "x"],
            [
                "'--databse-url'",
                "similar argument exists: '--database-url'",
                "plimsoll serve --help",
            ],
        ),
        (
            vec!["serve", "--listen", "here"],
            ["'here'", "--listen", "plimsoll serve --help"],
        ),
        (
            vec!["serve", "--pool-size", "0"],
            ["'0'", "--pool-size", "plimsoll serve --help"],
        ),
        (
            vec!["serve", "--stored-zone", "Mars/Olympus"],
            ["'Mars/Olympus'", "--stored-zone", "plimsoll serve --help"],
        ),
        (
            vec!["serve", "--log-format", "xml"],
            [
                "'xml'",
                "possible values: text, json",
                "plimsoll serve --help",
            ],
        ),
        (
            vec!["verify"],
            ["required arguments", "<FILE>", "plimsoll verify --help"],
        ),
        (
            vec!["export"],
            [
                "required arguments",
                "<--run <ID>|--instance <ID>>",
                "plimsoll export --help",
            ],
        ),
        (
            vec!["sail"],
            ["'sail'", "unrecognized subcommand", "plimsoll --help"],
        ),
        (
            vec!["demo", "--clock", "2026-11-15T12:00:00Z", "--live-clock"],
            ["--clock", "--live-clock", "plimsoll demo --help"],
        ),
    ] {
        refusal(&args, 2, &says);
    }
}

#[test]
fn help_and_version_are_no_errors() {
    for args in [vec!["--help"], vec!["serve", "--help"], vec!["--version"]] {
        let output = ends(&args);
        assert_eq!(output.status.code(), Some(0), "{args:?}");
        assert!(
            output.stderr.is_empty() && !output.stdout.is_empty(),
            "{args:?}"
        );
    }
}

#[test]
fn an_sqlite_file_that_cannot_be_served_is_explained() {
    let folder = tempfile::tempdir().unwrap();
    let missing = format!("sqlite:{}/none.sqlite", folder.path().display());
    refusal(
        &serve(&missing, &[]),
        1,
        &["none.sqlite", "does not exist", "--database-url"],
    );
    let text = folder.path().join("text.sqlite");
    fs::write(
        &text,
        "This is a letter, and a long one at that. ".repeat(200),
    )
    .unwrap();
    let text = format!("sqlite:{}", text.display());
    refusal(
        &serve(&text, &[]),
        1,
        &["text.sqlite", "not an SQLite database"],
    );
    let empty = folder.path().join("empty.sqlite");
    fs::write(&empty, "").unwrap();
    let empty = format!("sqlite:{}", empty.display());
    refusal(
        &serve(&empty, &[]),
        1,
        &["not a Durable Workflow v2 database"],
    );
    refusal(
        &["seed", "--database-url", &empty],
        1,
        &["not a Durable Workflow v2 database", "--create"],
    );
    let dir = format!("sqlite:{}", folder.path().display());
    refusal(&serve(&dir, &[]), 1, &["it is a folder", "--database-url"]);
}

#[tokio::test]
async fn a_file_in_wal_mode_that_cannot_be_opened_is_explained() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("wal.sqlite");
    let engine = rusqlite::Connection::open(&file).unwrap();
    engine
        .execute_batch("pragma journal_mode = wal; create table t (x)")
        .unwrap();
    drop(engine);
    // A folder we may not write to has the same effect, but not for who runs tests as root.
    fs::create_dir(folder.path().join("wal.sqlite-wal")).unwrap();
    let url = format!("sqlite:{}", file.display());
    tokio::task::spawn_blocking(move || {
        refusal(
            &serve(&url, &[]),
            1,
            &[
                "wal.sqlite",
                "WAL mode",
                "write access to the folder",
                "keep the engine running",
            ],
        );
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn a_locked_sqlite_file_is_explained() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("locked.sqlite");
    let holder = rusqlite::Connection::open(&file).unwrap();
    holder
        .execute_batch("create table t (x); begin exclusive")
        .unwrap();
    let url = format!("sqlite:{}", file.display());
    tokio::task::spawn_blocking(move || {
        refusal(
            &serve(&url, &[]),
            1,
            &["locked.sqlite", "Another process holds it"],
        );
    })
    .await
    .unwrap();
    holder.execute_batch("rollback").unwrap();
}

#[test]
fn a_server_that_does_not_answer_is_explained() {
    let port = closed_port();
    for scheme in ["postgres", "mysql", "mariadb"] {
        let url = format!("{scheme}://app:s3cret@127.0.0.1:{port}/app");
        let says = [
            &format!("127.0.0.1:{port}"),
            "Check that the server is running",
        ];
        refusal(&serve(&url, &[]), 1, &says);
    }
}

#[test]
fn a_port_in_use_is_explained() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let says = [address.as_str(), "listens there already", "--listen"];
    refusal(&["demo", "--listen", &address], 1, &says);
}

#[test]
fn the_printed_configuration_hides_secrets() {
    for url in [
        "postgres://app:s3cret@db.example/app",
        "mysql://app:s3cret@db.example:3307/app?ssl-mode=required",
        "postgres://db.example/app?user=app&password=s3cret",
    ] {
        let output = ends(&["serve", "--print-config", "--database-url", url]);
        let printed = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success());
        assert!(
            printed.contains("db.example") && !printed.contains("s3cret"),
            "{printed}"
        );
        assert!(printed.contains("listen = \"127.0.0.1:7420\""), "{printed}");
    }
}

/// What --print-config says of a setting that a variable gives.
fn printed_with(variable: &str, value: &str) -> String {
    let mut command = plimsoll(&["serve", "--print-config"]);
    let output = command.env(variable, value).output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{variable}={value}: {error}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_variable_is_taken_as_people_write_it() {
    for (written, taken) in [
        ("1", true),
        ("0", false),
        ("true", true),
        ("FALSE", false),
        ("yes", true),
        ("no", false),
    ] {
        for name in ["allow_repair", "insecure_listen"] {
            let variable = format!("PLIMSOLL_{}", name.to_ascii_uppercase());
            let printed = printed_with(&variable, written);
            let line = format!("{name} = {taken}\n");
            assert!(printed.contains(&line), "{variable}={written}: {printed}");
        }
    }
}

#[test]
fn an_empty_variable_is_not_set() {
    let unset = printed_with("PATH", "");
    for variable in [
        "PLIMSOLL_DATABASE_URL",
        "PLIMSOLL_LISTEN",
        "PLIMSOLL_ALLOW_REPAIR",
        "PLIMSOLL_BASE_PATH",
        "PLIMSOLL_POOL_SIZE",
        "PLIMSOLL_PUBLIC_HOST",
        "PLIMSOLL_CONFIG",
        "PLIMSOLL_LOG",
    ] {
        assert_eq!(printed_with(variable, ""), unset, "{variable}");
    }
}

#[test]
fn a_variable_that_is_wrong_is_named() {
    for (variable, value, flag) in [
        ("PLIMSOLL_LISTEN", "here", "--listen <ADDR:PORT>"),
        ("PLIMSOLL_ALLOW_REPAIR", "maybe", "--allow-repair [<BOOL>]"),
        ("PLIMSOLL_POOL_SIZE", "900", "--pool-size <N>"),
        ("PLIMSOLL_LOG_FORMAT", "xml", "--log-format <FORMAT>"),
    ] {
        let run = |more: &[&str]| {
            let mut args = vec!["serve"];
            args.extend(more);
            let output = plimsoll(&args).env(variable, value).output().unwrap();
            assert_eq!(output.status.code(), Some(2));
            String::from_utf8(output.stderr).unwrap()
        };
        let error = run(&[]);
        let says = format!("'{flag}' (from {variable})");
        assert!(error.contains(&says) && error.contains(value), "{error}");
        // A flag wins, and is then what is wrong.
        let name = flag.split(' ').next().unwrap();
        let error = run(&[name, "nonsense"]);
        assert!(!error.contains(variable), "{error}");
    }
}

/// What it ends with when nobody reads what it says.
fn unread(args: &[&str]) -> (Option<i32>, String) {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = plimsoll(args).stdout(writer).output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    (output.status.code(), error)
}

#[test]
fn a_reader_that_left_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.json");
    fs::write(&file, "{}").unwrap();
    let file = file.to_str().unwrap();
    assert_eq!(unread(&["verify", file]), (Some(2), String::new()));
    assert_eq!(
        unread(&["serve", "--print-config"]),
        (Some(0), String::new())
    );
}

#[test]
fn a_file_that_cannot_be_read_gets_no_verdict() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("none.json");
    let missing = missing.to_str().unwrap();
    let says = ["cannot read", "none.json", "No such file"];
    let said = refusal(&["verify", missing], 3, &says);
    assert!(!said.contains("not a bundle"), "{said}");
    // Opened as a file is, and only then refused.
    let dir = folder.path().to_str().unwrap();
    refusal(&["verify", dir], 3, &["cannot read", "directory"]);

    let output = ends(&["verify", "--json", missing]);
    assert_eq!(output.status.code(), Some(3));
    let line: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(line["file"], missing);
    assert!(
        line["unreadable"]
            .as_str()
            .unwrap()
            .contains("No such file"),
        "{line}"
    );
}

#[test]
fn only_a_configuration_that_would_start_is_printed() {
    for (path, says) in [
        ("x", "start with a slash"),
        ("/a b", "\"a b\""),
        ("/{x}", "\"{x}\""),
        ("/livez", "address of a probe"),
    ] {
        refusal(
            &["serve", "--print-config", "--base-path", path],
            2,
            &[says],
        );
    }
    refusal(&["serve", "--print-config", "--log", "=!="], 2, &["--log"]);
    for (more, says) in [
        (&["--repair-loop"][..], "--allow-repair"),
        (
            &["--repair-loop", "--allow-repair", "--repair-mode", "nudge"],
            "--repair-mode nudge",
        ),
        (
            &["--allow-repair", "--clock", "2026-11-15T12:00:00Z"],
            "--clock",
        ),
    ] {
        // Whatever the database would have said.
        for mut args in [
            vec!["serve", "--print-config"],
            serve("sqlite:/nowhere", &[]),
        ] {
            args.extend(more);
            refusal(&args, 2, &[says]);
        }
    }
    for (given, understood) in [("/x/y/", "/x/y"), ("/x", "/x"), ("/", "/"), ("", "/")] {
        let output = ends(&["serve", "--print-config", "--base-path", given]);
        let printed = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{given:?}");
        let line = format!("base_path = \"{understood}\"");
        assert!(
            printed.lines().any(|printed| printed == line),
            "{given:?}: {printed}"
        );
    }
}

#[tokio::test]
async fn a_line_of_the_json_log_names_its_request_once() {
    async fn body(db: TestDb) {
        tokio::task::spawn_blocking(move || {
            let server = Started::new(plimsoll(&serve(&db.url, &["--log-format", "json"])));
            assert_eq!(server.get("/waterline/runs").0, 200);
            let (_, log) = server.stop();
            let mut lines = log
                .lines()
                .map(|line| serde_json::from_str(line).expect("JSON"));
            let answered = |line: &serde_json::Value| line["fields"]["message"] == "answered";
            let line = lines.find(answered).expect("the request is logged");
            assert_eq!(line["span"]["path"], "/waterline/runs");
            assert!(line["span"]["request_id"].is_string(), "{line}");
            assert_eq!(line.get("spans"), None);
        })
        .await
        .unwrap();
    }
    rig::on(Dialect::Sqlite, body).await;
}

#[test]
fn the_demo_starts_answers_and_leaves_nothing() {
    let temporary = tempfile::tempdir().unwrap();
    let mut command = plimsoll(&["demo", "--listen", "127.0.0.1:0"]);
    command.env("TMPDIR", temporary.path());
    let demo = Started::new(command);
    assert!(
        demo.said.starts_with("Plimsoll demo: http://127.0.0.1:"),
        "{}",
        demo.said
    );
    assert!(
        demo.said.trim_end().ends_with("/waterline/"),
        "{}",
        demo.said
    );
    for probe in ["/livez", "/up", "/readyz"] {
        assert_eq!(demo.get(probe).0, 200, "{probe}");
    }
    let (status, body) = demo.get("/waterline/runs");
    assert!(status == 200 && body.contains("order.fulfil"));
    assert_eq!(entries(temporary.path()), 1);
    let (status, log) = demo.stop();
    assert_eq!(status.code(), Some(0), "{log}");
    assert_eq!(entries(temporary.path()), 0, "the folder stays");
}

#[test]
fn a_closed_terminal_ends_the_demo_in_order() {
    let temporary = tempfile::tempdir().unwrap();
    let mut command = plimsoll(&["demo", "--listen", "127.0.0.1:0"]);
    command.env("TMPDIR", temporary.path());
    let demo = Started::new(command);
    // Once it answers, it listens to signals too.
    assert_eq!(demo.get("/livez").0, 200);
    let (status, log) = demo.stop_by("-HUP");
    assert_eq!(status.code(), Some(0), "{log}");
    assert_eq!(entries(temporary.path()), 0, "the folder stays");
}

#[test]
fn a_demo_that_is_kept_stays_at_its_moment() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().to_str().unwrap();
    let args = ["demo", "--listen", "127.0.0.1:0", "--dir", dir];
    let starts_at = |args: &[&str], moment: &str| {
        let demo = Started::new(plimsoll(args));
        let (status, answer) = demo.get("/waterline/api/v2/health");
        assert_eq!(status, 200, "{answer}");
        let told = format!("\"generated_at\":\"{moment}");
        assert!(answer.contains(&told), "{answer}");
        assert_eq!(demo.stop().0.code(), Some(0));
    };
    let mut first = args.to_vec();
    first.extend(["--clock", "2026-11-15T12:00:00Z"]);
    starts_at(&first, "2026-11-15T12:00:00");
    starts_at(&args, "2026-11-15T12:00:00");
    let mut other = args.to_vec();
    other.extend(["--clock", "2026-11-16T12:00:00Z"]);
    refusal(&other, 2, &["true at 2026-11-15T12:00:00Z", "--dir"]);
}

fn entries(folder: &Path) -> usize {
    fs::read_dir(folder).unwrap().count()
}

async fn empty_it(db: &TestDb) {
    let mut tx = db.writable.write().await.unwrap();
    tx.script(db.dialect().pick(
        "pragma defer_foreign_keys = on",
        "set constraints all deferred",
        "set foreign_key_checks = 0",
    ))
    .await
    .unwrap();
    for table in schema::tables() {
        let mut q = tx.statement();
        q.push("drop table {").push(table.name).push("}");
        q.push(db.dialect().pick("", " cascade", ""));
        tx.execute(q).await.unwrap();
    }
    tx.commit().await.unwrap();
}

on_every_database! {
    async fn an_older_engine_is_served_with_a_warning(db: TestDb) {
        shop::add_summaries(&db, 0..5).await;
        let mut tx = db.writable.write().await.unwrap();
        tx.script(db.dialect().pick(
            "drop index {workflow_run_summaries_history_budget_pressure_index};
             alter table {workflow_run_summaries} drop column history_budget_pressure;
             drop table {workflow_run_waits}; drop table {workflow_messages};",
            "alter table {workflow_run_summaries} drop column history_budget_pressure;
             drop table {workflow_run_waits}; drop table {workflow_messages};",
            "alter table {workflow_run_summaries} drop column history_budget_pressure;
             drop table {workflow_run_waits}; drop table {workflow_messages};",
        )).await.unwrap();
        tx.commit().await.unwrap();
        let url = db.url.clone();
        tokio::task::spawn_blocking(move || {
            let server = Started::new(plimsoll(&serve(&url, &[])));
            assert_eq!(server.get("/readyz").0, 200);
            let (status, health) = server.get("/waterline/api/v2/health");
            assert!(status == 503 && health.contains("v2_pinned_unavailable"), "{health}");
            for path in ["/waterline/runs", "/waterline/api/flows/all", "/waterline/runs?queue=fast"] {
                let (status, body) = server.get(path);
                assert!(status == 200 && body.contains("seed"), "{path}: {body}");
            }
            let (status, log) = server.stop();
            assert_eq!(status.code(), Some(0));
            assert!(!log.contains('\u{1b}'), "colours in a pipe: {log:?}");
            let exported = ends(&["export", "--database-url", &url, "--run", "nobody"]);
            let exported = String::from_utf8(exported.stderr).unwrap();
            for log in [log, exported] {
                for column in ["history_budget_pressure", "workflow_messages", "workflow_run_waits"] {
                    assert!(log.lines().any(|line| line.contains("WARN") && line.contains(column)), "{log}");
                }
            }
        })
        .await
        .unwrap();
    }

    async fn a_database_of_something_else_is_refused(db: TestDb) {
        let url = db.url.clone();
        let refused = |more: &'static [&'static str], says: &'static [&'static str]| {
            let url = url.clone();
            tokio::task::spawn_blocking(move || refusal(&serve(&url, more), 1, says))
        };
        refused(
            &["--table-prefix", "other_"],
            &["not a Durable Workflow v2 database", "set --table-prefix \"\""],
        )
        .await
        .unwrap();
        empty_it(&db).await;
        refused(&[], &["none of its tables are here", "--database-url"]).await.unwrap();
    }
}

/// A file asks for no name, so this is for the servers alone.
mod a_server_that_refuses_us_is_explained {
    use super::*;

    async fn body(db: TestDb) {
        let mut url = url::Url::parse(&db.url).unwrap();
        url.set_path("no_such_database");
        let unknown = url.to_string();
        url.set_path("mysql");
        url.set_username("nobody").unwrap();
        url.set_password(Some("s3cret")).unwrap();
        let nobody = url.to_string();
        tokio::task::spawn_blocking(move || {
            refusal(
                &serve(&unknown, &[]),
                1,
                &["no_such_database", "Check the database name"],
            );
            refusal(
                &serve(&nobody, &[]),
                1,
                &["nobody", "Check user name and password"],
            );
        })
        .await
        .unwrap();
    }

    #[tokio::test]
    async fn postgres() {
        rig::on(Dialect::Postgres, body).await;
    }

    #[tokio::test]
    async fn mysql() {
        rig::on(Dialect::MySql, body).await;
    }
}
