//! Parquet footers of any bytes: which columns are encrypted is an error or an answer, of bounded memory.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wordpiece_shards::parquet_footer::encrypted_columns;

// The footer, with its length and the magic number after it.
fuzz_target!(|data: &[u8]| {
    let _ = encrypted_columns(data);
});
