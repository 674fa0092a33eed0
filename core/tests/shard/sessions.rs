//! The contract's scripts, protocol/vectors/sessions.json, played against a node of values, with both kinds of sockets.
//! tests/conformance plays the same scripts against a real node.

use std::collections::HashMap;

use crate::world::{Place, World, open_settings};
use serde_json::Value;

const SESSIONS: &str = include_str!("../../../protocol/vectors/sessions.json");

/// One script under way.
struct Stage {
    world: World,
    clients: HashMap<String, (Place, Vec<Value>)>,
    names: HashMap<String, String>,
}

impl Stage {
    fn new(is_pending: bool) -> Self {
        let world = World::new(open_settings(), 2, is_pending);
        Self { world, clients: HashMap::new(), names: HashMap::from([("s".into(), "/v/1".into())]) }
    }

    fn place(&mut self, client: &str) -> Place {
        if let Some(there) = self.clients.get(client) {
            return there.0;
        }
        let place = self.world.connect(self.clients.len() % 2);
        self.clients.insert(client.to_owned(), (place, Vec::new()));
        place
    }

    fn listen(&mut self) {
        self.world.turn_all();
        for (place, heard) in self.clients.values_mut() {
            heard.extend(self.world.heard(*place));
        }
    }

    fn play(&mut self, line: &str) {
        if let Some(ms) = line.strip_prefix("pass ") {
            for _ in 0..ms.parse::<u64>().expect("a number") / 50 {
                self.world.advance(50);
                self.listen();
            }
            return;
        }
        let (client, rest) = line.split_once(' ').expect("a client");
        let (way, text) = rest.split_once(' ').expect("a way");
        let place = self.place(client);
        if way == ">" {
            let text = self
                .names
                .iter()
                .fold(text.to_owned(), |text, (name, value)| text.replace(&format!("${{{name}}}"), value));
            self.world.say(place, &text);
            self.listen();
            return;
        }
        let wanted: Value = serde_json::from_str(text).expect("JSON");
        let heard = &mut self.clients.get_mut(client).expect("a client").1;
        let is_passed = |value: &Value| wanted.get("mark").is_none() && value.get("mark").is_some();
        while heard.first().is_some_and(is_passed) {
            heard.remove(0);
        }
        let reach = if way == "~" { heard.len() } else { 1 };
        for place in 0..reach.min(heard.len()) {
            let mut names = self.names.clone();
            if fits(&wanted, &heard[place], &mut names) {
                self.names = names;
                heard.remove(place);
                return;
            }
        }
        panic!("expected {line}\nheard {heard:?}\nwith {:?}", self.names);
    }
}

/// Whether `found` is what `wanted` describes; binds the names that are new.
fn fits(wanted: &Value, found: &Value, names: &mut HashMap<String, String>) -> bool {
    match (wanted, found) {
        (Value::String(template), found) if template.starts_with("${") && template.ends_with('}') => {
            let name = &template[2..template.len() - 1];
            let text = found.as_str().map_or_else(|| found.to_string(), str::to_owned);
            name.is_empty() || name.contains('}') && fits_text(template, &text, names) || bind(name, text, names)
        }
        (Value::String(template), Value::String(text)) => fits_text(template, text, names),
        (Value::Object(wanted), Value::Object(found)) => {
            wanted.len() == found.len()
                && wanted.iter().all(|(key, value)| found.get(key).is_some_and(|found| fits(value, found, names)))
        }
        (Value::Array(wanted), Value::Array(found)) => {
            wanted.len() == found.len() && wanted.iter().zip(found).all(|(wanted, found)| fits(wanted, found, names))
        }
        _ => wanted == found,
    }
}

fn bind(name: &str, text: String, names: &mut HashMap<String, String>) -> bool {
    !name.contains('}') && *names.entry(name.to_owned()).or_insert_with(|| text.clone()) == text
}

/// A text with names in it; a new name reaches to the template's next character.
fn fits_text(template: &str, text: &str, names: &mut HashMap<String, String>) -> bool {
    let Some((before, rest)) = template.split_once("${") else { return template == text };
    let Some(text) = text.strip_prefix(before) else { return false };
    let (name, after) = rest.split_once('}').expect("a name's end");
    if let Some(value) = names.get(name).cloned() {
        return text.strip_prefix(value.as_str()).is_some_and(|text| fits_text(after, text, names));
    }
    let length = after.chars().next().map_or(Some(text.len()), |next| text.find(next));
    let Some(length) = length else { return false };
    names.insert(name.to_owned(), text[..length].to_owned());
    fits_text(after, &text[length..], names)
}

#[test]
fn sessions_go_as_the_vectors_say() {
    let file: Value = serde_json::from_str(SESSIONS).expect("JSON");
    let mut failures = Vec::new();
    for case in file["cases"].as_array().expect("cases") {
        for is_pending in [false, true] {
            let name = format!("{} ({})", case["name"], case["clause"]);
            let played = std::panic::catch_unwind(|| {
                let mut stage = Stage::new(is_pending);
                for line in case["lines"].as_array().expect("lines") {
                    stage.play(line.as_str().expect("a line"));
                }
                for (client, (_, heard)) in &mut stage.clients {
                    heard.retain(|value| value.get("mark").is_none());
                    assert!(heard.is_empty(), "{client} heard {heard:?} too");
                }
            });
            if let Err(fault) = played {
                failures.push(format!("{name}: {}", fault.downcast_ref::<String>().cloned().unwrap_or_default()));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}
