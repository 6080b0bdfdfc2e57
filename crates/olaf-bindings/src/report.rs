//! Reports and events as Python objects.

use olaf_engine::report::{Group, Report, Value};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

/// What `report` shows, as a dict. A peer is its number.
pub(crate) fn shown<'py>(
    py: Python<'py>,
    report: impl FnOnce(&mut dyn Report),
) -> PyResult<Bound<'py, PyDict>> {
    let root = PyDict::new(py);
    let mut builder =
        Builder { py, open: vec![(String::new(), Open::Map(root.clone()))], error: None };
    report(&mut builder);
    builder.error.map_or(Ok(root), Err)
}

/// A group that is open.
enum Open<'py> {
    Map(Bound<'py, PyDict>),
    List(Bound<'py, PyList>),
}

struct Builder<'py> {
    py: Python<'py>,
    /// The groups that are open, the outermost first, with their names.
    open: Vec<(String, Open<'py>)>,
    /// The first thing that went wrong: Python may be out of memory.
    error: Option<PyErr>,
}

impl<'py> Builder<'py> {
    fn put(&mut self, name: &str, value: impl IntoPyObject<'py>) {
        let result = match self.open.last() {
            Some((_, Open::Map(map))) => map.set_item(name, value),
            Some((_, Open::List(list))) => list.append(value),
            None => Ok(()),
        };
        if let Err(error) = result {
            self.error.get_or_insert(error);
        }
    }
}

impl Report for Builder<'_> {
    fn value(&mut self, name: &str, value: Value<'_>) {
        match value {
            Value::Nothing => self.put(name, self.py.None()),
            Value::Flag(flag) => self.put(name, flag),
            Value::Count(count) => self.put(name, count),
            Value::Integer(number) => self.put(name, number),
            Value::Number(number) => self.put(name, number),
            Value::Text(text) => self.put(name, text),
            Value::Peer(peer) => self.put(name, peer.0),
        }
    }

    fn open(&mut self, name: &str, group: Group) {
        let open = match group {
            Group::Map => Open::Map(PyDict::new(self.py)),
            Group::List => Open::List(PyList::empty(self.py)),
        };
        self.open.push((name.into(), open));
    }

    fn close(&mut self) {
        match self.open.pop() {
            Some((name, Open::Map(map))) => self.put(&name, map),
            Some((name, Open::List(list))) => self.put(&name, list),
            None => {}
        }
    }
}
