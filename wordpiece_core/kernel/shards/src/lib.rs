//! Shards of ids as Parquet: the data pages of ids (`id_pages`), also straight from texts (`encoded`),
//! column chunks of other files that can be copied (`source`), and files that are put together from
//! both (`shard_file`). What is read of Parquet files here without a library, safely from any bytes: the
//! columns that are encrypted and the headers of pages (`parquet_footer`).

pub mod encoded;
pub mod id_pages;
pub mod parquet_footer;
pub mod shard_file;
pub mod source;
mod thrift;
