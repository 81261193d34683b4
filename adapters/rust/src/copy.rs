//! Copy elements along axes: contiguous runs at once, tiles where one side is read against its grain, byte order
//! changed on the way.
//!
//! Memory that is not in a cache is asked for a little before it is needed: short rows and tiles are too irregular for
//! the CPU to guess what comes next.

#![allow(unsafe_code)]

use crate::ahead;
use crate::place::{Axis, Place, Steps};

/// How an element is copied.
#[derive(Clone, Copy, Debug)]
pub struct Element {
    /// Bytes of an element.
    pub size: usize,
    /// Bytes that are reversed together; 1 when byte order stays.
    pub unit: usize,
}

/// Elements along each side of a tile.
const TILE: usize = 32;

/// The same where rows are so close together that a few pages hold a tile.
const WIDE_TILE: usize = 64;

/// Bytes from row to row up to which tiles are wide.
const CLOSE: usize = 1023;

/// Bytes from row to row up to which the next tile is asked for; with more, each row is on another page.
const NEAR: usize = 4095;

/// Rows that are asked for before they are written.
const ROWS_AHEAD: usize = 16;

/// Bytes of a long row.
const LONG_ROW: usize = 2048;

/// Copy the elements of a place.
///
/// # Safety
/// `from` and `to` are the first elements on the two sides, and every element of the place is within memory that may
/// be read or written, respectively; the two do not overlap.
pub unsafe fn copy(place: &Place, element: Element, from: *const u8, to: *mut u8) {
    if place.is_empty {
        return;
    }
    let Element { size, unit } = element;
    // SAFETY: the caller's promise is handed on.
    unsafe {
        match (size, unit) {
            (1, 1) => Walk(place, Plain::<1>).all(from, to),
            (2, 1) => Walk(place, Plain::<2>).all(from, to),
            (4, 1) => Walk(place, Plain::<4>).all(from, to),
            (8, 1) => Walk(place, Plain::<8>).all(from, to),
            (16, 1) => Walk(place, Plain::<16>).all(from, to),
            (_, 1) => Walk(place, AnyPlain(size)).all(from, to),
            (2, 2) => Walk(place, Swapped::<2>).all(from, to),
            (4, 4) => Walk(place, Swapped::<4>).all(from, to),
            (8, 8) => Walk(place, Swapped::<8>).all(from, to),
            _ => Walk(place, AnySwapped { size, unit }).all(from, to),
        }
    }
}

/// Moves elements; all methods have the safety conditions of [`copy`] for the elements that they name.
trait Mover: Copy {
    fn size(self) -> usize;
    unsafe fn one(self, from: *const u8, to: *mut u8);
    unsafe fn run(self, from: *const u8, to: *mut u8, count: usize);

    /// Runs of so many elements, which are evenly apart.
    #[inline]
    unsafe fn runs(self, rows: Rows, from: *const u8, to: *mut u8, count: usize) {
        // SAFETY: see the trait.
        unsafe { rows.each(from, to, count * self.size(), |from, to| self.run(from, to, count)) }
    }
}

/// How many runs there are, how far apart on either side, and where it goes on after them.
#[derive(Clone, Copy)]
struct Rows {
    count: usize,
    from: isize,
    to: isize,
    next: *const u8,
}

impl Rows {
    /// Copy runs of so many bytes.
    #[inline]
    unsafe fn each(self, mut from: *const u8, mut to: *mut u8, length: usize, copy: impl Fn(*const u8, *mut u8)) {
        // The CPU sees by itself where runs that follow one another, or long ones, go on.
        let is_guessed = self.count == 1 || length >= LONG_ROW || self.to == length.cast_signed();
        let ahead = ROWS_AHEAD.min(self.count);
        for number in 0..self.count {
            if !is_guessed {
                let (row, further) = if number + ahead < self.count {
                    (to.cast_const(), ahead)
                } else {
                    (self.next, number + ahead - self.count)
                };
                ahead::fetch(row.wrapping_offset(self.to.wrapping_mul(further.cast_signed())), length);
            }
            copy(from, to);
            (from, to) = (from.wrapping_offset(self.from), to.wrapping_offset(self.to));
        }
    }
}

#[derive(Clone, Copy)]
struct Plain<const SIZE: usize>;

impl<const SIZE: usize> Mover for Plain<SIZE> {
    fn size(self) -> usize {
        SIZE
    }

