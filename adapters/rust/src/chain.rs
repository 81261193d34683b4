//! The kernels of a run, one after the other: from encoded bytes to those of an array, and back.

use std::ops::Range;

use crate::errors::{Fault, Outcome};
use crate::kernels::{Contexts, Kernel};
use crate::worker::{Memory, Worker};

/// A kernel at its place, with the sizes that the chain allows.
#[derive(Clone, Debug)]
pub struct Stage {
    /// Name of the codec, for errors.
    pub name: String,
    /// The kernel.
    pub kernel: Kernel,
    /// Bytes that decoding must make, when the chain fixes them.
    pub exact: Option<usize>,
    /// Most bytes that decoding may make.
    pub most: usize,
}

impl Stage {
    fn check(&self, size: usize) -> Outcome<()> {
        match self.exact {
            Some(exact) if exact != size => Err(Fault::length("wrong decoded size", exact, size)),
            None if size > self.most => Err(Fault::too_many(self.most)),
            _ => Ok(()),
        }
    }

    fn decode(&self, contexts: &mut Contexts, input: &[u8], out: &mut Memory) -> Outcome<usize> {
        match self.exact {
            Some(exact) => self.kernel.decode_exact(contexts, input, out.room(exact)?).map(|()| exact),
            None => self.kernel.decode_growing(contexts, input, out, self.most),
        }
    }
}

/// Where decoded bytes are.
pub enum Decoded<'a> {
    /// In the input: there was nothing to do but to check it.
    Input(&'a [u8]),
    /// In the worker's `front`.
    Front(Range<usize>),
    /// In the memory that was given.
    Target,
}

/// Decode through all stages, last first; straight into `target` when the last one can.
///
/// # Errors
/// When the bytes do not decode, or to a size that the chain does not allow.
pub fn decode<'a>(
    stages: &[Stage],
    input: &'a [u8],
    worker: &mut Worker,
    mut target: Option<&mut [u8]>,
) -> Outcome<Decoded<'a>> {
    let Worker { front, back, contexts, .. } = worker;
    let mut whole = None;
    let mut range = 0..input.len();
    for (number, stage) in stages.iter().enumerate().rev() {
        let data = whole.map_or(input, |size| front.filled(size));
        let data = &data[range.clone()];
        let named = |fault: Box<Fault>| fault.by(&stage.name);
        if let Some(part) = stage.kernel.part(data).map_err(named)? {
            stage.check(part.len()).map_err(named)?;
            range = range.start + part.start..range.start + part.end;
            continue;
        }
        if number == 0
            && let Some(target) = target.take().filter(|target| Some(target.len()) == stage.exact)
        {
            stage.kernel.decode_exact(contexts, data, target).map_err(named)?;
            return Ok(Decoded::Target);
        }
        let size = stage.decode(contexts, data, back).map_err(named)?;
        std::mem::swap(front, back);
        whole = Some(size);
        range = 0..size;
    }
    Ok(if whole.is_none() { Decoded::Input(&input[range]) } else { Decoded::Front(range) })
}

/// How many of the last stages only append a checksum.
#[must_use]
pub fn appending(stages: &[Stage]) -> usize {
    let appends = |stage: &&Stage| stage.kernel.appended().is_some();
    stages.iter().rev().take_while(appends).count()
}

/// Encode through all stages into memory of exactly the right size.
///
/// # Errors
/// When a codec cannot encode so many bytes.
pub fn encode(
    stages: &[Stage],
    input: &[u8],
    front: &mut Memory,
    back: &mut Memory,
    contexts: &mut Contexts,
) -> Outcome<Vec<u8>> {
    let (making, appended) = stages.split_at(stages.len() - appending(stages));
    // A checksum that comes first needs no memory of its own either.
    let (making, prefixed) = match making.split_last() {
        Some((last, before)) if last.kernel.prefixed().is_some() => (before, last.kernel.prefixed()),
        _ => (making, None),
    };
    let mut whole = None;
    for stage in making {
        let data = whole.map_or(input, |size| front.filled(size));
        let size = stage.kernel.encode(contexts, data, back).map_err(|fault| fault.by(&stage.name))?;
        std::mem::swap(front, back);
        whole = Some(size);
    }
    let data = whole.map_or(input, |size| front.filled(size));
    let checksums = appended.len() + usize::from(prefixed.is_some());
    let mut made = Vec::with_capacity(data.len() + checksums * crate::kernels::CHECKSUM);
    if let Some(checksum) = prefixed {
        made.extend_from_slice(&checksum.of(data));
    }
    made.extend_from_slice(data);
    append(appended, &mut made);
    Ok(made)
}

/// Append the checksums of stages that do nothing else.
pub fn append(stages: &[Stage], made: &mut Vec<u8>) {
    for checksum in stages.iter().filter_map(|stage| stage.kernel.appended()) {
        let sum = checksum.of(made);
        made.extend_from_slice(&sum);
    }
}
