//! Arrow arrays with any lengths, offsets, views and null counts. Importing one must give an error or an
//! array that can be read, also when its producer changes the buffers after the import.
//!
//! Every buffer is an allocation of exactly the size that Arrow demands for the lengths in the
//! structure, so that the address sanitizer notices any access beyond it.
#![no_main]

use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;

use _kernel::arrow::count::WordTableBatch;
use _kernel::arrow::encode::{pack, values};
use _kernel::arrow::shards::pages;
use _kernel::arrow::{each_row, each_text, import, train, unigram};
use _kernel::shards::id_pages::{Codec, IdPages};
use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema};
use arrow_array::types::{Float64Type, Int32Type, Int64Type, UInt16Type, UInt32Type};
use arrow_array::{Array, ArrayRef, RecordBatch, StructArray};
use arrow_schema::{DataType, Field};
use libfuzzer_sys::arbitrary::{self, Arbitrary, Unstructured};
use libfuzzer_sys::fuzz_target;
use wordpiece_core::base::note_panic;
use wordpiece_core::encode::{Boundaries, PackOptions, Packer};

/// The `struct ArrowArray` of the C data interface.
#[repr(C)]
struct CArray {
    length: i64,
    null_count: i64,
    offset: i64,
    n_buffers: i64,
    n_children: i64,
    buffers: *const *const u8,
    children: *const *const CArray,
    dictionary: *const CArray,
    release: *const c_void,
    private_data: *const c_void,
}

extern "C" fn release(array: *mut CArray) {
    // SAFETY: the consumer passes the structure that it owns.
    unsafe { (*array).release = ptr::null() };
}

#[derive(Arbitrary, Clone, Copy, Debug, PartialEq)]
enum Kind {
    Null,
    Utf8,
    Binary,
    LargeUtf8,
    LargeBinary,
    Utf8View,
    BinaryView,
    Int32,
    Int64,
    UInt16,
    UInt32,
    Float64,
    Int8,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Shape {
    Flat(Kind),
    List(Kind),
    LargeList(Kind),
    FixedList(Kind),
}

/// What is wrong with a structure, beside what is in its buffers.
#[derive(Arbitrary, Debug)]
enum Fault {
    None,
    Length(i64),
    Offset(i64),
    NullCount(i64),
    Buffers(i64),
    Children(i64),
    NoBuffers,
    NoChildren,
    NoBuffer(u8),
    Dictionary,
    Released,
}

#[derive(Arbitrary, Debug)]
struct Level {
    length: u8,
    offset: u8,
    null_count: i8,
    has_bitmap: bool,
    fault: Fault,
    /// What the buffers hold, one after the other, repeated.
    bytes: Vec<u8>,
    /// Whether offsets ascend by the bytes, and are not the bytes themselves.
    ascending: bool,
}

#[derive(Arbitrary, Debug)]
struct Input {
    /// One array, or the columns of a record batch with these names.
    columns: Vec<(u8, Shape, Level, Level)>,
    is_batch: bool,
    batch: Level,
    /// Whether the consumer knows the sizes of the buffers: then any number of rows is harmless.
    knows_sizes: bool,
    /// Whether the bytes of texts are copied.
    copies_text: bool,
    /// What the producer writes into its buffers after the import, and where.
    changes: Vec<(u16, u8)>,
    /// The format string of a schema.
    format: String,
}

const NAMES: [&str; 20] = [
    "word",
    "count",
    "piece",
    "score",
    "rank",
    "offset",
    "symbols",
    "token",
    "left",
    "right",
    "merges",
    "first_rank",
    "first_offset",
    "level",
    "hash",
    "length",
    "high",
    "low",
    "pair_count",
    "first_max_level",
];

fn data_type(kind: Kind) -> DataType {
    match kind {
        Kind::Null => DataType::Null,
        Kind::Utf8 => DataType::Utf8,
        Kind::Binary => DataType::Binary,
        Kind::LargeUtf8 => DataType::LargeUtf8,
        Kind::LargeBinary => DataType::LargeBinary,
        Kind::Utf8View => DataType::Utf8View,
        Kind::BinaryView => DataType::BinaryView,
        Kind::Int32 => DataType::Int32,
        Kind::Int64 => DataType::Int64,
        Kind::UInt16 => DataType::UInt16,
        Kind::UInt32 => DataType::UInt32,
        Kind::Float64 => DataType::Float64,
        Kind::Int8 => DataType::Int8,
    }
}

/// Owns what the structures point to.
#[derive(Default)]
struct Memory {
    buffers: Vec<Box<[u8]>>,
    pointers: Vec<Box<[*const u8]>>,
    structures: Vec<Box<CArray>>,
    knows_sizes: bool,
}

/// The most bytes of a buffer that an input may ask for.
const MOST: usize = 1 << 14;

impl Memory {
    fn buffer(&mut self, bytes: Vec<u8>) -> *const u8 {
        self.buffers.push(bytes.into());
        self.buffers[self.buffers.len() - 1].as_ptr()
    }

