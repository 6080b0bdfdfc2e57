//! What the server that signs a model and the worker that checks it agree on.

use alloc::vec::Vec;
use olaf_engine::party::Shape;
use olaf_engine::seal::Signer;
use olaf_wire::Hash;

/// The hash of a whole model.
pub(super) fn hash_of_model(signer: &dyn Signer, shape: Shape, lanes: &[f32]) -> Hash {
    let segments = (0..shape.segments()).map(|segment| &lanes[shape.range(segment)]);
    let hashes: Vec<Hash> = segments.map(|lanes| signer.hash_lanes(lanes)).collect();
    signer.hash_hashes(&hashes)
}
