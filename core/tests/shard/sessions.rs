//! The contract's scripts, protocol/vectors/sessions.json and streams.json, played against a node of values, with both kinds of sockets.
//! tests/conformance plays the same scripts against a real node.
use crate::world::script::play_all;

#[test]
fn sessions_go_as_the_vectors_say() {
    play_all(include_str!("../../../protocol/vectors/sessions.json"));
}

#[test]
fn streams_of_events_go_as_the_vectors_say() {
    play_all(include_str!("../../../protocol/vectors/streams.json"));
}
