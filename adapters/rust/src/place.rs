//! Where an entry's elements are: axes along which they are copied.
//!
//! An entry becomes one [`Axis`] per out axis: how many elements, and how many bytes apart on either side. Index
//! lists become lists of byte offsets, and decoded axes that land on one out axis (points) are added up. Every index
//! is checked here, so that what [`crate::copy`] is given is within both arrays.

use crate::cut::Clip;
use std::ops::Range;

use crate::entries::{Entries, Layout, decoded_count, elements};
use crate::errors::{Failure, Fault, Kind, Outcome};

/// Distances in bytes along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Steps {
    /// All the same.
    Even(isize),
    /// From the first element on, beginning at this place of [`Place::offsets`].
    Listed(usize),
}

/// One axis of a copy.
#[derive(Clone, Copy, Debug)]
pub struct Axis {
    /// Elements.
    pub count: usize,
    /// Distances in memory that is read.
    pub from: Steps,
    /// Distances in memory that is written.
    pub to: Steps,
    /// How far apart neighbours of the array that is written are: the order of loops.
    pub spread: usize,
}

/// Which side is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the chunk to the caller's array.
    Scatter,
    /// From the caller's array to the chunk.
    Gather,
}

/// Where an entry's elements are, ready to be copied. Its memory is used for one entry after the other.
#[derive(Default)]
pub struct Place {
    /// Outermost first.
    pub axes: Vec<Axis>,
    /// Byte offsets of listed axes.
    pub offsets: Vec<isize>,
    /// Byte offset of the first element in the chunk.
    pub chunk: isize,
    /// Byte offset of the first element in the caller's array.
    pub out: isize,
    /// Whether there is no element.
    pub is_empty: bool,
    /// Whether the last two axes are fast on one side each, so that tiles save memory traffic.
    pub is_tiled: bool,
    /// Numbers of an entry that is cut.
    pub clip: Clip,
}

impl Place {
    /// Find the elements of an entry.
    ///
    /// # Errors
    /// When an index is outside of the chunk or of the caller's array.
    pub fn find(
        &mut self,
        entries: &Entries<'_>,
        row: usize,
        chunk: &Layout,
        out: &Layout,
        direction: Direction,
    ) -> Outcome<()> {
        self.axes.clear();
        self.offsets.clear();
        (self.chunk, self.out, self.is_empty, self.is_tiled) = (0, 0, false, false);
        for (axis, landing) in entries.axes.iter().enumerate() {
            if landing.is_none() {
                self.drop_axis(entries, row, axis, chunk)?;
            }
        }
        for axis in 0..out.shape.len() {
            self.add_axis(entries, row, axis, [chunk, out], direction)?;
        }
        if self.is_empty {
            self.axes.clear();
        }
        self.arrange();
        Ok(())
    }

    /// Find all elements of a chunk in an array of its shape.
    pub fn whole(&mut self, chunk: &Layout, array: &Layout, direction: Direction) {
        self.axes.clear();
        (self.chunk, self.out, self.is_empty, self.is_tiled) = (0, 0, chunk.shape.contains(&0), false);
        for (axis, count) in chunk.shape.iter().copied().enumerate().filter(|(_, count)| *count > 1) {
            let (inside, outside) = (Steps::Even(chunk.strides[axis]), Steps::Even(array.strides[axis]));
            self.axes.push(match direction {
                Direction::Scatter => {
                    Axis { count, from: inside, to: outside, spread: array.strides[axis].unsigned_abs() }
                }
                Direction::Gather => {
                    Axis { count, from: outside, to: inside, spread: chunk.strides[axis].unsigned_abs() }
                }
            });
        }
        self.arrange();
    }

    /// The bytes of the chunk from the first element of the place, of `size` bytes, to the last.
    #[must_use]
    pub fn span(&self, size: usize) -> Range<isize> {
        self.span_along(size, self.axes.iter())
    }

    /// Name the bytes of the chunk among which the elements of the place are, of `size` bytes each: one run, or several
    /// where more than `gap` bytes are from one to the next along an axis.
    pub fn runs(&self, size: usize, gap: usize, runs: &mut Vec<Range<isize>>) {
        let far = (0..self.axes.len()).max_by_key(|number| self.distance(&self.axes[*number]));
        let Some(far) = far.filter(|number| self.distance(&self.axes[*number]) > gap) else {
            runs.push(self.span(size));
            return;
        };
        let others = self.axes.iter().enumerate().filter(|(number, _)| *number != far).map(|(_, axis)| axis);
        let one = self.span_along(size, others);
        let axis = self.axes[far];
        runs.extend((0..axis.count).map(|number| {
            let offset = match axis.from {
                Steps::Even(step) => step * number.cast_signed(),
                Steps::Listed(begin) => self.offsets[begin + number],
            };
            one.start + offset..one.end + offset
        }));
    }

