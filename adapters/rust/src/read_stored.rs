//! Decode chunks that are still where they are stored: read and decoded by the same thread, without a copy between.
//!
//! Chunks that lie close together in one place are read with one request, in the order in which they lie there. A
//! request is small enough for its bytes to be in the processor's caches still when they are decoded, and for all
//! threads to have some. Of some chunks only a part is read ([`crate::read_part`]).

use std::ops::Range;

use crate::batch::each_stored;
use crate::entries::Entries;
use crate::errors::{Fault, Kind, Outcome};
use crate::index_cache::Version;
use crate::load::Load;
use crate::pace::Pace;
use crate::pool;
use crate::read::{Reading, groups};
use crate::worker::{Memory, Worker};

/// Bytes between two chunks that are read for nothing rather than with another request.
pub const MAX_GAP: usize = 16 << 10;

/// Encoded and decoded bytes of the chunks of one request, about.
const MAX_REQUEST: usize = 256 << 10;

/// The least decoded bytes of a request that are worth another one.
pub const MIN_REQUEST: usize = 32 << 10;

/// As many bytes of chunks that nothing is done to are copied by the caller alone: threads that open and read files side by
/// side are in each other's way for longer than they save.
const COPIED_ALONE: usize = 256 << 10;

/// Somewhere that bytes can be read from by many threads at once.
pub trait Storage: Sync {
    /// Say what an object is, and let all later reads be of the same version of it. None when there is nothing.
    ///
    /// # Errors
    /// When storage fails.
    fn hold(&self, source: usize) -> Outcome<Option<Object>>;

    /// Most bytes of indexes of shards that are kept between calls.
    fn index_cache(&self) -> usize;

    /// Let go of what `hold` holds.
    fn release(&self, source: usize);

    /// Read bytes into memory, all from `offset` on when no length is given. None when there is nothing at all.
    ///
    /// # Errors
    /// When storage fails, or has fewer bytes than the length that is given.
    fn read(&self, source: usize, offset: usize, length: Option<usize>, into: &mut Memory) -> Outcome<Option<usize>>;

    /// Read parts of one version of an object into memory, as far apart there as they are in the object. False when there
    /// is nothing.
    ///
    /// # Errors
    /// When storage fails, or the object is not of the right length.
    fn read_parts(&self, parts: &Parts<'_>, into: &mut Memory) -> Outcome<bool>;
}

/// An object, as it is now.
pub struct Object {
    /// Its bytes.
    pub size: usize,
    /// What tells it from what it was, or will be.
    pub version: Version,
}

/// Parts of an object.
pub struct Parts<'a> {
    /// Which object of the storage.
    pub source: usize,
    /// The byte from which on the parts are counted.
    pub offset: usize,
    /// In order, none within another.
    pub ranges: &'a [Range<usize>],
    /// How many bytes the object has to have from `offset` on, unless it has other bytes there too.
    pub whole: Option<usize>,
}

/// Encoded chunks in storage.
pub struct Rows<'a> {
    /// Where they are.
    pub storage: &'a dyn Storage,
    /// Which object of the storage.
    pub source: &'a [i64],
    /// First byte of each row, negative for missing chunks.
    pub offset: &'a [i64],
    /// Bytes of each row, negative for all that there are.
    pub length: &'a [i64],
}

/// A chunk to be read.
pub struct Item {
    /// Its number in the batch, for errors.
    pub chunk: usize,
    /// Rows of its selections.
    pub rows: Range<usize>,
    /// Which object of the storage.
    pub source: usize,
    /// First byte.
    pub offset: usize,
    /// Bytes; None: all that there are.
    pub length: Option<usize>,
}

/// Items that are read together, and the bytes to read.
struct Request {
    items: Range<usize>,
    begin: usize,
    end: Option<usize>,
}

/// The decoded bytes that are wanted of an item, none when that is about all of it.
pub type Ranges = Vec<Range<usize>>;

