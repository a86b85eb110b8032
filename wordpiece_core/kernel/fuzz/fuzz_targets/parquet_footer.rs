//! Parquet footers of any bytes: what is read of them is an error or an answer, of bounded memory.
#![no_main]

use _kernel::shards::parquet_footer::encrypted_columns;
use _kernel::shards::shard_file::ShardFile;
use _kernel::shards::source::ChunkSource;
use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use parquet::basic::CompressionCodec;
use wordpiece_core::base::{caught, note_panic};
use wordpiece_core::{Error, Result};

// The footer, with its length and the magic number behind it. What is before it stands for the data.
fuzz_target!(init: std::panic::set_hook(Box::new(note_panic)), |data: &[u8]| {
    if let Err(error @ Error::Panic(_)) = caught(|| read(data)) {
        eprintln!("{error}");
        std::process::abort();
    }
});

fn read(data: &[u8]) -> Result<()> {
    let _ = encrypted_columns(data);
    let file = Bytes::copy_from_slice(data);
    // Any file may be one whose columns are copied; those with its own schema always fit.
    for codec in [CompressionCodec::SNAPPY, CompressionCodec::UNCOMPRESSED] {
        let start = footer_start(data);
        let source = ChunkSource::new(&data[start..], &file, codec)?;
        for group in 0..4 {
            let Ok(ranges) = source.ranges(group) else { break };
            let chunks: Option<Vec<Bytes>> = ranges
                .iter()
                .map(|&(from, length)| {
                    let end = from.checked_add(length).filter(|&end| end <= data.len() as u64)?;
                    Some(file.slice(from as usize..end as usize))
                })
                .collect();
            let Some(chunks) = chunks else { continue };
            let Ok(chunks) = source.chunks(group, chunks) else { continue };
            let Ok(mut shard) = ShardFile::new(&file, "input_ids".into()) else { continue };
            let _ = shard.add_row_group(None, Some(&chunks), &[], None);
            let _ = shard.finish();
        }
    }
    Ok(())
}

fn footer_start(data: &[u8]) -> usize {
    let Some((rest, [l0, l1, l2, l3, ..])) = data.split_last_chunk::<8>() else { return 0 };
    rest.len().saturating_sub(u32::from_le_bytes([*l0, *l1, *l2, *l3]) as usize)
}
