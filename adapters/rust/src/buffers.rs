//! Memory that crosses between Python and Rust: the only module that takes any from Python.
//!
//! Everything is borrowed through the buffer protocol for the time of one call, so no memory can go away while the
//! GIL is released. Callers do not write to inputs, nor touch outputs, while a call that has them runs.

#![allow(unsafe_code)]

use std::ffi::c_int;

use pyo3::buffer::{PyBuffer, PyUntypedBuffer};
use pyo3::exceptions::PyValueError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyType};

use crate::entries::Layout;

/// The bytes of an object.
pub struct Bytes(PyUntypedBuffer);

impl Bytes {
    /// Borrow the bytes of an object.
    ///
    /// # Errors
    /// When they are not contiguous.
    pub fn get(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let buffer = PyUntypedBuffer::get(object)?;
        if buffer.is_c_contiguous() { Ok(Self(buffer)) } else { Err(PyValueError::new_err("bytes are not contiguous")) }
    }

    /// The bytes.
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        let (pointer, length) = (self.0.buf_ptr().cast::<u8>().cast_const(), self.0.len_bytes());
        if length == 0 {
            return &[];
        }
        // SAFETY: the buffer is contiguous, held as long as the slice, and nobody writes to it (see the module).
        unsafe { std::slice::from_raw_parts(pointer, length) }
    }
}

/// A column of 64-bit integers.
pub struct Column(PyBuffer<i64>);

impl Column {
    /// Borrow a column.
    ///
    /// # Errors
    /// When it is not contiguous, or holds something else.
    pub fn get(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let buffer = PyBuffer::get(object)?;
        if buffer.is_c_contiguous() {
            Ok(Self(buffer))
        } else {
            Err(PyValueError::new_err("a column is not contiguous"))
        }
    }

    /// Integers along each axis of the array that they are.
    #[must_use]
    pub fn shape(&self) -> &[usize] {
        self.0.shape()
    }

    /// The integers.
    #[must_use]
    pub fn as_slice(&self) -> &[i64] {
        let count = self.0.item_count();
        if count == 0 {
            return &[];
        }
        // SAFETY: type and alignment were checked by `PyBuffer`; the rest is as for `Bytes`.
        unsafe { std::slice::from_raw_parts(self.0.buf_ptr().cast::<i64>().cast_const(), count) }
    }
}

/// An array of elements of a fixed number of bytes, any strides.
pub struct Array {
    buffer: PyUntypedBuffer,
    layout: Layout,
}

impl Array {
    /// Borrow an array. An array without axes comes with one of a single element, because buffers of `NumPy` without axes have
    /// no shape.
    ///
    /// # Errors
    /// When it has another number of axes or bytes an element, or is read-only and must not be.
    pub fn get(object: &Bound<'_, PyAny>, ndim: usize, itemsize: usize, writable: bool) -> PyResult<Self> {
        let buffer = PyUntypedBuffer::get(object)?;
        let (mut shape, mut strides) = (buffer.shape().to_vec(), buffer.strides().to_vec());
        if ndim == 0 && shape == [1] {
            shape.clear();
            strides.clear();
        }
        if shape.len() != ndim || buffer.item_size() != itemsize || buffer.suboffsets().is_some() {
            return Err(PyValueError::new_err("an array has another form than the entries"));
        }
        if writable && buffer.readonly() {
            return Err(PyValueError::new_err("assignment destination is read-only"));
        }
        Ok(Self { buffer, layout: Layout { shape, strides } })
    }

    /// Shape and strides.
    #[must_use]
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The element whose indices are all 0. Elements within the layout may be read, and written if it is writable.
    #[must_use]
    pub fn pointer(&self) -> *mut u8 {
        self.buffer.buf_ptr().cast()
    }
}

/// Encoded bytes of exactly their size, read-only.
#[pyclass(frozen, module = "chunkwright_rust._native")]
pub struct Encoded(Vec<u8>);

impl Encoded {
    /// Keep bytes for Python.
    #[must_use]
    pub fn new(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }
}

#[pymethods]
impl Encoded {
    fn __len__(&self) -> usize {
        self.0.len()
    }

    fn __repr__(&self) -> String {
        format!("<Encoded: {} bytes>", self.0.len())
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> (Bound<'py, PyType>, (Bound<'py, PyBytes>,)) {
        (py.get_type::<PyBytes>(), (PyBytes::new(py, &self.0),))
    }

    /// # Safety
    /// Called by Python only, with a view that it wants to be filled.
    #[allow(clippy::needless_pass_by_value, reason = "PyO3 hands it over by value")]
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let bytes = &slf.get().0;
        let length = bytes.len().cast_signed();
        // SAFETY: the vector is never changed, and lives as long as the object, which the view holds. A writable view
        // is refused because of the 1.
        let result =
            unsafe { ffi::PyBuffer_FillInfo(view, slf.as_ptr(), bytes.as_ptr().cast_mut().cast(), length, 1, flags) };
        if result == 0 { Ok(()) } else { Err(PyErr::fetch(slf.py())) }
    }
}
