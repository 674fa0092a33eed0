//! Placeholder until the generated table lands.
/// Every limit.
#[derive(Clone, Debug, Default, serde::Deserialize)]
#[serde(default)]
pub struct Limits {}
