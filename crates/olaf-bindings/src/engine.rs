//! Whole engines for Python: handle a packet, poll, report. The driver is Python's.

use crate::report::shown;
use numpy::{PyArray1, PyReadonlyArray1, PyReadwriteArray1, ToPyArray};
use olaf_engine::{Engine as _, Instant, JobId, PeerId, PortId, Source, TrafficClass, Verdict};
use olaf_host::whole::{Whole, WholeError};
use olaf_wire::offsets::MAX_DATAGRAM;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A switch, a server or a worker without sockets and clocks.
#[pyclass(module = "olaf._olaf", frozen)]
pub(crate) struct Engine {
    whole: Mutex<(Whole, Vec<u8>)>,
}

/// Receivers, bytes and traffic class of a datagram.
type Sent<'py> = (Vec<u32>, Bound<'py, PyBytes>, u8);

#[pymethods]
impl Engine {
    #[new]
    #[pyo3(signature = (role, config = "{}", life = 1))]
    fn new(role: &str, config: &str, life: u32) -> PyResult<Self> {
        let whole = Whole::new(role, config, life).map_err(said)?;
        Ok(Self { whole: Mutex::new((whole, vec![0; MAX_DATAGRAM])) })
    }

    #[getter]
    fn role(&self) -> &'static str {
        self.lock().0.role()
    }

    #[getter]
    fn ports(&self) -> u16 {
        self.lock().0.ports()
    }

    #[pyo3(signature = (now_ns, peer, data, port = 0, traffic_class = 0))]
    fn handle_packet(
        &self,
        now_ns: u64,
        peer: u32,
        data: &[u8],
        port: u16,
        traffic_class: u8,
    ) -> &'static str {
        let class = TrafficClass(traffic_class);
        let from = Source { port: PortId(port), peer: PeerId(peer), class };
        match self.lock().0.handle_packet(Instant(now_ns), from, data) {
            Verdict::Absorb => "absorbed",
            Verdict::Drop(reason) => reason.name(),
        }
    }

    #[pyo3(signature = (now_ns, port = 0))]
    fn poll_transmit<'py>(&self, py: Python<'py>, now_ns: u64, port: u16) -> Option<Sent<'py>> {
        let mut locked = self.lock();
        let (whole, buf) = &mut *locked;
        let sent = whole.poll_transmit(Instant(now_ns), PortId(port), buf)?;
        let to = sent.to.as_slice().iter().map(|peer| peer.0).collect();
        Some((to, PyBytes::new(py, &buf[..sent.len]), sent.class.0))
    }

    fn poll_timeout(&self) -> Option<u64> {
        self.lock().0.poll_timeout().map(|(at, _)| at.0)
    }

    fn handle_timeout(&self, now_ns: u64) {
        self.lock().0.handle_timeout(Instant(now_ns));
    }

    fn poll_event<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let event = self.lock().0.poll_event();
        event.map(|event| shown(py, |to| event.report(to))).transpose()
    }

    fn report<'py>(&self, py: Python<'py>, now_ns: u64) -> PyResult<Bound<'py, PyDict>> {
        shown(py, |to| self.lock().0.report(Instant(now_ns), to))
    }

    fn peers(&self) -> Vec<u32> {
        let mut peers = Vec::new();
        self.lock().0.peers(&mut |peer| peers.push(peer.0));
        peers
    }

    fn join(&self, now_ns: u64, parameters: PyReadonlyArray1<'_, f32>) -> PyResult<()> {
        self.lock().0.join(Instant(now_ns), parameters.as_slice()?).map_err(said)
    }

    #[pyo3(signature = (now_ns, update, *, reward = 0.0, weight = 1.0))]
    fn push(
        &self,
        now_ns: u64,
        update: PyReadonlyArray1<'_, f32>,
        reward: f64,
        weight: f64,
    ) -> PyResult<u32> {
        self.lock().0.push(Instant(now_ns), update.as_slice()?, reward, weight).map_err(said)
    }

    #[pyo3(signature = (into, newer_than = 0))]
    fn pull(&self, mut into: PyReadwriteArray1<'_, f32>, newer_than: u32) -> PyResult<Option<u32>> {
        self.lock().0.pull(into.as_slice_mut()?, newer_than).map_err(said)
    }

    fn leave(&self) -> PyResult<()> {
        self.lock().0.leave().map_err(said)
    }

    #[pyo3(signature = (job = 1))]
    fn model<'py>(
        &self,
        py: Python<'py>,
        job: u32,
    ) -> PyResult<Option<(u32, Bound<'py, PyArray1<f32>>)>> {
        let model = self.lock().0.model(JobId(job)).map_err(said)?;
        Ok(model.map(|(version, parameters)| (version, parameters.to_pyarray(py))))
    }
}

impl Engine {
    fn lock(&self) -> MutexGuard<'_, (Whole, Vec<u8>)> {
        self.whole.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn said(error: WholeError) -> PyErr {
    PyValueError::new_err(error.to_string())
}
