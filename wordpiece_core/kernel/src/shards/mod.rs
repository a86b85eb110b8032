//! Shards of ids as Parquet: the data pages of ids (`id_pages`), column chunks of other files that can
//! be copied (`source`), and files that are put together from both (`shard_file`).

pub mod id_pages;
pub mod shard_file;
pub mod source;