    /// The structure of an array. None if a buffer would be too large to make.
    fn array(
        &mut self,
        kind: Option<Kind>,
        offset_width: usize,
        level: &Level,
        children: Vec<*const CArray>,
    ) -> Option<CArray> {
        let mut source = level.bytes.iter().copied().chain(std::iter::once(0)).cycle();
        let rows = level.length as usize + level.offset as usize;
        let mut take = move |count: usize| source.by_ref().take(count).collect::<Vec<u8>>();
        let mut buffers = vec![match level.has_bitmap {
            true => self.buffer(take(rows.div_ceil(8))),
            false => ptr::null(),
        }];
        // Offsets of what the rows of the array hold, and the end of the last one.
        let mut offsets = |memory: &mut Memory, width: usize| {
            let mut bytes = Vec::new();
            let mut end = 0;
            let start = level.offset as usize;
            let (mut last, mut ascends) = (0i64, true);
            for row in 0..=rows {
                let value = if level.ascending {
                    end += i64::from(take(1)[0]);
                    end
                } else {
                    let mut value = [0; 8];
                    value[..width].copy_from_slice(&take(width));
                    if width == 4 {
                        i32::from_le_bytes([value[0], value[1], value[2], value[3]]) as i64
                    } else {
                        i64::from_le_bytes(value)
                    }
                };
                if row >= start {
                    ascends &= value >= last;
                    last = value;
                }
                bytes.extend_from_slice(&value.to_le_bytes()[..width]);
            }
            (memory.buffer(bytes), ascends.then_some(last))
        };
        match kind {
            None if offset_width > 0 => buffers.push(offsets(self, offset_width).0),
            None => {}
            Some(Kind::Null) => buffers.clear(),
            Some(Kind::Utf8 | Kind::Binary | Kind::LargeUtf8 | Kind::LargeBinary) => {
                let width = if matches!(kind, Some(Kind::Utf8 | Kind::Binary)) { 4 } else { 8 };
                let (pointer, end) = offsets(self, width);
                let end = usize::try_from(end.unwrap_or(0)).ok().filter(|&end| end <= MOST)?;
                buffers.push(pointer);
                let data = take(end);
                buffers.push(self.buffer(data));
            }
            Some(Kind::Utf8View | Kind::BinaryView) => {
                let views = take(16 * rows);
                buffers.push(self.buffer(views));
                let count = take(1)[0] as usize % 4;
                let lengths: Vec<i64> = (0..count).map(|_| i64::from(take(1)[0])).collect();
                for &length in &lengths {
                    let data = take(length as usize);
                    buffers.push(self.buffer(data));
                }
                buffers.push(self.buffer(lengths.into_iter().flat_map(i64::to_le_bytes).collect()));
            }
            Some(flat) => {
                let width = match flat {
                    Kind::Int8 => 1,
                    Kind::UInt16 => 2,
                    Kind::Int32 | Kind::UInt32 => 4,
                    _ => 8,
                };
                let numbers = take(width * rows);
                buffers.push(self.buffer(numbers));
            }
        }
        let mut array = CArray {
            length: level.length.into(),
            null_count: level.null_count.into(),
            offset: level.offset.into(),
            n_buffers: buffers.len() as i64,
            n_children: children.len() as i64,
            buffers: ptr::null(),
            children: ptr::null(),
            dictionary: ptr::null(),
            release: release as *const c_void,
            private_data: ptr::null(),
        };
        // A number of rows that memory could have would be a lie about the sizes of the buffers, which
        // no consumer can notice. So would be another number of buffers of views.
        let knows_sizes = self.knows_sizes && kind != Some(Kind::Null); // that has no buffers
        let impossible = |value: i64| knows_sizes || !(0..=1 << 48).contains(&value);
        let views = matches!(kind, Some(Kind::Utf8View | Kind::BinaryView));
        match level.fault {
            Fault::None => {}
            Fault::Length(length) if impossible(length) => array.length = length,
            Fault::Offset(offset) if impossible(offset) => array.offset = offset,
            Fault::NullCount(count) => array.null_count = count,
            Fault::Buffers(count) if !views => array.n_buffers = count,
            Fault::Children(count) => array.n_children = count,
            Fault::NoBuffer(number) => {
                if let Some(buffer) = buffers.get_mut(number as usize) {
                    *buffer = ptr::null();
                }
            }
            Fault::Dictionary => array.dictionary = &raw const array,
            Fault::Released => array.release = ptr::null(),
            _ => {}
        }
        self.pointers.push(buffers.into());
        self.pointers.push(children.into_iter().map(<*const CArray>::cast).collect());
        let at = self.pointers.len();
        if !matches!(level.fault, Fault::NoBuffers) {
            array.buffers = self.pointers[at - 2].as_ptr();
        }
        if !matches!(level.fault, Fault::NoChildren) {
            array.children = self.pointers[at - 1].as_ptr().cast();
        }
        Some(array)
    }

