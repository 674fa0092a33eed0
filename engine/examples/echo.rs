//! A node that sends every WebSocket message back as it came: what conformance suites (Autobahn|Testsuite) ask a server for.
//! It is the engine as it stands, with the limits that the suite's largest messages need. Says where it listens, and goes on
//! until its input ends.
#![allow(clippy::disallowed_macros, reason = "a program says where it listens")]

use std::io::Read;

use godwit_engine::Engine;

const SETTINGS: &str = r#"{
    "node": "echo", "run": 1, "epoch": 1, "shards": 1, "echoes": true, "compresses": true, "anonymous": [],
    "listeners": [{"name": "client", "address": "127.0.0.1:0"}],
    "limits": {"message_bytes_max": 67108864, "fragments_per_message_max": 16777216, "compress_bytes_min": 16,
               "message_ms_max": 600000, "close_ms_max": 1000}
}"#;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let engine = Engine::new(SETTINGS)?;
    let started = engine.start()?;
    for (name, address) in &started.addresses {
        println!("listening {name}={address}");
    }
    std::io::stdin().read_to_end(&mut Vec::new())?;
    engine.stop();
    Ok(())
}
