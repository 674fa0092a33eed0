//! A deliberately broken node: the real engine on a hidden port, and a way out that loses, repeats, reorders or hides. It is a
//! program of its own that no other crate depends on, so that the released engine has no line of it.
//!
//!     godwit-mutants --mutation lose --each 10000 [--client HOST:PORT] [--set limits.NAME=VALUE …]
//!
//! Says `listening client=HOST:PORT` like a node, and lives until it is killed.

mod mutation;
mod relay;

use std::io::{self, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use godwit_engine::Engine;
use serde_json::{Map, Value, json};

use mutation::{Mutant, Mutation};

/// What the command line says.
struct Asked {
    mutation: Mutation,
    each: u64,
    client: String,
    limits: Map<String, Value>,
}

fn main() -> io::Result<()> {
    let asked = read_arguments(std::env::args().skip(1)).map_err(io::Error::other)?;
    let engine = Engine::new(&settings(&asked).to_string()).map_err(io::Error::other)?;
    let started = engine.start()?;
    let Some((_, hidden)) = started.addresses.first().cloned() else { return Err(io::Error::other("no address")) };
    let listener = TcpListener::bind(&asked.client)?;
    let mutant = Arc::new(Mutant::new(asked.mutation, asked.each));
    let mut out = io::stdout();
    writeln!(out, "listening client={} admin=none", listener.local_addr()?)?;
    out.flush()?;
    relay::accept(&listener, hidden, &mutant);
    Ok(())
}

fn settings(asked: &Asked) -> Value {
    let epoch_ms = SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |since| since.as_millis() as u64);
    json!({
        "node": "mutants", "run": epoch_ms, "epoch": epoch_ms, "shards": 1, "driver": "readiness",
        "listeners": [{"name": "client", "address": "127.0.0.1:0"}],
        "limits": asked.limits,
        "anonymous": [{"pattern": "/**", "actions": "both", "verdict": "allow"}],
    })
}

/// A node's own flags are taken too; those that say nothing here are passed over.
fn read_arguments(mut words: impl Iterator<Item = String>) -> Result<Asked, String> {
    let mut asked = Asked { mutation: Mutation::None, each: 10_000, client: "127.0.0.1:0".into(), limits: Map::new() };
    while let Some(word) = words.next() {
        let value = words.next().ok_or_else(|| format!("{word} needs a value"))?;
        match word.as_str() {
            "--mutation" => asked.mutation = Mutation::read(&value)?,
            "--each" => asked.each = value.parse().map_err(|_| format!("--each {value} is no number"))?,
            "--client" => asked.client = value,
            "--set" => {
                if let Some((name, number)) = value.strip_prefix("limits.").and_then(|rest| rest.split_once('=')) {
                    let number: u64 = number.parse().map_err(|_| format!("{value} is no limit"))?;
                    asked.limits.insert(name.to_owned(), json!(number));
                }
            }
            _ => {}
        }
    }
    Ok(asked)
}