    fn span_along<'a>(&'a self, size: usize, axes: impl Iterator<Item = &'a Axis>) -> Range<isize> {
        let (mut low, mut high) = (self.chunk, self.chunk + size.cast_signed());
        for axis in axes {
            let (least, most) = self.ends(axis);
            low += least;
            high += most;
        }
        low..high
    }

    /// How far apart neighbours along an axis are in memory that is read, those of a list on average.
    fn distance(&self, axis: &Axis) -> usize {
        let (least, most) = self.ends(axis);
        most.abs_diff(least) / (axis.count - 1).max(1)
    }

    /// Bytes from the first element of an axis to the lowest, and to the highest, in memory that is read.
    fn ends(&self, axis: &Axis) -> (isize, isize) {
        match axis.from {
            Steps::Even(step) => {
                let last = step * (axis.count.cast_signed() - 1);
                (last.min(0), last.max(0))
            }
            Steps::Listed(begin) => {
                let offsets = &self.offsets[begin..begin + axis.count];
                (offsets.iter().copied().min().unwrap_or(0), offsets.iter().copied().max().unwrap_or(0))
            }
        }
    }

    /// Whether the elements are `count` neighbours of `size` bytes on both sides.
    #[must_use]
    pub fn is_contiguous(&self, count: usize, size: usize) -> bool {
        let step = Steps::Even(size.cast_signed());
        match self.axes.as_slice() {
            _ if self.is_empty => false,
            [] => count == 1,
            [axis] => axis.count == count && axis.from == step && axis.to == step,
            _ => false,
        }
    }

    /// A dropped axis moves the first element of the chunk.
    fn drop_axis(&mut self, entries: &Entries<'_>, row: usize, axis: usize, chunk: &Layout) -> Outcome<()> {
        let cell = row * entries.axes.len() + axis;
        let (index, count) = match &entries.lists[axis] {
            Some(list) => {
                let run = list.run(row)?;
                (run.first().copied().unwrap_or(0), run.len())
            }
            None => (entries.start[cell], elements(entries.count[cell])?),
        };
        match count {
            0 => self.is_empty = true,
            1 => self.chunk += offset(index, chunk, axis)?,
            _ => {
                return Err(Fault::new(Kind::Selection, "a dropped axis has more than one element"));
            }
        }
        Ok(())
    }

    /// Add the axis that lands on an out axis.
    fn add_axis(
        &mut self,
        entries: &Entries<'_>,
        row: usize,
        axis: usize,
        [chunk, out]: [&Layout; 2],
        direction: Direction,
    ) -> Outcome<()> {
        let ndim = entries.axes.len();
        let landing = || (0..ndim).filter(|decoded| entries.axes[*decoded] == Some(axis));
        let out_run = entries.out_lists[axis].as_ref().map(|list| list.run(row)).transpose()?;
        let count = match (out_run, landing().next_back()) {
            (Some(run), _) => run.len(),
            (None, Some(decoded)) => decoded_count(entries, row, decoded)?,
            (None, None) => 1,
        };
        if count == 0 {
            self.is_empty = true;
            return Ok(());
        }
        if landing().next().is_none() && count != 1 {
            return Err(Fault::new(Kind::Selection, "an out axis has elements that come from nowhere"));
        }
        let cell = row * entries.out_lists.len() + axis;
        let out_side = if let Some(run) = out_run {
            self.listed(run, out, axis, &mut |place| &mut place.out)?
        } else {
            let (first, steps) = even(entries.out_start[cell], entries.out_step[cell], count, out, axis)?;
            self.out += first;
            Steps::Even(steps)
        };
        let mut chunk_side = Steps::Even(0);
        let mut chunk_spread = 0;
        for decoded in landing() {
            let side = self.along_chunk(entries, row, decoded, count, chunk)?;
            chunk_side = self.together(chunk_side, side, count);
            chunk_spread = chunk_spread.max(chunk.strides[decoded].unsigned_abs());
        }
        if count > 1 {
            self.axes.push(match direction {
                Direction::Scatter => {
                    Axis { count, from: chunk_side, to: out_side, spread: out.strides[axis].unsigned_abs() }
                }
                Direction::Gather => Axis { count, from: out_side, to: chunk_side, spread: chunk_spread },
            });
        }
        Ok(())
    }

    /// Find the elements along a decoded axis that is kept.
    fn along_chunk(
        &mut self,
        entries: &Entries<'_>,
        row: usize,
        axis: usize,
        count: usize,
        chunk: &Layout,
    ) -> Outcome<Steps> {
        if decoded_count(entries, row, axis)? != count {
            return Err(Fault::new(Kind::Selection, "a selection has more elements than there are places for"));
        }
        if let Some(list) = &entries.lists[axis] {
            return self.listed(list.run(row)?, chunk, axis, &mut |place| &mut place.chunk);
        }
        let cell = row * entries.axes.len() + axis;
        let (first, steps) = even(entries.start[cell], entries.step[cell], count, chunk, axis)?;
        self.chunk += first;
        Ok(Steps::Even(steps))
    }

    /// Turn indices into byte offsets; a single one only moves the first element.
    fn listed(
        &mut self,
        run: &[i64],
        layout: &Layout,
        axis: usize,
        first: &mut dyn FnMut(&mut Self) -> &mut isize,
    ) -> Outcome<Steps> {
        if let [index] = run {
            *first(self) += offset(*index, layout, axis)?;
            return Ok(Steps::Even(0));
        }
        let begin = self.offsets.len();
        for index in run {
            self.offsets.push(offset(*index, layout, axis)?);
        }
        Ok(Steps::Listed(begin))
    }

    /// Add up the distances of two axes that advance together.
    fn together(&mut self, one: Steps, other: Steps, count: usize) -> Steps {
        match (one, other) {
            (Steps::Even(one), Steps::Even(other)) => Steps::Even(one + other),
            (Steps::Even(0), listed) | (listed, Steps::Even(0)) => listed,
            (Steps::Listed(begin), Steps::Even(step)) | (Steps::Even(step), Steps::Listed(begin)) => {
                let mut distance = 0;
                for offset in &mut self.offsets[begin..begin + count] {
                    *offset += distance;
                    distance += step;
                }
                Steps::Listed(begin)
            }
            (Steps::Listed(one), Steps::Listed(other)) => {
                for number in 0..count {
                    self.offsets[one + number] += self.offsets[other + number];
                }
                Steps::Listed(one)
            }
        }
    }

    /// Order axes so that memory is written in order, join those that need not be apart, and see whether tiles pay.
    fn arrange(&mut self) {
        self.axes.sort_by_key(|axis| std::cmp::Reverse(axis.spread));
        self.axes.dedup_by(|inner, outer| join(outer, *inner));
        let Some(last) = self.axes.len().checked_sub(1) else {
            return;
        };
        let read_distance = |axis: &Axis| match axis.from {
            Steps::Even(step) => step.unsigned_abs(),
            Steps::Listed(_) => usize::MAX,
        };
        let Some(fast) = (0..=last).min_by_key(|number| read_distance(&self.axes[*number])) else {
            return;
        };
        let apart = |axis: &Axis| matches!((axis.from, axis.to), (Steps::Even(_), Steps::Even(_)));
        if fast != last
            && read_distance(&self.axes[fast]) < read_distance(&self.axes[last])
            && read_distance(&self.axes[fast]) > 0
            && apart(&self.axes[fast])
            && apart(&self.axes[last])
        {
            let axis = self.axes.remove(fast);
            self.axes.insert(last - 1, axis);
            self.is_tiled = true;
        }
    }
}

