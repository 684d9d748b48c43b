//! Which tables and columns the engine has, read from our own SQLite scripts so that there is
//! no second list to keep in step.

use std::sync::LazyLock;

/// What a column holds, as far as writing and reading it is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Text,
    Int,
    Float,
    Bool,
    Time,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    pub name: &'static str,
    pub kind: Kind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    pub name: &'static str,
    pub columns: Vec<Column>,
}

impl Table {
    pub fn column(&self, name: &str) -> Option<Column> {
        self.columns.iter().find(|c| c.name == name).copied()
    }
}

static TABLES: LazyLock<Vec<Table>> =
    LazyLock::new(|| super::SQLITE.into_iter().flat_map(read).collect());

/// The 29 tables of the v2 engine, parents before the tables that refer to them.
pub fn tables() -> &'static [Table] {
    &TABLES
}

/// Reads `create table` statements as our scripts arrange them: one column per line.
fn read(script: &'static str) -> Vec<Table> {
    let mut tables: Vec<Table> = Vec::new();
    let mut inside = false;
    for line in script.lines() {
        if let Some(rest) = line.strip_prefix("create table if not exists {") {
            let (name, _) = rest.split_once('}').expect("a closing brace");
            tables.push(Table {
                name,
                columns: Vec::new(),
            });
            inside = true;
        } else if line == ");" {
            inside = false;
        } else if inside
            && !line.contains("foreign key (")
            && !line.trim_start().starts_with("primary key")
        {
            let (name, rest) = line.trim_start().split_once(' ').expect("name and type");
            let table = tables.last_mut().expect("a column stands in a table");
            table.columns.push(Column {
                name: name.trim_matches('"'),
                kind: kind(rest),
            });
        }
    }
    tables
}

fn kind(declared: &str) -> Kind {
    let word = declared
        .split([' ', ','])
        .next()
        .expect("split gives at least one piece");
    match word {
        "varchar" | "text" => Kind::Text,
        "integer" => Kind::Int,
        "tinyint(1)" => Kind::Bool,
        "datetime" => Kind::Time,
        "double" | "float" => Kind::Float,
        other => unreachable!("our own scripts declare no {other}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_tables_and_columns_are_read() {
        assert_eq!(tables().len(), 29);
        let summaries = tables()
            .iter()
            .find(|t| t.name == "workflow_run_summaries")
            .unwrap();
        assert_eq!(summaries.columns.len(), 52);
        assert_eq!(summaries.column("task_problem").unwrap().kind, Kind::Bool);
        assert_eq!(summaries.column("sort_timestamp").unwrap().kind, Kind::Time);
        let memos = tables()
            .iter()
            .find(|t| t.name == "workflow_memos")
            .unwrap();
        assert_eq!(memos.column("key").unwrap().kind, Kind::Text);
    }
}
