//! The fields of a publish in a query: `field.NAME=` and, in base64, `field_bytes.NAME=`. To remove one takes the array form.
use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};

use super::query::{decode, invalid};
use crate::command::Refusal;
use crate::limits::Limits;
use crate::message::fields::{self, Value};

#[derive(Debug, Default)]
pub(super) struct GivenFields {
    texts: Vec<(String, String)>,
    bytes: Vec<(String, Vec<u8>)>,
}

impl GivenFields {
    /// Takes a parameter; false where it is none of these. `name` is as it stands in the query.
    pub(super) fn take(&mut self, name: &str, value: &str, limits: &Limits) -> Result<bool, Refusal> {
        let name_of = |raw| {
            decode(raw).map(Cow::into_owned).ok_or_else(|| invalid("the name of a field does not decode to text"))
        };
        if self.texts.len() + self.bytes.len() > limits.fields_max {
            return self.hold(limits).map(|_| true);
        }
        if let Some(field) = name.strip_prefix("field.") {
            self.texts.push((name_of(field)?, value.to_owned()));
        } else if let Some(field) = name.strip_prefix("field_bytes.") {
            let bytes = STANDARD.decode(value.as_bytes()).or_else(|_| URL_SAFE.decode(value.as_bytes()));
            let bytes =
                bytes.map_err(|_| invalid("field_bytes.NAME is base64, with + as %2B or in its URL-safe form"))?;
            self.bytes.push((name_of(field)?, bytes));
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    pub(super) fn hold(&self, limits: &Limits) -> Result<Vec<u8>, Refusal> {
        let texts = self.texts.iter().map(|(name, text)| (name.as_str(), Value::Text(text)));
        let bytes = self.bytes.iter().map(|(name, bytes)| (name.as_str(), Value::Bytes(bytes)));
        fields::hold(texts.chain(bytes).collect(), limits.fields_max)
    }
}