/// Join an axis with the one inside of it when both sides allow; `outer` becomes both.
fn join(outer: &mut Axis, inner: Axis) -> bool {
    let (Steps::Even(outer_from), Steps::Even(outer_to)) = (outer.from, outer.to) else {
        return false;
    };
    let (Steps::Even(from), Steps::Even(to)) = (inner.from, inner.to) else {
        return false;
    };
    let count = inner.count.cast_signed();
    let joined = from.checked_mul(count) == Some(outer_from) && to.checked_mul(count) == Some(outer_to);
    if joined {
        *outer = Axis { count: outer.count * inner.count, from: inner.from, to: inner.to, spread: inner.spread };
    }
    joined
}

/// Byte offset of an index.
fn offset(index: i64, layout: &Layout, axis: usize) -> Outcome<isize> {
    match usize::try_from(index) {
        Ok(position) if position < layout.shape[axis] => Ok(position.cast_signed() * layout.strides[axis]),
        _ => Err(outside(index, layout.shape[axis])),
    }
}

/// Byte offset of the first element, and the distance of the others.
fn even(start: i64, step: i64, count: usize, layout: &Layout, axis: usize) -> Outcome<(isize, isize)> {
    let first = offset(start, layout, axis)?;
    if count == 1 {
        return Ok((first, 0));
    }
    let distance = i64::try_from(count - 1).ok().and_then(|steps| step.checked_mul(steps));
    let last =
        distance.and_then(|distance| start.checked_add(distance)).ok_or_else(|| outside(step, layout.shape[axis]))?;
    offset(last, layout, axis)?;
    // The last index is inside of the axis, so the step is shorter than it.
    let step = isize::try_from(step).map_err(|_| outside(step, layout.shape[axis]))?;
    Ok((first, step * layout.strides[axis]))
}

#[allow(clippy::unnecessary_box_returns, reason = "faults are handed on in boxes")]
fn outside(index: i64, extent: usize) -> Failure {
    Fault::new(Kind::Selection, "an index is outside of its axis").with(format!("below {extent}"), index.to_string())
}
