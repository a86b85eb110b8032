//! Arrow arrays from outside, through Arrow's C data interface.
//!
//! The producer of an array may have made it wrongly, and arrow-rs reads arrays without looking at
//! their bounds. So everything that can be known is checked here, before anything is read: lengths,
//! the numbers of buffers and children, that offsets ascend and end in the child, and that views lie
//! in their buffers. The interface does not say how large the other buffers are; where the producer
//! says it in another way, they are [`Sizes`].
//!
//! The producer, or another thread, may also change an array while it is read. So what decides which
//! memory is read is copied, and then checked: offsets, views, and the bitmaps of nulls. So are the
//! bytes of strings in record batches, which are word tables and the like. Other buffers are taken over
//! without a copy. If numbers or the bytes of texts change meanwhile, the results are any, but no memory
//! is read that is not the array's: numbers are never trusted, and a text is copied before its UTF-8 is
//! checked (see [`TextCopy`](wordpiece_core::text::utf8::TextCopy)).
//!
//! Strings are taken for bytes: their UTF-8 is not checked here, but repaired where they are read.

use std::collections::HashMap;
use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::Arc;

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema};
use arrow_array::types::{
    ArrowPrimitiveType, ByteArrayType, Float64Type, Int32Type, Int64Type, UInt16Type, UInt32Type,
};
use arrow_array::types::{BinaryType, BinaryViewType, LargeBinaryType};
use arrow_array::{
    Array, ArrayRef, GenericByteArray, GenericByteViewArray, ListArray, NullArray, OffsetSizeTrait,
    PrimitiveArray, StructArray,
};
use arrow_buffer::{
    ArrowNativeType, BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer,
};
use arrow_schema::{DataType, Field, Fields};

use wordpiece_core::base::caught;
use wordpiece_core::base::memory;
use wordpiece_core::{Error, Result};

/// The `struct ArrowArray` of the interface, whose fields arrow-rs does not make public.
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

const _: () = assert!(size_of::<CArray>() == size_of::<FFI_ArrowArray>());

/// The `struct ArrowSchema` of the interface, with names for the fields that are read.
#[repr(C)]
struct CSchema {
    format: *const u8,
    others: [usize; 6],
    release: *const c_void,
    private_data: *const c_void,
}

const _: () = assert!(size_of::<CSchema>() == size_of::<FFI_ArrowSchema>());

/// The most rows, and the most bytes, that are accepted: more than any memory has.
const MOST: i64 = 1 << 48;

/// The sizes of buffers in bytes, as far as they are known, by their addresses.
#[derive(Default)]
pub struct Sizes(HashMap<usize, usize>);

impl Sizes {
    /// Adds the size of a buffer. Of several sizes at one address, all of which there are, the largest
    /// counts.
    pub fn add(&mut self, address: usize, size: usize) {
        let known = self.0.entry(address).or_default();
        *known = size.max(*known);
    }
}

/// The type of an array.
///
/// # Errors
///
/// Returns [`Error::Data`] if the structure was released, or is of no type that arrow-rs knows.
///
/// # Safety
///
/// `schema` must be a `struct ArrowSchema` as a producer has made it.
pub unsafe fn data_type(schema: &FFI_ArrowSchema) -> Result<DataType> {
    // SAFETY: both are `struct ArrowSchema`, as C lays it out.
    let fields = unsafe { &*std::ptr::from_ref(schema).cast::<CSchema>() };
    if fields.release.is_null() || fields.format.is_null() {
        return Err(Error::data("an Arrow array whose type is gone: it was taken before"));
    }
    // For a broken schema arrow-rs returns an error, or panics.
    caught(|| DataType::try_from(schema).map_err(Error::data)).map_err(|error| match error {
        Error::Panic(_) => Error::data("an Arrow array whose type cannot be read"),
        error => error.at("an Arrow array"),
    })
}