    #[inline]
    unsafe fn one(self, from: *const u8, to: *mut u8) {
        // SAFETY: arrays of bytes have no alignment.
        unsafe { to.cast::<[u8; SIZE]>().write(from.cast::<[u8; SIZE]>().read()) }
    }

    #[inline]
    unsafe fn run(self, from: *const u8, to: *mut u8, count: usize) {
        // SAFETY: see the trait.
        unsafe { copy_bytes(from, to, count * SIZE) }
    }

    #[inline]
    unsafe fn runs(self, rows: Rows, from: *const u8, to: *mut u8, count: usize) {
        // SAFETY: see the trait.
        unsafe { copy_rows(rows, from, to, count * SIZE) }
    }
}

#[derive(Clone, Copy)]
struct AnyPlain(usize);

impl Mover for AnyPlain {
    fn size(self) -> usize {
        self.0
    }

    #[inline]
    unsafe fn one(self, from: *const u8, to: *mut u8) {
        // SAFETY: see the trait.
        unsafe { from.copy_to_nonoverlapping(to, self.0) }
    }

    #[inline]
    unsafe fn run(self, from: *const u8, to: *mut u8, count: usize) {
        // SAFETY: see the trait.
        unsafe { copy_bytes(from, to, count * self.0) }
    }

    #[inline]
    unsafe fn runs(self, rows: Rows, from: *const u8, to: *mut u8, count: usize) {
        // SAFETY: see the trait.
        unsafe { copy_rows(rows, from, to, count * self.0) }
    }
}

#[derive(Clone, Copy)]
struct Swapped<const SIZE: usize>;

impl<const SIZE: usize> Mover for Swapped<SIZE> {
    fn size(self) -> usize {
        SIZE
    }

    #[inline]
    unsafe fn one(self, from: *const u8, to: *mut u8) {
        // SAFETY: arrays of bytes have no alignment.
        unsafe {
            let mut bytes = from.cast::<[u8; SIZE]>().read();
            bytes.reverse();
            to.cast::<[u8; SIZE]>().write(bytes);
        }
    }

    #[inline]
    unsafe fn run(self, from: *const u8, to: *mut u8, count: usize) {
        for number in 0..count {
            // SAFETY: see the trait.
            unsafe { self.one(from.add(number * SIZE), to.add(number * SIZE)) }
        }
    }
}

/// Several numbers an element, or very long ones.
#[derive(Clone, Copy)]
struct AnySwapped {
    size: usize,
    unit: usize,
}

impl Mover for AnySwapped {
    fn size(self) -> usize {
        self.size
    }

    #[inline]
    unsafe fn one(self, from: *const u8, to: *mut u8) {
        for begin in (0..self.size).step_by(self.unit) {
            for byte in 0..self.unit.min(self.size - begin) {
                // SAFETY: both are within the element.
                unsafe { to.add(begin + self.unit - 1 - byte).write(from.add(begin + byte).read()) }
            }
        }
    }

    #[inline]
    unsafe fn run(self, from: *const u8, to: *mut u8, count: usize) {
        for number in 0..count {
            // SAFETY: see the trait.
            unsafe { self.one(from.add(number * self.size), to.add(number * self.size)) }
        }
    }
}

/// Copy bytes; rows of small chunks have few, and a call of the library would cost more than they do.
#[inline]
unsafe fn copy_bytes(from: *const u8, to: *mut u8, length: usize) {
    // SAFETY: see `Mover`.
    unsafe { copy_rows(Rows { count: 1, from: 0, to: 0, next: to }, from, to, length) }
}

/// Copy the bytes of rows.
#[inline]
unsafe fn copy_rows(rows: Rows, from: *const u8, to: *mut u8, length: usize) {
    // SAFETY: see `Mover`.
    unsafe {
        match length {
            8..=16 => rows.each(from, to, length, |from, to| ends::<8>(from, to, length)),
            17..=32 => rows.each(from, to, length, |from, to| ends::<16>(from, to, length)),
            33..=64 => rows.each(from, to, length, |from, to| ends::<32>(from, to, length)),
            65..=128 => rows.each(from, to, length, |from, to| ends::<64>(from, to, length)),
            _ => rows.each(from, to, length, |from, to| from.copy_to_nonoverlapping(to, length)),
        }
    }
}