impl Rows<'_> {
    /// Where the bytes of a row are: source, offset, and length unless all bytes are wanted. None for a missing chunk.
    ///
    /// # Errors
    /// When the numbers make no sense.
    pub fn row(&self, row: usize) -> Outcome<Option<(usize, usize, Option<usize>)>> {
        let Ok(offset) = usize::try_from(self.offset[row]) else {
            return Ok(None);
        };
        let source = usize::try_from(self.source[row]).map_err(|_| Fault::new(Kind::Plan, "a negative source"))?;
        Ok(Some((source, offset, usize::try_from(self.length[row]).ok())))
    }

    /// Check that the columns belong together.
    ///
    /// # Errors
    /// When they do not.
    pub fn check(&self) -> Outcome<()> {
        if self.source.len() == self.offset.len() && self.length.len() == self.offset.len() {
            return Ok(());
        }
        Err(Fault::new(Kind::Plan, "columns of buffers do not belong together"))
    }
}

impl Reading<'_> {
    /// Do it all, with encoded chunks that are in storage.
    ///
    /// # Errors
    /// The fault of the first chunk that has one.
    pub fn run_stored(&self, entries: &Entries<'_>, rows: &Rows<'_>, max_workers: Option<usize>) -> Outcome<()> {
        rows.check()?;
        entries.check(rows.offset.len())?;
        let items = self.items(entries, rows)?;
        self.read_items(items, rows.storage, max_workers)
    }

    /// Read and decode chunks, neighbours together.
    ///
    /// # Errors
    /// The fault of the first chunk that has one.
    pub fn read_items(&self, mut items: Vec<Item>, storage: &dyn Storage, max_workers: Option<usize>) -> Outcome<()> {
        items.sort_unstable_by_key(|item| (item.source, item.offset));
        let workers = max_workers.unwrap_or_else(pool::size).max(1);
        let nbytes = items.len().saturating_mul(self.chunk.nbytes);
        let share = nbytes / workers.saturating_mul(4);
        let parts = self.parts(&items)?;
        let requests = requests(&items, &parts, self.chunk.nbytes, share.clamp(MIN_REQUEST, MAX_REQUEST));
        let bytes = nbytes / requests.len().max(1);
        let max_workers = if self.is_little(&items, &parts) { Some(1) } else { max_workers };
        each_stored(requests.len(), Load::like(bytes, &self.chunk.decoding), max_workers, |number, worker, pace| {
            let request = &requests[number];
            let mut memory = std::mem::take(&mut worker.input);
            let items = &items[request.items.clone()];
            let ranges = parts.get(request.items.start).map_or(&[][..], Vec::as_slice);
            let done = match ranges {
                [] => Ok(false),
                ranges => self
                    .read_part(storage, &items[0], ranges, &mut memory, worker, pace)
                    .map_err(|fault| fault.at(items[0].chunk)),
            };
            let result = match done {
                Ok(false) => self.request(storage, request, items, &mut memory, worker, pace),
                done => done.map(|_| ()),
            };
            worker.input = memory;
            result
        })
    }

    /// Whether all that is done is to copy a few bytes.
    fn is_little(&self, items: &[Item], parts: &[Ranges]) -> bool {
        let wanted = |number| match parts.get(number).map_or(&[][..], Vec::as_slice) {
            [] => self.chunk.nbytes,
            ranges => ranges.iter().map(Range::len).sum(),
        };
        let within = |sum: usize, bytes: usize| sum.checked_add(bytes).filter(|sum| *sum <= COPIED_ALONE);
        self.chunk.stages.is_empty() && (0..items.len()).map(wanted).try_fold(0, within).is_some()
    }

    /// All chunks that have bytes; those that are known to be missing are settled at once.
    fn items(&self, entries: &Entries<'_>, rows: &Rows<'_>) -> Outcome<Vec<Item>> {
        let groups = groups(entries.chunk);
        let mut items = Vec::with_capacity(groups.len());
        let mut missing = Vec::new();
        for (chunk, group) in groups {
            match rows.row(chunk)? {
                Some((source, offset, length)) => items.push(Item { chunk, rows: group, source, offset, length }),
                None => missing.push(group),
            }
        }
        if !missing.is_empty() {
            Worker::lend(|worker| missing.into_iter().try_for_each(|group| self.one(None, group, worker)))?;
        }
        Ok(items)
    }

    fn request(
        &self,
        storage: &dyn Storage,
        request: &Request,
        items: &[Item],
        memory: &mut Memory,
        worker: &mut Worker,
        pace: &Pace,
    ) -> Outcome<()> {
        let first = items[0].chunk;
        let length = request.end.map(|end| end - request.begin);
        let read = pace.request(|| {
            let read = storage.read(items[0].source, request.begin, length, memory);
            (read.as_ref().ok().copied().flatten().unwrap_or(0), read)
        });
        let read = read.map_err(|fault| fault.at(first))?;
        let _permit = pace.permit();
        for item in items {
            let begin = item.offset - request.begin;
            let data = read.map(|size| &memory.filled(size)[begin..item.length.map_or(size, |length| begin + length)]);
            self.one(data, item.rows.clone(), worker).map_err(|fault| fault.at(item.chunk))?;
        }
        Ok(())
    }
}