/// Takes an array over, and checks it. Strings become bytes, and a struct keeps only the columns whose
/// types the kernel reads.
///
/// # Arguments
///
/// * `array` - The array.
/// * `data_type` - Its type.
/// * `sizes` - The sizes of its buffers that are known.
/// * `copies_text` - Whether the bytes of strings are copied also if the array is no struct.
///
/// # Errors
///
/// Returns [`Error::Data`] if the array breaks the rules of Arrow, or is of a type that the kernel does
/// not read.
///
/// # Safety
///
/// `array` must be a `struct ArrowArray` as a producer has made it: its pointers are null or point to
/// what the fields say, and its offsets and views are initialized memory. Their values may be wrong, and
/// may change at any time.
pub unsafe fn array(
    array: FFI_ArrowArray,
    data_type: &DataType,
    sizes: &Sizes,
    copies_text: bool,
) -> Result<ArrayRef> {
    let owner = Arc::new(array);
    // SAFETY: both are `struct ArrowArray`, as C lays it out, and `owner` outlives the reference.
    let fields = unsafe { &*Arc::as_ptr(&owner).cast::<CArray>() };
    let source = Source { array: fields, owner: &owner, sizes, copies_text };
    // SAFETY: as the caller says.
    unsafe { source.read(data_type) }.map_err(|error| match data_type {
        DataType::Struct(_) => error.at("a record batch"),
        _ => error.at(format!("an array of {data_type}")),
    })
}

/// An array, or a child of one, that is being read, and the array that holds its memory.
#[derive(Clone, Copy)]
struct Source<'a> {
    array: &'a CArray,
    owner: &'a Arc<FFI_ArrowArray>,
    sizes: &'a Sizes,
    /// Whether the bytes of strings are copied.
    copies_text: bool,
}

fn broken<T>(what: impl std::fmt::Display) -> Result<T> {
    Err(Error::data(format!("breaks Arrow's rules: {what}")))
}

