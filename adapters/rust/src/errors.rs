//! What can be wrong with a chunk, and the one conversion into the Python classes of `chunkwright.errors`.

use std::borrow::Cow;
use std::io;
use std::path::Path;

use pyo3::exceptions::PyOSError;
use pyo3::import_exception;
use pyo3::prelude::*;
use pyo3::types::PyDict;

import_exception!(chunkwright.errors, ChecksumError);
import_exception!(chunkwright.errors, ChunkLengthError);
import_exception!(chunkwright.errors, ConfigurationError);
import_exception!(chunkwright.errors, CorruptChunkError);
import_exception!(chunkwright.errors, PlanError);
import_exception!(chunkwright.errors, SelectionError);
import_exception!(chunkwright.errors, ShardIndexError);

/// Which Python class a fault becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `CorruptChunkError`
    Corrupt,
    /// `ChecksumError`
    Checksum,
    /// `ChunkLengthError`
    Length,
    /// `ShardIndexError`
    ShardIndex,
    /// `SelectionError`
    Selection,
    /// `ConfigurationError`
    Configuration,
    /// `PlanError`
    Plan,
    /// `OSError` of a number; the message is the path.
    System(i32),
}

/// A number or a text in the `expected` and `found` of an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Detail {
    /// A number.
    Number(u64),
    /// Anything else.
    Text(String),
}

impl From<usize> for Detail {
    fn from(number: usize) -> Self {
        Self::Number(number as u64)
    }
}

impl From<String> for Detail {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

/// One thing that is wrong, with its place.
#[derive(Clone, Debug)]
pub struct Fault {
    /// Which class it becomes.
    pub kind: Kind,
    /// What is wrong, in lower case.
    pub message: Cow<'static, str>,
    /// Name of the codec that found it.
    pub codec: Option<Box<str>>,
    /// Row of the chunk in its batch.
    pub position: Option<usize>,
    /// What the chain allows.
    pub expected: Option<Detail>,
    /// What was there.
    pub found: Option<Detail>,
}

/// The result of work on a chunk. Faults are rare and large, so they are boxed.
pub type Outcome<T> = Result<T, Failure>;

/// A fault as it is handed on.
pub type Failure = Box<Fault>;

impl Fault {
    /// Make a fault of a kind.
    pub fn new(kind: Kind, message: impl Into<Cow<'static, str>>) -> Box<Self> {
        Box::new(Self { kind, message: message.into(), codec: None, position: None, expected: None, found: None })
    }

    /// Stored bytes do not decode.
    pub fn corrupt(message: impl Into<Cow<'static, str>>) -> Box<Self> {
        Self::new(Kind::Corrupt, message)
    }

    /// The system refuses to do something with a file.
    #[must_use]
    pub fn system(error: &io::Error, path: &Path) -> Box<Self> {
        let path = path.to_string_lossy().into_owned();
        match error.raw_os_error() {
            Some(number) => Self::new(Kind::System(number), path),
            None => Self::corrupt(format!("{error}: {path}")),
        }
    }

    /// A number of bytes or elements is not what the chain allows.
    pub fn length(message: &'static str, expected: impl Into<Detail>, found: impl Into<Detail>) -> Box<Self> {
        Self::new(Kind::Length, message).with(expected, found)
    }

    /// More bytes come out than the chain allows.
    #[must_use]
    pub fn too_many(most: usize) -> Box<Self> {
        Self::length("decodes to too many bytes", format!("at most {most}"), "more".to_owned())
    }

    /// Say what was expected and found.
    #[must_use]
    pub fn with(mut self: Box<Self>, expected: impl Into<Detail>, found: impl Into<Detail>) -> Box<Self> {
        self.expected = Some(expected.into());
        self.found = Some(found.into());
        self
    }

    /// Name the codec, unless it is named already.
    #[must_use]
    pub fn by(mut self: Box<Self>, codec: &str) -> Box<Self> {
        self.codec.get_or_insert_with(|| codec.into());
        self
    }

    /// Set the row of the chunk.
    #[must_use]
    pub fn at(mut self: Box<Self>, position: usize) -> Box<Self> {
        self.position = Some(position);
        self
    }

    /// Make the Python exception.
    #[must_use]
    pub fn into_error(self, py: Python<'_>) -> PyErr {
        self.exception(py).unwrap_or_else(|error| error)
    }

    fn exception(self, py: Python<'_>) -> PyResult<PyErr> {
        let class = match self.kind {
            Kind::Corrupt => py.get_type::<CorruptChunkError>(),
            Kind::Checksum => py.get_type::<ChecksumError>(),
            Kind::Length => py.get_type::<ChunkLengthError>(),
            Kind::ShardIndex => py.get_type::<ShardIndexError>(),
            Kind::Selection => py.get_type::<SelectionError>(),
            Kind::Configuration => py.get_type::<ConfigurationError>(),
            Kind::Plan => py.get_type::<PlanError>(),
            Kind::System(number) => return system_error(py, number, &self.message),
        };
        let details = PyDict::new(py);
        details.set_item("codec", self.codec.as_deref())?;
        details.set_item("position", self.position)?;
        for (name, detail) in [("expected", self.expected), ("found", self.found)] {
            match detail {
                Some(Detail::Number(number)) => details.set_item(name, number)?,
                Some(Detail::Text(text)) => details.set_item(name, text)?,
                None => {}
            }
        }
        Ok(PyErr::from_value(class.call((self.message,), Some(&details))?))
    }
}

fn system_error(py: Python<'_>, number: i32, path: &str) -> PyResult<PyErr> {
    let text = py.import("os")?.call_method1("strerror", (number,))?;
    Ok(PyErr::from_value(py.get_type::<PyOSError>().call1((number, text, path))?))
}
