//! `vlen-utf8` and `vlen-bytes`: elements of variable length.
//!
//! A chunk is the number of elements, then each with its length before it, all counts little-endian 32-bit. Bounds
//! and UTF-8 are checked without the GIL; Python's objects are made, and read, in a step that holds it. Bytes after the
//! last element are ignored, as numcodecs does.
//!
//! Where `NumPy` keeps texts itself, no Python objects are made of them: they are laid out at the same distance from each
//! other, as `NumPy`'s type for bytes of one length has them, and it takes them from there.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString};

use crate::batch::{Inputs, Results, each};
use crate::buffers::Encoded;
use crate::chain::{Decoded, decode as decode_stages, encode as encode_stages};
use crate::errors::{Fault, Outcome};
use crate::program::Chunk;
use crate::worker::{Worker, zeroed};

/// Bytes of a count.
const COUNT: usize = 4;

/// What elements are.
#[derive(Clone, Copy)]
pub struct Format<'a> {
    /// Name of the codec, for errors.
    pub codec: &'a str,
    /// Whether elements are UTF-8.
    pub is_text: bool,
    /// Whether they are to be laid out at the same distance from each other.
    pub is_even: bool,
}

/// Texts are not laid out evenly when that takes so many times their bytes, and as many for each.
const MOST_ROOM: usize = 8;

/// A decoded chunk.
pub enum Items<'a> {
    /// Bytes, and where the elements are in them.
    Apart(Cow<'a, [u8]>, Vec<Range<usize>>),
    /// Elements of so many bytes, zeros behind the shorter ones.
    Even(usize, Vec<u8>),
}

/// Decode chunks of `count` elements each.
///
/// # Errors
/// The fault of the first chunk that has one.
pub fn decode<'a>(
    chunk: &Chunk,
    inputs: &Inputs<'a>,
    count: usize,
    format: Format<'_>,
    max_workers: Option<usize>,
) -> Outcome<Vec<Option<Items<'a>>>> {
    inputs.check()?;
    let results: Mutex<Vec<Option<Items<'a>>>> = Mutex::new((0..inputs.len()).map(|_| None).collect());
    each(inputs.len(), count.saturating_mul(16), max_workers, |number, worker| {
        let Some(input) = inputs.row(number)? else {
            return Ok(());
        };
        let bytes = match decode_stages(&chunk.stages, input, worker, None)? {
            Decoded::Input(bytes) => Cow::Borrowed(bytes),
            Decoded::Front(range) => Cow::Owned(worker.front.filled(range.end)[range].to_vec()),
            Decoded::Target => Cow::Borrowed(&[][..]),
        };
        let ranges = split(&bytes, count, format.is_text).map_err(|fault| fault.by(format.codec))?;
        let even = if format.is_even { evenly(&bytes, &ranges)? } else { None };
        let items = even.unwrap_or(Items::Apart(bytes, ranges));
        results.lock().unwrap_or_else(PoisonError::into_inner)[number] = Some(items);
        Ok(())
    })?;
    Ok(results.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// Find the elements of a chunk.
fn split(bytes: &[u8], count: usize, is_text: bool) -> Outcome<Vec<Range<usize>>> {
    let Some(found) = number(bytes, 0) else {
        return Err(Fault::corrupt("no room for a header").with(COUNT, bytes.len()));
    };
    if found != count {
        return Err(Fault::length("wrong number of elements", count, found));
    }
    // Each element has a count at least: so many elements are allocated for only when there are bytes for them.
    if bytes.len() / COUNT <= count {
        return Err(Fault::corrupt("the elements end early"));
    }
    let mut ranges = Vec::with_capacity(count);
    let mut begin = COUNT;
    for _ in 0..count {
        let length = number(bytes, begin).ok_or_else(|| Fault::corrupt("the elements end early"))?;
        let range = begin + COUNT..begin + COUNT + length;
        let element = bytes.get(range.clone()).ok_or_else(|| Fault::corrupt("the elements end early"))?;
        if is_text && std::str::from_utf8(element).is_err() {
            return Err(Fault::corrupt("an element is not UTF-8"));
        }
        begin = range.end;
        ranges.push(range);
    }
    Ok(ranges)
}

/// Lay elements out at the same distance from each other; None when zeros at their ends would be lost, or room be wasted.
fn evenly(bytes: &[u8], ranges: &[Range<usize>]) -> Outcome<Option<Items<'static>>> {
    let width = ranges.iter().map(Range::len).max().unwrap_or(0).max(1);
    let room = width.checked_mul(ranges.len()).filter(|room| *room / MOST_ROOM <= bytes.len());
    let Some(room) = room else {
        return Ok(None);
    };
    let mut made = zeroed(room)?;
    for (range, place) in ranges.iter().zip(made.chunks_exact_mut(width)) {
        let element = &bytes[range.clone()];
        if element.last() == Some(&0) {
            return Ok(None);
        }
        place[..element.len()].copy_from_slice(element);
    }
    Ok(Some(Items::Even(width, made)))
}

fn number(bytes: &[u8], begin: usize) -> Option<usize> {
    let number = bytes.get(begin..)?.first_chunk()?;
    usize::try_from(u32::from_le_bytes(*number)).ok()
}

