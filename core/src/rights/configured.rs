//! The rules that the configuration gives the holders of an authority, with `{identity}` and `{tenant}` filled in for one holder. Owns
//! that a name is never more than one segment, as `server/godwit/access/templates.py` does for those who connect.
use crate::holder::Holder;
use crate::settings::{RuleSettings, Settings};
use crate::subject::check_subject;

impl Settings {
    /// The rules that a holder has from the configuration now. `voucher`: as `trusts` takes it. None: a name that they need cannot be
    /// part of a subject, so that the holder would be refused.
    pub fn rules_for(&self, voucher: &str, holder: &Holder) -> Option<Vec<RuleSettings>> {
        let authority = voucher.split('\n').next().unwrap_or_default();
        let rules = self.authority_rules.get(authority).map(Vec::as_slice).unwrap_or_default();
        rules.iter().map(|rule| Some(RuleSettings { pattern: fill(&rule.pattern, holder)?, ..rule.clone() })).collect()
    }
}

fn fill(template: &str, holder: &Holder) -> Option<String> {
    let mut filled = template.to_owned();
    for (braces, name) in [("{identity}", &holder.identity), ("{tenant}", &holder.tenant)] {
        if filled.contains(braces) {
            let is_segment = !name.contains(['/', '{']) && check_subject(&format!("/{name}")).is_ok();
            filled = is_segment.then(|| filled.replace(braces, name))?;
        }
    }
    Some(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill_for(template: &str, tenant: &str, identity: &str) -> Option<String> {
        fill(template, &Holder::new(tenant, "jwt:https://id", identity))
    }

    #[test]
    fn a_name_fills_one_segment_and_never_more() {
        assert_eq!(fill_for("/t/{tenant}/{identity}/**", "acme", "ann").as_deref(), Some("/t/acme/ann/**"));
        assert_eq!(fill_for("/all/**", "", "**").as_deref(), Some("/all/**"), "a template without names needs none");
        for identity in ["**", "*", "a/b", "$node", "", "{tenant}"] {
            assert_eq!(fill_for("/u/{identity}", "acme", identity), None, "{identity}");
        }
        assert_eq!(fill_for("/t/{tenant}", "", "ann"), None, "a holder without a tenant");
    }

    #[test]
    fn the_rules_are_those_of_the_authority_whatever_key_vouched() {
        let rule = |pattern: &str| RuleSettings {
            pattern: pattern.into(),
            actions: "publish".into(),
            verdict: "allow".into(),
        };
        let rules = [("jwt:https://id".to_owned(), vec![rule("/u/{identity}")])];
        let settings = Settings { authority_rules: rules.into(), ..Settings::default() };
        let holder = Holder::new("", "jwt:https://id", "ann");
        for voucher in ["jwt:https://id", "jwt:https://id\nkey"] {
            assert_eq!(settings.rules_for(voucher, &holder), Some(vec![rule("/u/ann")]), "{voucher}");
        }
        for voucher in ["jwt:https://id2", "jwt:https://i", "", "certificate\nkey"] {
            assert_eq!(settings.rules_for(voucher, &holder), Some(Vec::new()), "{voucher}");
        }
    }
}