    fn keep(&mut self, array: CArray) -> *const CArray {
        self.structures.push(Box::new(array));
        &raw const *self.structures[self.structures.len() - 1]
    }

    fn column(
        &mut self,
        shape: Shape,
        level: &Level,
        values: &Level,
    ) -> Option<(CArray, DataType)> {
        let (kind, width) = match shape {
            Shape::Flat(kind) => {
                return Some((self.array(Some(kind), 0, level, Vec::new())?, data_type(kind)));
            }
            Shape::List(kind) => (kind, 4),
            Shape::LargeList(kind) => (kind, 8),
            Shape::FixedList(kind) => (kind, 0),
        };
        let field = Arc::new(Field::new("item", data_type(kind), true));
        let child = self.array(Some(kind), 0, values, Vec::new())?;
        let child = self.keep(child);
        let array = self.array(None, width, level, vec![child])?;
        let kind = match shape {
            Shape::List(_) => DataType::List(field),
            Shape::LargeList(_) => DataType::LargeList(field),
            _ => DataType::FixedSizeList(field, 2),
        };
        Some((array, kind))
    }
}

/// Reads an array by everything that takes one.
fn read(array: &ArrayRef) {
    let (mut rows, mut bytes) = (0, 0);
    let read = each_row(array, |row| {
        rows += 1;
        bytes += row.map_or(0, |row| row.iter().map(|&byte| byte as usize).sum());
    });
    assert!(read.is_err() || rows == array.len());
    let mut texts = 0;
    let read = each_text(array, |row| {
        texts += 1;
        bytes += row.map_or(0, |row| row.text.chars().count() + row.bytes.len());
        true
    });
    assert!(read.is_err() || texts == array.len());
    let _ = values::<UInt32Type>(array).map(|values| values.iter().max().copied());
    let _ = values::<Float64Type>(array).map(|values| values.iter().sum::<f64>());
    let _ = values::<Int64Type>(array).map(|values| values.iter().max().copied());
    for tokens in [9, 1 << 20] {
        let _ = pages(&IdPages::new(tokens, Codec::None), std::slice::from_ref(array));
    }
    let boundaries = Boundaries::Framed { cls_id: 1, sep_id: 2 };
    let options = PackOptions { length: 5, boundaries, pad_id: Some(0) };
    if let Ok(mut packer) = Packer::<i32>::new(options) {
        let _ = pack::<Int32Type>(&mut packer, array, 0, 9);
    }
    if let Ok(mut packer) = Packer::<u16>::new(options) {
        let _ = pack::<UInt16Type>(&mut packer, array, 0, 9);
    }
    if let Some(columns) = array.as_any().downcast_ref::<StructArray>()
        && columns.null_count() == 0
    {
        read_batch(&RecordBatch::from(columns));
    }
}

fn read_batch(batch: &RecordBatch) {
    if let Ok(words) = WordTableBatch::new(batch) {
        let _ = words.rows().map(|rows| rows.len());
    }
    let _ = unigram::read_model(batch);
    let _ = unigram::PieceSums::read(batch);
    let _ = train::read_splits(batch).map(|splits| {
        splits.iter().map(|(_, count, symbols)| count as usize + symbols.len()).max()
    });
    let _ = train::Merges::read(batch);
    let _ = train::TokenCounts::read(batch);
    let _ = train::read_candidates(batch);
    batch.columns().iter().for_each(read);
}

fuzz_target!(
    init: std::panic::set_hook(Box::new(note_panic)),
    |data: &[u8]| {
        let Ok(input) = Input::arbitrary_take_rest(Unstructured::new(data)) else { return };
        if let Ok(schema) = FFI_ArrowSchema::try_from(&DataType::Int32)
            && let Ok(format) = std::ffi::CString::new(input.format)
        {
            let mut schema = schema;
            // SAFETY: the first field of `struct ArrowSchema` is its format; it is set back.
            unsafe {
                let field = (&raw mut schema).cast::<*const std::ffi::c_char>();
                let before = std::mem::replace(&mut *field, format.as_ptr());
                let _ = import::data_type(&schema);
                *field = before;
            }
        }
        let mut memory = Memory { knows_sizes: input.knows_sizes, ..Memory::default() };
        let mut columns = Vec::new();
        for (name, shape, level, values) in &input.columns {
            let Some((array, kind)) = memory.column(*shape, level, values) else { return };
            let name = NAMES[*name as usize % NAMES.len()];
            columns.push((array, Field::new(name, kind, true)));
        }
        let (array, kind) = if input.is_batch {
            let (mut children, mut fields) = (Vec::new(), Vec::new());
            for (array, field) in columns {
                children.push(memory.keep(array));
                fields.push(field);
            }
            let Some(array) = memory.array(None, 0, &input.batch, children) else { return };
            (array, DataType::Struct(fields.into()))
        } else {
            let Some((array, field)) = columns.into_iter().next() else { return };
            (array, field.data_type().clone())
        };
        // SAFETY: both are `struct ArrowArray`; a released one is never looked into.
        let array = unsafe { std::mem::transmute::<CArray, FFI_ArrowArray>(array) };
        let mut sizes = import::Sizes::default();
        if input.knows_sizes {
            memory.buffers.iter().for_each(|buffer| sizes.add(buffer.as_ptr().addr(), buffer.len()));
        }
        // SAFETY: pointers are null or point to what the fields say, or their sizes are known.
        let array = unsafe { import::array(array, &kind, &sizes, input.copies_text) };
        let Ok(array) = array else { return };
        read(&array);
        let buffers = memory.buffers.len().max(1);
        for (place, byte) in input.changes {
            let buffer = memory.buffers.get_mut(place as usize % buffers);
            if let Some(buffer) = buffer.filter(|buffer| !buffer.is_empty()) {
                let at = place as usize / buffers % buffer.len();
                // SAFETY: `at` is in the buffer. Its bytes may be shared with the imported array.
                unsafe { ptr::write_volatile(buffer.as_mut_ptr().add(at), byte) };
            }
        }
        read(&array);
    }
);
