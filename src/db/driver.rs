//! What the adapters of the two servers supply, and the one way statements run on both.

use std::sync::Arc;

use futures_util::{StreamExt as _, stream::BoxStream};
use sqlx::{
    Arguments as _, AssertSqlSafe, Column as _, Database, Executor, IntoArguments, Row as _,
    ValueRef as _,
};

use super::{
    Val,
    row::{Columns, Row},
    statement::Statement,
};

/// Turns one cell into a neutral value. Chosen once per column of a result set.
pub(super) type Decoder<D> =
    fn(&<D as Database>::Row, usize) -> Result<Val, sqlx::error::BoxDynError>;

/// A database as the waist sees it: how a value is bound and how a column is read.
pub(super) trait Driver: Database + sqlx::database::HasStatementCache {
    fn bind(args: &mut Self::Arguments, value: Val) -> Result<(), sqlx::error::BoxDynError>;
    fn decoder(column: &Self::Column) -> Decoder<Self>;
    fn affected(result: &Self::QueryResult) -> u64;
}

/// Reads one cell as `T`, or null.
pub(super) fn cell<D, T>(
    row: &D::Row,
    index: usize,
    wrap: impl FnOnce(T) -> Val,
) -> Result<Val, sqlx::error::BoxDynError>
where
    D: Driver,
    T: for<'r> sqlx::Decode<'r, D>,
    usize: sqlx::ColumnIndex<D::Row>,
{
    let value = row.try_get_raw(index)?;
    if value.is_null() {
        Ok(Val::Null)
    } else {
        T::decode(value).map(wrap)
    }
}

type BoundQuery<D> = sqlx::query::Query<'static, D, <D as Database>::Arguments>;

fn query<D>((sql, binds): (String, Vec<Val>)) -> Result<BoundQuery<D>, sqlx::Error>
where
    D: Driver,
    D::Arguments: IntoArguments<D>,
{
    // A null has no type of its own: PostgreSQL infers one, and a cached plan would keep it
    // for the next, typed value. Such statements are prepared anew.
    let typed = !binds.contains(&Val::Null);
    let mut args = D::Arguments::default();
    args.reserve(binds.len(), 0);
    for value in binds {
        D::bind(&mut args, value).map_err(sqlx::Error::Encode)?;
    }
    Ok(sqlx::query_with(AssertSqlSafe(sql), args).persistent(typed))
}

/// Decoders and names, settled by the first row of a result set.
struct Shape<D: Driver> {
    columns: Arc<Columns>,
    decoders: Vec<Decoder<D>>,
}

impl<D: Driver> Shape<D> {
    fn of(row: &D::Row, zone: crate::zone::Zone) -> Self {
        let columns = row.columns();
        Self {
            decoders: columns.iter().map(D::decoder).collect(),
            columns: Arc::new(Columns {
                names: columns
                    .iter()
                    .map(|column| column.name().to_owned())
                    .collect(),
                zone,
            }),
        }
    }

    fn read(&self, row: &D::Row) -> Result<Row, sqlx::Error> {
        let mut cells = Vec::with_capacity(self.decoders.len());
        for (index, decode) in self.decoders.iter().enumerate() {
            cells.push(
                decode(row, index).map_err(|source| sqlx::Error::ColumnDecode {
                    index: self.columns.names[index].clone(),
                    source,
                })?,
            );
        }
        Ok(Row::new(Arc::clone(&self.columns), cells))
    }
}

pub(super) fn stream<D>(
    connection: &mut D::Connection,
    statement: Statement,
    zone: crate::zone::Zone,
) -> BoxStream<'_, Result<Row, sqlx::Error>>
where
    D: Driver,
    D::Arguments: IntoArguments<D>,
    for<'c> &'c mut D::Connection: Executor<'c, Database = D>,
{
    let query = match query::<D>(statement.into_parts()) {
        Ok(query) => query,
        Err(error) => return futures_util::stream::once(async { Err(error) }).boxed(),
    };
    let mut shape = None;
    query
        .fetch(connection)
        .map(move |row| {
            let row = row?;
            shape
                .get_or_insert_with(|| Shape::<D>::of(&row, zone))
                .read(&row)
        })
        .boxed()
}

pub(super) async fn execute<D>(
    connection: &mut D::Connection,
    statement: Statement,
) -> Result<u64, sqlx::Error>
where
    D: Driver,
    D::Arguments: IntoArguments<D>,
    for<'c> &'c mut D::Connection: Executor<'c, Database = D>,
{
    let result = query::<D>(statement.into_parts())?
        .execute(connection)
        .await?;
    Ok(D::affected(&result))
}
