//! What benchmarks share: seeded databases, the real binary over them, and one kept connection.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::Duration,
};

pub const CLOCK: &str = "2026-11-15T12:00:00Z";
const BIN: &str = env!("CARGO_BIN_EXE_plimsoll");

pub struct Database {
    pub name: &'static str,
    /// A URL with `{}` where the database's own name or file goes.
    pub template: String,
}

impl Database {
    pub fn url(&self, runs: u64) -> String {
        self.template
            .replace("{}", &format!("plimsoll_bench_{runs}"))
    }
}

pub fn databases(sizes: &[u64]) -> Vec<Database> {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let mut all = vec![Database {
        name: "SQLite",
        template: format!("sqlite:{}/{{}}.sqlite", folder.display()),
    }];
    for (name, variable) in [
        ("PostgreSQL", "PLIMSOLL_TEST_POSTGRES_URL"),
        ("MySQL", "PLIMSOLL_TEST_MYSQL_URL"),
    ] {
        if let Ok(url) = std::env::var(variable) {
            let server = url
                .rsplit_once('/')
                .map_or(url.as_str(), |(server, _)| server);
            all.push(Database {
                name,
                template: format!("{server}/{{}}"),
            });
            for runs in sizes {
                create(&url, &format!("plimsoll_bench_{runs}"));
            }
        }
    }
    all
}

/// An empty database on a server; there already is fine.
pub fn create(admin: &str, name: &str) {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let sql = sqlx::AssertSqlSafe(format!("create database {name}"));
        let _ = if admin.starts_with("postgres") {
            let mut connection = <sqlx::PgConnection as sqlx::Connection>::connect(admin)
                .await
                .expect("PostgreSQL");
            sqlx::raw_sql(sql).execute(&mut connection).await.map(drop)
        } else {
            let mut connection = <sqlx::MySqlConnection as sqlx::Connection>::connect(admin)
                .await
                .expect("MySQL");
            sqlx::raw_sql(sql).execute(&mut connection).await.map(drop)
        };
    });
}

/// CPU time the database server behind this URL has used so far, its finished workers included;
/// none for SQLite, whose work is the client's.
#[allow(dead_code, reason = "not every benchmark asks")]
pub fn database_cpu(url: &str) -> Duration {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let server = runtime.block_on(async {
        if url.starts_with("postgres") {
            let mut connection = <sqlx::PgConnection as sqlx::Connection>::connect(url)
                .await
                .expect("PostgreSQL");
            let backend: i32 = sqlx::query_scalar("select pg_backend_pid()")
                .fetch_one(&mut connection)
                .await
                .expect("its process");
            stat(backend).map(|stat| stat.parent)
        } else if url.starts_with("mysql") {
            let mut connection = <sqlx::MySqlConnection as sqlx::Connection>::connect(url)
                .await
                .expect("MySQL");
            let file: String = sqlx::query_scalar("select @@pid_file")
                .fetch_one(&mut connection)
                .await
                .expect("its process");
            std::fs::read_to_string(file).ok()?.trim().parse().ok()
        } else {
            None
        }
    });
    let Some(server) = server else {
        return Duration::ZERO;
    };
    let processes = std::fs::read_dir("/proc").expect("Linux");
    let ticks: u64 = processes
        .filter_map(|process| process.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(|process: i32| Some((process, stat(process)?)))
        .map(|(process, stat)| match process {
            _ if process == server => stat.own + stat.finished_children,
            _ if stat.parent == server => stat.own,
            _ => 0,
        })
        .sum();
    Duration::from_millis(ticks * 10)
}

struct Stat {
    parent: i32,
    /// Ticks of a hundredth of a second, in user mode and in the kernel.
    own: u64,
    finished_children: u64,
}

fn stat(process: i32) -> Option<Stat> {
    let text = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The command's name, in brackets, may hold anything.
    let (_, rest) = text.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let ticks = |n: usize| -> Option<u64> { fields.get(n).and_then(|text| text.parse().ok()) };
    Some(Stat {
        parent: fields.get(1)?.parse().ok()?,
        own: ticks(11)? + ticks(12)?,
        finished_children: ticks(13)? + ticks(14)?,
    })
}

pub fn seed(url: &str, runs: u64) {
    let runs = runs.to_string();
    let done = Command::new(BIN)
        .args([
            "seed",
            "--create",
            "--database-url",
            url,
            "--projections",
            "summaries",
            "--runs",
            &runs,
            "--clock",
            CLOCK,
        ])
        .output()
        .expect("seed runs");
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(
        done.status.success() || said.contains("already"),
        "seeding {url}: {said}"
    );
}

pub struct Server {
    child: Child,
    address: String,
}

impl Server {
    pub fn start(url: &str) -> Self {
        let mut child = Command::new(BIN)
            .args([
                "serve",
                "--database-url",
                url,
                "--listen",
                "127.0.0.1:0",
                "--clock",
                CLOCK,
                "--log",
                "warn",
                "--metrics-interval",
                "3600",
                // Beside other work a scan of a million rows may take its time.
                "--statement-timeout",
                "120",
            ])
            .stdout(Stdio::piped())
            .spawn()
            .expect("the server starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("its output"))
            .read_line(&mut line)
            .expect("its address");
        let address = line
            .split("http://")
            .nth(1)
            .and_then(|rest| rest.split('/').next())
            .expect("an address");
        Self {
            address: address.to_owned(),
            child,
        }
    }

    pub fn client(&self) -> Client {
        let stream = TcpStream::connect(&self.address).expect("the server listens");
        stream.set_nodelay(true).expect("no delay");
        Client {
            stream,
            buffer: vec![0; 1 << 20],
        }
    }

    /// Time the server's threads spent on a processor so far.
    pub fn cpu(&self) -> Duration {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).expect("Linux");
        let nanos = tasks.filter_map(|task| {
            let stat = std::fs::read_to_string(task.ok()?.path().join("schedstat")).ok()?;
            stat.split_whitespace().next()?.parse::<u64>().ok()
        });
        Duration::from_nanos(nanos.sum())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// One connection, kept alive: what a proxy in front of us would hold.
pub struct Client {
    stream: TcpStream,
    buffer: Vec<u8>,
}

pub struct Answer {
    pub head: String,
    pub body: String,
}

impl Answer {
    pub fn header(&self, name: &str) -> &str {
        self.head
            .lines()
            .find_map(|line| {
                line.split_once(": ")
                    .filter(|(key, _)| key.eq_ignore_ascii_case(name))
            })
            .map_or("", |(_, value)| value)
    }
}

impl Client {
    pub fn get(&mut self, path: &str) -> Answer {
        write!(self.stream, "GET {path} HTTP/1.1\r\nHost: bench\r\n\r\n").expect("a request");
        let mut filled = 0;
        loop {
            filled += self
                .stream
                .read(&mut self.buffer[filled..])
                .expect("an answer");
            let text = &self.buffer[..filled];
            let Some(split) = text.windows(4).position(|four| four == b"\r\n\r\n") else {
                continue;
            };
            let head = String::from_utf8_lossy(&text[..split]).into_owned();
            let answer = Answer {
                head,
                body: String::new(),
            };
            let length: usize = answer.header("content-length").parse().expect("a length");
            if filled == self.buffer.len() {
                self.buffer.resize(filled * 2, 0);
            }
            if filled >= split + 4 + length {
                assert!(
                    answer.head.starts_with("HTTP/1.1 200"),
                    "{path}: {}",
                    answer.head
                );
                let body = String::from_utf8_lossy(&self.buffer[split + 4..split + 4 + length])
                    .into_owned();
                return Answer { body, ..answer };
            }
        }
    }
}