/// Make Python's objects: a list for each chunk, or the bytes of all elements and how many each has.
///
/// # Errors
/// When there is no memory for them.
pub fn objects<'py>(py: Python<'py>, chunks: Vec<Option<Items<'_>>>, is_text: bool) -> PyResult<Bound<'py, PyList>> {
    let object = |items: Items<'_>| match items {
        Items::Apart(bytes, ranges) => list(py, &bytes, &ranges, is_text).map(Bound::into_any),
        Items::Even(width, bytes) => (width, Encoded::new(bytes)).into_bound_py_any(py),
    };
    let made: PyResult<Vec<_>> = chunks.into_iter().map(|items| items.map(object).transpose()).collect();
    PyList::new(py, made?)
}

fn list<'py>(py: Python<'py>, bytes: &[u8], ranges: &[Range<usize>], is_text: bool) -> PyResult<Bound<'py, PyList>> {
    let elements = ranges.iter().map(|range| &bytes[range.clone()]);
    if is_text {
        // They were checked; `from_utf8` is the safe way to say so.
        PyList::new(py, elements.map(|element| PyString::new(py, std::str::from_utf8(element).unwrap_or(""))))
    } else {
        PyList::new(py, elements.map(|element| PyBytes::new(py, element)))
    }
}

/// Take the bytes of Python's objects. None and 0 stand for elements that were never set, as numcodecs has it.
///
/// # Errors
/// When an element is something else, or text that UTF-8 cannot hold.
pub fn pack(chunks: &[Option<Bound<'_, PyList>>], is_text: bool) -> PyResult<Vec<Option<Vec<u8>>>> {
    chunks.iter().map(|chunk| chunk.as_ref().map(|list| pack_one(list, is_text)).transpose()).collect()
}

fn pack_one(list: &Bound<'_, PyList>, is_text: bool) -> PyResult<Vec<u8>> {
    let mut packed = Vec::with_capacity(COUNT * (list.len() + 1));
    push(&mut packed, list.len(), &[])?;
    for item in list {
        if let (true, Ok(text)) = (is_text, item.cast::<PyString>()) {
            let bytes = text.to_str()?.as_bytes();
            push(&mut packed, bytes.len(), bytes)?;
        } else if let (false, Ok(bytes)) = (is_text, item.cast::<PyBytes>()) {
            push(&mut packed, bytes.as_bytes().len(), bytes.as_bytes())?;
        } else if item.is_none() || item.eq(0)? {
            push(&mut packed, 0, &[])?;
        } else {
            let expected = if is_text { "str" } else { "bytes" };
            return Err(PyTypeError::new_err(format!("expected {expected}, got {}", item.get_type().name()?)));
        }
    }
    Ok(packed)
}

fn push(packed: &mut Vec<u8>, count: usize, bytes: &[u8]) -> PyResult<()> {
    packed.extend_from_slice(&u32::try_from(count)?.to_le_bytes());
    packed.extend_from_slice(bytes);
    Ok(())
}

/// Encode packed chunks.
///
/// # Errors
/// The fault of the first chunk that has one.
pub fn encode(chunk: &Chunk, packed: &[Option<Vec<u8>>], max_workers: Option<usize>) -> Outcome<Vec<Option<Vec<u8>>>> {
    let results = Results::new(packed.len());
    let bytes = packed.iter().flatten().map(Vec::len).max().unwrap_or(0);
    each(packed.len(), bytes, max_workers, |number, worker| {
        if let Some(data) = &packed[number] {
            let Worker { front, back, contexts, .. } = worker;
            results.set(number, encode_stages(&chunk.stages, data, front, back, contexts)?);
        }
        Ok(())
    })?;
    Ok(results.into_inner())
}

#[cfg(test)]
mod tests {
    use super::{Items, evenly, split};
    use crate::errors::Kind;

    #[test]
    fn texts_are_laid_out_evenly_unless_that_loses_zeros_or_wastes_room() {
        let even = |bytes: &[u8], ranges: &[std::ops::Range<usize>]| match evenly(bytes, ranges) {
            Ok(Some(Items::Even(width, made))) => Some((width, made)),
            _ => None,
        };
        assert_eq!(even(b"abc", &[0..1, 1..3, 3..3]), Some((2, b"a\0bc\0\0".to_vec())));
        assert_eq!(even(b"____", &[0..0, 0..0]), Some((1, vec![0; 2])));
        assert_eq!(even(b"a\0b", &[0..3, 3..3]), Some((3, b"a\0b\0\0\0".to_vec())));
        assert_eq!(even(b"ab\0", &[0..1, 1..3]), None);
        let long = vec![b'x'; 100];
        assert_eq!(even(&long, &vec![0..100; 9]), None);
    }

    #[test]
    fn counts_and_lengths_are_checked() {
        let two = [2, 0, 0, 0, 1, 0, 0, 0, b'a', 0, 0, 0, 0];
        assert_eq!(split(&two, 2, true).map_err(|fault| fault.kind), Ok(vec![8..9, 13..13]));
        assert_eq!(split(&two, 3, true).map_err(|fault| fault.kind), Err(Kind::Length));
        assert_eq!(split(&two[..11], 2, true).map_err(|fault| fault.kind), Err(Kind::Corrupt));
        assert_eq!(split(&[255; 12], u32::MAX as usize, false).map_err(|fault| fault.kind), Err(Kind::Corrupt));
    }
}