/// Copy the first and the last `HALF` bytes of at least so many and at most twice as many.
#[inline]
unsafe fn ends<const HALF: usize>(from: *const u8, to: *mut u8, length: usize) {
    // SAFETY: see `Mover`.
    unsafe {
        Plain::<HALF>.one(from, to);
        Plain::<HALF>.one(from.add(length - HALF), to.add(length - HALF));
    }
}

/// The loops over the axes of a place.
struct Walk<'a, M: Mover>(&'a Place, M);

impl<M: Mover> Walk<'_, M> {
    unsafe fn all(&self, from: *const u8, to: *mut u8) {
        // SAFETY: see `copy`.
        unsafe { self.axes(&self.0.axes, from, to, to) }
    }

    /// Copy along some axes; `next` is where it goes on after them.
    unsafe fn axes(&self, axes: &[Axis], from: *const u8, to: *mut u8, next: *const u8) {
        // SAFETY: each element that is named is one of the place.
        unsafe {
            match axes {
                [] => self.1.one(from, to),
                [only] => self.line(only, from, to),
                [outer, inner] if self.0.is_tiled => self.tiles(outer, inner, from, to),
                &[Axis { count, from: Steps::Even(from_step), to: Steps::Even(to_step), .. }, ref inner]
                    if self.is_run(inner) =>
                {
                    self.1.runs(Rows { count, from: from_step, to: to_step, next }, from, to, inner.count);
                }
                [outer, rest @ ..] => {
                    for number in 0..outer.count {
                        let here = to.offset(self.at(outer.to, number));
                        let next =
                            if number + 1 < outer.count { to.offset(self.at(outer.to, number + 1)) } else { next };
                        self.axes(rest, from.offset(self.at(outer.from, number)), here, next);
                    }
                }
            }
        }
    }

    #[inline]
    fn at(&self, steps: Steps, number: usize) -> isize {
        match steps {
            Steps::Even(step) => step * number.cast_signed(),
            Steps::Listed(begin) => self.0.offsets[begin + number],
        }
    }

    /// Whether the elements of an axis are neighbours on both sides.
    #[inline]
    fn is_run(&self, axis: &Axis) -> bool {
        let step = Steps::Even(self.1.size().cast_signed());
        axis.from == step && axis.to == step
    }

    #[inline]
    unsafe fn line(&self, axis: &Axis, from: *const u8, to: *mut u8) {
        // SAFETY: each element that is named is one of the place.
        unsafe {
            match (axis.from, axis.to) {
                _ if self.is_run(axis) => self.1.run(from, to, axis.count),
                (Steps::Even(from_step), Steps::Even(to_step)) => {
                    for number in 0..axis.count.cast_signed() {
                        self.1.one(from.offset(from_step * number), to.offset(to_step * number));
                    }
                }
                _ => {
                    for number in 0..axis.count {
                        self.1.one(from.offset(self.at(axis.from, number)), to.offset(self.at(axis.to, number)));
                    }
                }
            }
        }
    }

    /// The outer axis is fast in memory that is read, the inner one in memory that is written.
    unsafe fn tiles(&self, outer: &Axis, inner: &Axis, from: *const u8, to: *mut u8) {
        let within = |most| matches!(inner.from, Steps::Even(step) if step.unsigned_abs() <= most);
        let edge = if within(CLOSE) { WIDE_TILE } else { TILE };
        let asks = within(NEAR) && outer.count.max(inner.count) > edge;
        for first in (0..outer.count).step_by(edge) {
            for second in (0..inner.count).step_by(edge) {
                let part = Axis { count: edge.min(inner.count - second), ..*inner };
                let below = second + edge < inner.count;
                let (column, row) = if below { (first, second + edge) } else { (first + edge, 0) };
                for number in first..outer.count.min(first + edge) {
                    if asks {
                        let next = self.at(outer.from, column) + self.at(inner.from, row + number - first);
                        ahead::fetch(from.wrapping_offset(next), edge * self.1.size());
                    }
                    // SAFETY: each element that is named is one of the place.
                    unsafe {
                        let from = from.offset(self.at(outer.from, number) + self.at(inner.from, second));
                        let to = to.offset(self.at(outer.to, number) + self.at(inner.to, second));
                        self.line(&part, from, to);
                    }
                }
            }
        }
    }
}
