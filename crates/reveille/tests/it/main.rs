//! Tests of the library on real PostgreSQL. Modules mirror `src`.

#[cfg(test)]
mod support;

#[cfg(test)]
mod database_close;
#[cfg(test)]
mod database_connect;
#[cfg(test)]
mod database_examine;
#[cfg(test)]
mod database_migrate;
#[cfg(test)]
mod database_pool;
#[cfg(test)]
mod database_pooled;
#[cfg(test)]
mod database_retired;
#[cfg(test)]
mod database_schema;
#[cfg(test)]
mod database_search_path;
#[cfg(test)]
mod database_shared_schema;
#[cfg(test)]
mod database_statements;
#[cfg(test)]
mod database_tls;
#[cfg(test)]
mod database_transaction;
#[cfg(test)]
mod examples;