impl Source<'_> {
    /// # Safety
    /// As for `array`.
    unsafe fn read(self, data_type: &DataType) -> Result<ArrayRef> {
        self.check_lengths()?;
        // SAFETY: each as the caller says.
        unsafe {
            match data_type {
                DataType::Null => Ok(Arc::new(NullArray::new(self.len()))),
                DataType::Utf8 | DataType::Binary => self.bytes::<BinaryType>(),
                DataType::LargeUtf8 | DataType::LargeBinary => self.bytes::<LargeBinaryType>(),
                DataType::Utf8View | DataType::BinaryView => self.views(),
                DataType::Int32 => self.numbers::<Int32Type>(),
                DataType::Int64 => self.numbers::<Int64Type>(),
                DataType::UInt16 => self.numbers::<UInt16Type>(),
                DataType::UInt32 => self.numbers::<UInt32Type>(),
                DataType::Float64 => self.numbers::<Float64Type>(),
                DataType::List(field) => self.lists(field),
                DataType::Struct(fields) => self.columns(fields),
                _ => Err(Error::data("not of a type that the kernel reads")),
            }
        }
    }

    /// Checks the numbers of rows.
    fn check_lengths(self) -> Result<()> {
        let CArray { length, offset, release, dictionary, .. } = *self.array;
        if release.is_null() {
            return broken("it was released, or taken before");
        }
        if !(0..=MOST).contains(&length) || !(0..=MOST).contains(&offset) {
            return broken(format!("{length} rows from row {offset} on"));
        }
        if !dictionary.is_null() {
            return broken("a dictionary that its type does not have");
        }
        Ok(())
    }

    fn len(self) -> usize {
        self.array.length as usize
    }

    fn offset(self) -> usize {
        self.array.offset as usize
    }

    /// Checks the numbers of buffers and children. `more`: there may be further buffers.
    fn check_parts(self, buffers: i64, more: bool, children: i64) -> Result<()> {
        let CArray { n_buffers, n_children, .. } = *self.array;
        let enough = if more { n_buffers >= buffers } else { n_buffers == buffers };
        if !enough || n_children != children {
            return broken(format!("{n_buffers} buffers and {n_children} children"));
        }
        if self.array.buffers.is_null() || (children > 0 && self.array.children.is_null()) {
            return broken("no list of buffers, or of children");
        }
        Ok(())
    }

    /// Buffer `index`, of `count` values. An empty one may be null.
    ///
    /// # Safety
    /// As for `array`; `check_parts` has seen that there are so many buffers, and the buffer has
    /// `count` values if it is not null.
    unsafe fn buffer<T: ArrowNativeType>(self, index: usize, count: usize) -> Result<Buffer> {
        // SAFETY: there are so many buffers.
        let data = unsafe { *self.array.buffers.add(index) }.cast_mut();
        let Some(size) =
            count.checked_mul(size_of::<T>()).filter(|&size| size as u64 <= MOST as u64)
        else {
            return broken(format!("{count} values in buffer {index}"));
        };
        if let Some(&known) = self.sizes.0.get(&data.addr())
            && known < size
        {
            return broken(format!("buffer {index} has {known} bytes, not {size}"));
        }
        match NonNull::new(data) {
            _ if size == 0 => Ok(Buffer::default()),
            None => broken(format!("buffer {index} is missing")),
            Some(data) => {
                let owner = self.owner.clone();
                // SAFETY: as the caller says; the owner keeps the memory.
                let buffer = unsafe { Buffer::from_custom_allocation(data, size, owner) };
                let aligned = data.as_ptr().addr().is_multiple_of(align_of::<T>());
                // Arrow does not demand alignment, but a slice of numbers must be aligned: so the
                // values are copied if they are not.
                Ok(if aligned { buffer } else { copy_of(&buffer) })
            }
        }
    }

    /// The values of buffer `index` for the rows.
    ///
    /// # Safety
    /// As for `buffer`. `more`: how many values the buffer has more than rows.
    unsafe fn rows<T: ArrowNativeType>(self, index: usize, more: usize) -> Result<ScalarBuffer<T>> {
        if self.len() + more == 0 {
            return Ok(ScalarBuffer::default()); // the buffer may be missing, whatever the offset
        }
        let count = self.offset() + self.len() + more;
        // SAFETY: as the caller says.
        let buffer = unsafe { self.buffer::<T>(index, count) }?;
        Ok(ScalarBuffer::new(buffer, self.offset(), self.len() + more))
    }

    /// Which rows are not null.
    ///
    /// # Safety
    /// As for `array`; `check_parts` has seen a buffer at least.
    unsafe fn nulls(self) -> Result<Option<NullBuffer>> {
        let null_count = self.array.null_count;
        if null_count == 0 || self.len() == 0 {
            return Ok(None); // then the bitmap means nothing, by the rules of Arrow
        }
        if !(-1..=self.array.length).contains(&null_count) {
            return broken(format!("{null_count} nulls in {} rows", self.len()));
        }
        // SAFETY: there is a buffer at least.
        if unsafe { *self.array.buffers }.is_null() {
            return if null_count < 0 { Ok(None) } else { broken("nulls without a bitmap") };
        }
        let bytes = (self.offset() + self.len()).div_ceil(8);
        // SAFETY: a bitmap has a bit for each row, and each before `offset`.
        let bitmap = copy_of(&unsafe { self.buffer::<u8>(0, bytes) }?);
        let nulls = NullBuffer::new(BooleanBuffer::new(bitmap, self.offset(), self.len()));
        Ok((nulls.null_count() > 0).then_some(nulls))
    }

    /// The offsets of the rows, which ascend from 0 or more.
    ///
    /// # Safety
    /// As for `array`; `check_parts` has seen two buffers at least.
    unsafe fn offsets<O: OffsetSizeTrait>(self) -> Result<OffsetBuffer<O>> {
        if self.len() == 0 {
            return Ok(OffsetBuffer::new_empty()); // the buffer may be missing, or hold anything
        }
        // SAFETY: there is one offset more than rows.
        let offsets = copy_of(unsafe { self.rows::<O>(1, 1) }?.inner());
        let offsets = ScalarBuffer::<O>::new(offsets, 0, self.len() + 1);
        if offsets[0] < O::zero() {
            return broken(format!("an offset of {:?}", offsets[0]));
        }
        // The loop does not stop early, so that the compiler can vectorize it.
        let wrong = offsets.windows(2).filter(|two| two[0] > two[1]).count();
        if wrong > 0 {
            return broken(format!("offsets decrease {wrong} times"));
        }
        // SAFETY: they ascend, from 0 or more.
        Ok(unsafe { OffsetBuffer::new_unchecked(offsets) })
    }

    /// # Safety
    /// As for `array`.
    unsafe fn bytes<T: ByteArrayType>(self) -> Result<ArrayRef> {
        self.check_parts(3, false, 0)?;
        // SAFETY: there are three buffers, and the last has what the offsets say.
        unsafe {
            let offsets = self.offsets::<T::Offset>()?;
            let end = offsets[offsets.len() - 1].as_usize();
            let (data, nulls) = (self.buffer::<u8>(2, end)?, self.nulls()?);
            let data = if self.copies_text { copy_of(&data) } else { data };
            let array = GenericByteArray::<T>::try_new(offsets, data, nulls);
            Ok(Arc::new(array.map_err(Error::data)?))
        }
    }

    /// # Safety
    /// As for `array`.
    unsafe fn views(self) -> Result<ArrayRef> {
        self.check_parts(3, true, 0)?;
        let others = self.array.n_buffers as usize - 3;
        // SAFETY: after the views come the other buffers, and their lengths.
        unsafe {
            let views = copy_of(self.rows::<u128>(1, 0)?.inner());
            let views = ScalarBuffer::<u128>::new(views, 0, self.len());
            let nulls = self.nulls()?;
            let lengths = copy_of(&self.buffer::<i64>(2 + others, others)?);
            let lengths = ScalarBuffer::<i64>::new(lengths, 0, others);
            let mut data = Vec::with_capacity(others);
            for (index, &length) in (2..).zip(&lengths) {
                if !(0..=MOST).contains(&length) {
                    return broken(format!("{length} bytes in buffer {index}"));
                }
                let bytes = self.buffer::<u8>(index, length as usize)?;
                data.push(if self.copies_text { copy_of(&bytes) } else { bytes });
            }
            check_views(&views, &data, nulls.as_ref())?;
            let data = data.into();
            Ok(Arc::new(GenericByteViewArray::<BinaryViewType>::new_unchecked(views, data, nulls)))
        }
    }

    /// # Safety
    /// As for `array`.
    unsafe fn numbers<T: ArrowPrimitiveType>(self) -> Result<ArrayRef> {
        self.check_parts(2, false, 0)?;
        // SAFETY: there are two buffers, the second with a value for each row.
        let (values, nulls) = unsafe { (self.rows::<T::Native>(1, 0)?, self.nulls()?) };
        Ok(Arc::new(PrimitiveArray::<T>::try_new(values, nulls).map_err(Error::data)?))
    }

    /// # Safety
    /// As for `array`; `check_parts` has seen so many children.
    unsafe fn child(&self, index: usize) -> Result<Source<'_>> {
        // SAFETY: there are so many pointers, and each is null or one to a `struct ArrowArray`.
        match unsafe { (*self.array.children.add(index)).as_ref() } {
            Some(array) => Ok(Source { array, ..*self }),
            None => broken(format!("child {index} is missing")),
        }
    }

    /// # Safety
    /// As for `array`.
    unsafe fn lists(self, field: &Arc<Field>) -> Result<ArrayRef> {
        self.check_parts(2, false, 1)?;
        // SAFETY: there are two buffers and a child.
        unsafe {
            let values = self.child(0)?.read(field.data_type())?;
            let field = Field::new(field.name(), values.data_type().clone(), field.is_nullable());
            let (offsets, nulls) = (self.offsets::<i32>()?, self.nulls()?);
            let lists = ListArray::try_new(Arc::new(field), offsets, values, nulls);
            Ok(Arc::new(lists.map_err(Error::data)?))
        }
    }

    /// # Safety
    /// As for `array`.
    unsafe fn columns(self, fields: &Fields) -> Result<ArrayRef> {
        self.check_parts(1, false, fields.len() as i64)?;
        let (mut kept, mut columns) = (Vec::new(), Vec::new());
        for (index, field) in fields.iter().enumerate().filter(|(_, field)| is_read(field)) {
            // SAFETY: there are so many children.
            let column = unsafe {
                Source { copies_text: true, ..self.child(index)? }.read(field.data_type())
            };
            let column = column.map_err(|error| error.at(format!("column {:?}", field.name())))?;
            if column.len() < self.offset() + self.len() {
                return broken(format!("column {:?} has too few rows", field.name()));
            }
            columns.push(column.slice(self.offset(), self.len()));
            kept.push(Field::new(
                field.name(),
                columns[columns.len() - 1].data_type().clone(),
                true,
            ));
        }
        // SAFETY: there is a buffer, the bitmap.
        let nulls = unsafe { self.nulls()? };
        let array = StructArray::try_new_with_length(kept.into(), columns, nulls, self.len());
        Ok(Arc::new(array.map_err(Error::data)?))
    }
}

