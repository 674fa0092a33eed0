//! An EventSource as the standard has it: events that are whole, and the id of the last of them.
use serde_json::Value;

/// One event; its type is `message` where it has none.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub kind: String,
    pub id: Option<String>,
    pub data: Value,
}

#[derive(Debug, Default)]
pub(crate) struct Events {
    pub text: String,
    pub last_id: Option<String>,
    pub found: Vec<Event>,
}

impl Events {
    /// Takes in what the socket took; the head of the answer, which is 200, is passed over.
    pub(crate) fn read(&mut self, text: &str) {
        self.text.push_str(text);
        if self.text.starts_with("HTTP/1.1 200 ") {
            let Some(end) = self.text.find("\r\n\r\n") else { return };
            self.text.drain(..end + 4);
        }
        while let Some(end) = self.text.find("\n\n") {
            let event: String = self.text.drain(..end + 2).collect();
            let (mut kind, mut id, mut data) = ("message".to_owned(), None, Vec::new());
            for line in event.lines().filter(|line| !line.is_empty()) {
                match line.split_once(": ") {
                    Some(("id", value)) => id = Some(value.to_owned()),
                    Some(("event", name)) => name.clone_into(&mut kind),
                    Some(("data", part)) => data.push(part.to_owned()),
                    _ => assert_eq!(line, ":"),
                }
            }
            self.last_id = id.clone().or(self.last_id.take());
            if !data.is_empty() {
                let data = serde_json::from_str(&data.join("\n")).expect("JSON");
                self.found.push(Event { kind, id, data });
            }
        }
    }
}
