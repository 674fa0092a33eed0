//! The contract's scripts, protocol/vectors/sessions.json and streams.json, played against a node of values: who says what, and what
//! each hears. A client of the JSON wire says (`>`) and hears (`<`; `~` in any order) objects; one of HTTP asks for a stream of events
//! (`?`, with a last id behind `@`) and hears events.
use std::collections::HashMap;

use serde_json::{Value, json};

use super::events::Events;
use super::{Place, World, open_settings};

/// One script under way.
struct Stage {
    world: World,
    clients: HashMap<String, (Place, Vec<Value>)>,
    streams: HashMap<String, (Place, Events)>,
    names: HashMap<String, String>,
}

impl Stage {
    fn new(is_pending: bool) -> Self {
        let world = World::new(open_settings(), 2, is_pending);
        let names = HashMap::from([("s".into(), "/v/1".into())]);
        Self { world, clients: HashMap::new(), streams: HashMap::new(), names }
    }

    /// A client that has not been heard of speaks JSON over WebSocket.
    fn place(&mut self, client: &str) -> Place {
        if let Some(there) = self.clients.get(client) {
            return there.0;
        }
        let place = self.world.connect(self.clients.len() % 2);
        self.clients.insert(client.to_owned(), (place, Vec::new()));
        place
    }

    /// Opens a client's stream of events; the one before is closed.
    fn open(&mut self, client: &str, way: &str, text: &str) {
        if let Some((place, _)) = self.streams.remove(client) {
            self.world.gone(place);
            self.world.turn_all();
        }
        let place = self.world.accept((self.clients.len() + self.streams.len()) % 2);
        let (target, id) = text.split_once(" @ ").map_or((text, None), |(target, id)| (target, Some(id)));
        let field = id.map(|id| format!("Last-Event-ID: {id}\r\n")).unwrap_or_default();
        let request = if way == "?" {
            format!("GET {target} HTTP/1.1\r\nHost: a\r\n{field}\r\n")
        } else {
            let fields = format!("{field}Content-Type: application/json\r\nContent-Length: {}", target.len());
            format!("POST /v1/stream HTTP/1.1\r\nHost: a\r\n{fields}\r\n\r\n{target}")
        };
        self.world.bytes(place, request.as_bytes());
        self.streams.insert(client.to_owned(), (place, Events::default()));
        self.clients.insert(client.to_owned(), (place, Vec::new()));
    }

    fn listen(&mut self) {
        self.world.turn_all();
        for (client, (place, heard)) in &mut self.clients {
            let Some((_, events)) = self.streams.get_mut(client) else {
                heard.extend(self.world.heard(*place));
                continue;
            };
            let taken = std::mem::take(&mut self.world.socket(*place).taken);
            events.read(&String::from_utf8(taken).expect("UTF-8"));
            heard.extend(events.found.drain(..).map(|event| {
                let mut value = json!({ "data": event.data });
                if event.kind != "message" {
                    value["event"] = event.kind.into();
                }
                if let Some(id) = event.id {
                    value["id"] = id.into();
                }
                value
            }));
        }
    }

    fn fill(&self, text: &str) -> String {
        let put = |text: String, (name, value): (&String, &String)| text.replace(&format!("${{{name}}}"), value);
        self.names.iter().fold(text.to_owned(), put)
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
        if way == "?" || way == "!" {
            self.open(client, way, &self.fill(text));
            return self.listen();
        }
        let place = self.place(client);
        if way == ">" {
            let text = self.fill(text);
            self.world.say(place, &text);
            return self.listen();
        }
        let wanted: Value = serde_json::from_str(text).expect("JSON");
        let heard = &mut self.clients.get_mut(client).expect("a client").1;
        while !is_resume_token(&wanted) && heard.first().is_some_and(is_resume_token) {
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

/// Resume tokens come by the clock: a script that does not ask for one passes them over.
fn is_resume_token(value: &Value) -> bool {
    value.get("resume_token").is_some() || value.get("event").is_some_and(|event| event == "resume_token")
}

/// Plays all scripts of a file, with both kinds of sockets.
pub(crate) fn play_all(file: &str) {
    let file: Value = serde_json::from_str(file).expect("JSON");
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
                    heard.retain(|value| !is_resume_token(value));
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