/// A copy of a buffer, which nobody else can change.
fn copy_of(buffer: &Buffer) -> Buffer {
    // The words of 128 bits are aligned for all numbers.
    let mut words = memory::filled(0u128, buffer.len().div_ceil(size_of::<u128>()));
    // SAFETY: the vector has as many bytes and more, and all of them are numbers.
    let bytes =
        unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast::<u8>(), buffer.len()) };
    bytes.copy_from_slice(buffer);
    Buffer::from_vec(words).slice_with_length(0, buffer.len())
}

/// Whether the kernel reads columns of this type. Others are left out.
fn is_read(field: &Field) -> bool {
    let is_flat = |kind: &DataType| {
        use DataType::{
            Binary, BinaryView, Float64, Int32, Int64, LargeBinary, LargeUtf8, Null, UInt16,
            UInt32, Utf8, Utf8View,
        };
        let text = matches!(kind, Utf8 | LargeUtf8 | Utf8View | Binary | LargeBinary | BinaryView);
        text || matches!(kind, Null | Int32 | Int64 | UInt16 | UInt32 | Float64)
    };
    match field.data_type() {
        DataType::List(values) => is_flat(values.data_type()),
        kind => is_flat(kind),
    }
}

/// Checks that the views of rows that are not null lie in their buffers.
fn check_views(views: &[u128], data: &[Buffer], nulls: Option<&NullBuffer>) -> Result<()> {
    /// The most bytes that a view holds itself.
    const INLINE: i32 = 12;
    for (row, &view) in views.iter().enumerate() {
        let [length, _, buffer, offset] =
            [0, 32, 64, 96].map(|shift| (view >> shift) as u32 as i32);
        let fits = || {
            let buffer = data.get(usize::try_from(buffer).ok()?)?;
            let start = usize::try_from(offset).ok()?;
            (start + usize::try_from(length).ok()? <= buffer.len()).then_some(())
        };
        if !(0..=INLINE).contains(&length)
            && fits().is_none()
            && nulls.is_none_or(|nulls| nulls.is_valid(row))
        {
            return broken(format!("row {row} is not in its buffer"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use arrow_array::cast::AsArray;
    use arrow_array::ffi::to_ffi;
    use arrow_array::{
        BinaryViewArray, Float64Array, Int8Array, Int32Array, LargeStringArray, StringArray,
        StringViewArray, UInt32Array,
    };

    use super::*;
    use crate::arrow::each_row;
    use wordpiece_testing::Random;

    /// Hands an array through the C data interface, its structure changed on the way.
    fn through(made: &dyn Array, change: impl FnOnce(&mut CArray)) -> Result<ArrayRef> {
        let (mut array, schema) = to_ffi(&made.to_data()).unwrap();
        // SAFETY: both are `struct ArrowArray`.
        change(unsafe { &mut *(&raw mut array).cast::<CArray>() });
        // SAFETY: pointers are as arrow-rs made them, or null.
        unsafe { super::array(array, &data_type(&schema)?, &Sizes::default(), false) }
    }

    fn source<'a>(
        array: &'a CArray,
        owner: &'a Arc<FFI_ArrowArray>,
        sizes: &'a Sizes,
    ) -> Source<'a> {
        Source { array, owner, sizes, copies_text: false }
    }

    fn rows(array: &ArrayRef) -> Vec<Option<Vec<u8>>> {
        let mut rows = Vec::new();
        each_row(array, |row| rows.push(row.map(<[u8]>::to_vec))).unwrap();
        rows
    }

    fn random_texts(random: &mut Random) -> Vec<Option<String>> {
        let text = |random: &mut Random| random.word(&['a', 'é', '中'], 12);
        (0..random.below(20)).map(|_| (random.below(4) > 0).then(|| text(random))).collect()
    }

    #[test]
    fn texts_of_every_type_and_slices_of_them_arrive_as_they_are() {
        let mut random = Random::new(20);
        for _ in 0..300 {
            let texts = random_texts(&mut random);
            let from = random.below(texts.len() + 1);
            let length = random.below(texts.len() - from + 1);
            let arrays: [ArrayRef; 3] = [
                Arc::new(StringArray::from(texts.clone())),
                Arc::new(LargeStringArray::from(texts.clone())),
                Arc::new(StringViewArray::from_iter(texts.clone())),
            ];
            for array in arrays {
                let found = through(&array.slice(from, length), |_| {}).unwrap();
                let expected: Vec<_> = texts[from..from + length]
                    .iter()
                    .map(|text| text.clone().map(String::into_bytes))
                    .collect();
                assert_eq!(rows(&found), expected);
            }
        }
    }

    #[test]
    fn numbers_lists_and_batches_arrive_as_they_are() {
        let numbers = Int32Array::from(vec![Some(1), None, Some(3)]);
        let found = through(&numbers.slice(1, 2), |_| {}).unwrap();
        assert_eq!(found.as_primitive::<Int32Type>(), &numbers.slice(1, 2));
        let lists = ListArray::from_iter_primitive::<UInt32Type, _, _>([
            Some(vec![Some(1), Some(2)]),
            None,
            Some(vec![]),
            Some(vec![None]),
        ]);
        let found = through(&lists.slice(1, 3), |_| {}).unwrap();
        assert_eq!(found.as_list::<i32>(), &lists.slice(1, 3));
        let columns: Vec<(_, ArrayRef)> = vec![
            ("score", Arc::new(Float64Array::from(vec![0.5, 1.5, 2.5, 3.5]))),
            ("other", Arc::new(Int8Array::from(vec![1, 2, 3, 4]))),
            ("lists", Arc::new(lists.clone())),
        ];
        let batch = StructArray::try_from(columns).unwrap().slice(1, 2);
        let found = through(&batch, |_| {}).unwrap();
        let found = found.as_struct();
        assert_eq!(found.column_names(), ["score", "lists"]); // the kernel reads no int8
        assert_eq!(found.column(0).as_primitive::<Float64Type>().values(), &[1.5, 2.5]);
        assert_eq!(found.column(1).as_list::<i32>(), &lists.slice(1, 2));
        assert_eq!(through(&NullArray::new(3), |_| {}).unwrap().len(), 3);
    }

    #[test]
    fn structures_that_cannot_be_are_refused() {
        let texts = StringArray::from(vec!["a", "bc"]);
        let changes: [fn(&mut CArray); 11] = [
            |array| array.length = -1,
            |array| array.length = i64::MAX,
            |array| array.offset = -1,
            |array| array.offset = i64::MAX,
            |array| array.n_buffers = 2,
            |array| array.n_buffers = -1,
            |array| array.n_children = 1,
            |array| array.buffers = std::ptr::null(),
            |array| array.null_count = 1,
            |array| array.null_count = 3,
            |array| array.dictionary = &raw const *array,
        ];
        for (number, change) in changes.into_iter().enumerate() {
            assert!(through(&texts, change).is_err(), "{number}");
        }
        let lists = ListArray::from_iter_primitive::<UInt32Type, _, _>([Some(vec![Some(1)])]);
        assert!(through(&lists, |array| array.children = std::ptr::null()).is_err());
        assert!(through(&lists, |array| array.n_children = 0).is_err());
        let released = FFI_ArrowArray::empty();
        // SAFETY: an empty structure is one that was released.
        let error = unsafe { super::array(released, &DataType::Binary, &Sizes::default(), false) }
            .unwrap_err();
        assert!(error.to_string().ends_with("it was released, or taken before"), "{error}");
        // SAFETY: the same.
        assert!(unsafe { data_type(&FFI_ArrowSchema::empty()) }.is_err());
        assert!(through(&Int8Array::from(vec![1]), |_| {}).is_err());
    }

    #[test]
    fn offsets_must_ascend_and_end_in_the_child() {
        let offsets = |values: &[i32]| {
            let values: ScalarBuffer<i32> = values.to_vec().into();
            // SAFETY: none; the array is only handed on, never read.
            unsafe { OffsetBuffer::new_unchecked(values) }
        };
        let data = Buffer::from(b"abcd");
        let child: ArrayRef = Arc::new(UInt32Array::from(vec![1, 2, 3, 4]));
        let field = Arc::new(Field::new("item", DataType::UInt32, true));
        for (ends, bytes_fit, list_fits) in [
            (&[0, 2, 4][..], true, true),
            (&[1, 1, 1], true, true),
            (&[0, 3, 2], false, false),
            (&[0, -1, 2], false, false),
            (&[-1, 0, 2], false, false),
            (&[0, 4, -4], false, false),
            (&[0, 2, 5], true, false), // the interface does not say how many bytes there are
        ] {
            // SAFETY: none; as above.
            let bytes = unsafe { StringArray::new_unchecked(offsets(ends), data.clone(), None) };
            assert_eq!(through(&bytes, |_| {}).is_ok(), bytes_fit, "{ends:?}");
            let lists = DataType::List(field.clone());
            let (mut array, _) = to_ffi(&bytes.to_data()).unwrap();
            let (child, _) = to_ffi(&child.to_data()).unwrap();
            let children = [(&raw const child).cast::<CArray>()];
            // SAFETY: the pointers outlive the call, and buffers are those of the offsets.
            let read = unsafe {
                let fields = &mut *(&raw mut array).cast::<CArray>();
                (fields.n_buffers, fields.n_children) = (2, 1);
                fields.children = children.as_ptr();
                let read = source(fields, &Arc::new(FFI_ArrowArray::empty()), &Sizes::default())
                    .read(&lists)
                    .map(|lists| lists.len());
                // The fields are set back before the producer releases the array.
                (fields.n_buffers, fields.n_children) = (3, 0);
                fields.children = std::ptr::null();
                read
            };
            assert_eq!(read.is_ok(), list_fits, "{ends:?}");
        }
    }

    #[test]
    fn views_must_lie_in_their_buffers() {
        let view = |length: i32, buffer: i32, offset: i32| {
            let [length, buffer, offset] = [length, buffer, offset].map(|n| n as u32 as u128);
            length | buffer << 64 | offset << 96
        };
        let data = Buffer::from(vec![b'x'; 20]);
        for (bad, fits) in [
            (view(20, 0, 0), true),
            (view(13, 0, 7), true),
            (view(3, 9, -9), true), // a short view: what follows its length are the bytes themselves
            (view(-1, 0, 0), false),
            (view(i32::MIN, 0, 0), false),
            (view(21, 0, 0), false),
            (view(20, 0, 1), false),
            (view(20, 1, 0), false),
            (view(20, -1, 0), false),
            (view(20, 0, -1), false),
            (view(i32::MAX, 0, i32::MAX), false),
        ] {
            let views: ScalarBuffer<u128> = vec![view(0, 0, 0), bad].into();
            for valid in [true, false] {
                let nulls = NullBuffer::from(vec![true, valid]);
                // SAFETY: none; the array is only handed on.
                let array = unsafe {
                    BinaryViewArray::new_unchecked(
                        views.clone(),
                        [data.clone()].into(),
                        Some(nulls),
                    )
                };
                // The view of a null is not checked.
                let found = through(&array, |_| {});
                assert_eq!(found.is_ok(), fits || !valid, "{bad:x}");
                let _ = found.map(|found| rows(&found));
            }
        }
    }

    #[test]
    fn what_is_not_aligned_is_copied() {
        let bytes = Buffer::from_slice_ref([&[0u8][..], &7i64.to_le_bytes()].concat());
        let numbers = PrimitiveArray::<Int64Type>::from(vec![0]);
        let (mut array, schema) = to_ffi(&numbers.to_data()).unwrap();
        let pointers = [std::ptr::null(), bytes.slice(1).as_ptr()];
        // SAFETY: both are `struct ArrowArray`; the pointers outlive the call.
        let fields = unsafe { &mut *(&raw mut array).cast::<CArray>() };
        let before = std::mem::replace(&mut fields.buffers, pointers.as_ptr());
        let (owner, sizes) = (Arc::new(FFI_ArrowArray::empty()), Sizes::default());
        let source = source(fields, &owner, &sizes);
        // SAFETY: there are two buffers, of which one may be null.
        let found = unsafe { source.read(&data_type(&schema).unwrap()) }.unwrap();
        assert_eq!(found.as_primitive::<Int64Type>().values(), &[7]);
        fields.buffers = before;
    }
}
