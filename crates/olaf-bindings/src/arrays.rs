//! numpy arrays as slices, where they lie.

use numpy::{
    PyArrayDescrMethods, PyArrayDyn, PyArrayMethods, PyReadonlyArrayDyn, PyReadwriteArrayDyn,
    PyUntypedArray, PyUntypedArrayMethods,
};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

/// The parts of a model or gradient, to be read.
pub(crate) fn readable<'py>(
    parts: &Bound<'py, PyAny>,
) -> PyResult<Vec<PyReadonlyArrayDyn<'py, f32>>> {
    each(parts, |index, array| {
        array.try_readonly().map_err(|error| {
            PyValueError::new_err(format!("part {index} is being written by another call: {error}"))
        })
    })
}

/// The parts of a model, to be written.
pub(crate) fn writable<'py>(
    parts: &Bound<'py, PyAny>,
) -> PyResult<Vec<PyReadwriteArrayDyn<'py, f32>>> {
    each(parts, |index, array| {
        array.try_readwrite().map_err(|error| {
            PyValueError::new_err(format!(
                "part {index} cannot be written: {error}; pass arrays that are writable, each once"
            ))
        })
    })
}

/// Slices over arrays that [`readable`] checked.
pub(crate) fn slices<'a>(arrays: &'a [PyReadonlyArrayDyn<'_, f32>]) -> Vec<&'a [f32]> {
    arrays.iter().map(|a| a.as_slice().expect("each() saw that it is contiguous")).collect()
}

/// Slices over arrays that [`writable`] checked.
pub(crate) fn slices_mut<'a>(arrays: &'a mut [PyReadwriteArrayDyn<'_, f32>]) -> Vec<&'a mut [f32]> {
    arrays.iter_mut().map(|a| a.as_slice_mut().expect("each() saw that it is contiguous")).collect()
}

fn each<'py, T>(
    parts: &Bound<'py, PyAny>,
    mut take: impl FnMut(usize, Bound<'py, PyArrayDyn<f32>>) -> PyResult<T>,
) -> PyResult<Vec<T>> {
    if parts.cast::<PyUntypedArray>().is_ok() {
        return Err(PyTypeError::new_err(
            "expected a list of arrays, not one array: write [array]",
        ));
    }
    let items = parts.try_iter()?.enumerate();
    items.map(|(index, item)| take(index, float32(index, &item?)?)).collect()
}

/// The item as an array that can be read where it lies, or what to do about it.
fn float32<'py>(index: usize, item: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyArrayDyn<f32>>> {
    let Ok(array) = item.cast::<PyUntypedArray>() else {
        let kind = item.get_type();
        return Err(PyTypeError::new_err(format!(
            "part {index} is a {}, not a numpy array",
            kind.name()?
        )));
    };
    let Ok(array) = item.cast::<PyArrayDyn<f32>>() else {
        return Err(PyValueError::new_err(format!(
            "part {index} holds {}: pass float32 in this machine's byte order, as \
             array.astype(numpy.float32) makes it",
            array.dtype().typeobj().name()?
        )));
    };
    if !array.is_c_contiguous() {
        return Err(PyValueError::new_err(format!(
            "part {index} is not C-contiguous: pass numpy.ascontiguousarray(array)"
        )));
    }
    Ok(array.clone())
}
