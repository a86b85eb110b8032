//! Shards of ids as Parquet: the data pages of ids (`id_pages`), also straight from texts (`encoded`),
//! column chunks of other files that can be copied (`source`), and files that are put together from
//! both (`shard_file`).

pub mod encoded;
pub mod id_pages;
pub mod shard_file;
pub mod source;