/// Put neighbours together.
fn requests(items: &[Item], parts: &[Ranges], nbytes: usize, most: usize) -> Vec<Request> {
    let is_whole = |number: usize| parts.get(number).is_none_or(Vec::is_empty);
    let mut requests: Vec<Request> = Vec::new();
    for (number, item) in items.iter().enumerate() {
        let end = item.length.and_then(|length| item.offset.checked_add(length));
        if let Some(last) = requests.last_mut()
            && let (Some(stop), Some(end)) = (last.end, end)
            && items[last.items.start].source == item.source
            && is_whole(last.items.start)
            && is_whole(number)
            && item.offset <= stop.saturating_add(MAX_GAP)
            && end.saturating_sub(last.begin) <= MAX_REQUEST
            && (last.items.len() + 1).saturating_mul(nbytes) <= most
        {
            last.items.end = number + 1;
            last.end = Some(stop.max(end));
        } else {
            requests.push(Request { items: number..number + 1, begin: item.offset, end });
        }
    }
    requests
}

#[cfg(test)]
mod tests {
    use std::iter;

    use super::{Item, requests};

    fn item(source: usize, offset: usize, length: Option<usize>) -> Item {
        Item { chunk: 0, rows: 0..1, source, offset, length }
    }

    #[test]
    fn neighbours_are_read_together() {
        let items = [item(0, 0, Some(10)), item(0, 12, Some(10)), item(0, 1 << 20, Some(5)), item(1, 0, None)];
        let made: Vec<_> =
            requests(&items, &[], 1, 100).into_iter().map(|made| (made.items, made.begin, made.end)).collect();
        assert_eq!(made, [(0..2, 0, Some(22)), (2..3, 1 << 20, Some((1 << 20) + 5)), (3..4, 0, None)]);
    }

    #[test]
    fn requests_are_no_larger_than_allowed() {
        let items = [item(0, 0, Some(10)), item(0, 10, Some(10)), item(0, 20, Some(10))];
        assert_eq!(requests(&items, &[], 50, 100).len(), 2);
    }

    #[test]
    fn items_of_which_a_part_is_read_are_alone() {
        let items = [item(0, 0, Some(10)), item(0, 10, Some(10)), item(0, 20, Some(10)), item(0, 30, Some(10))];
        let parts = [vec![], iter::once(2..3).collect(), vec![], vec![]];
        let made: Vec<_> = requests(&items, &parts, 1, 100).into_iter().map(|made| made.items).collect();
        assert_eq!(made, [0..1, 1..2, 2..4]);
    }

    #[test]
    fn bytes_may_be_shared() {
        let items = [item(0, 0, Some(10)), item(0, 2, Some(3))];
        let made = requests(&items, &[], 1, 100);
        assert_eq!((made.len(), made[0].end), (1, Some(10)));
    }
}
