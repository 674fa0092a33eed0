//! Patterns and rights against brute force: every question is answered subject by subject over a small universe that holds
//! each segment a pattern can name, one it cannot, and one more level than any pattern has.
use godwit_core::rights::{Action, DISPATCH, Rights, Rule, SharedRules, Verdict};
use godwit_core::settings::RuleSettings;
use godwit_core::subject::{Pattern, Selector, check_subject};

const PATTERNS: [&str; 19] = [
    "/a", "/*", "/**", "/$s", "/$s/**", "/$s/*", "/a/a", "/a/b", "/a/*", "/a/**", "/*/a", "/*/b", "/*/*", "/*/**",
    "/b/**", "/a/*/**", "/*/a/**", "/a/a/**", "/b/*",
];

fn pattern(text: &str) -> Pattern {
    Pattern::parse(text).unwrap_or_else(|refusal| panic!("{}", refusal.reason))
}

fn patterns() -> Vec<Pattern> {
    PATTERNS.iter().map(|text| pattern(text)).collect()
}

fn universe() -> Vec<String> {
    let mut level = vec![String::new()];
    let mut all = Vec::new();
    for _ in 0..4 {
        let segments = ["a", "b", "", "$s"];
        level = level.iter().flat_map(|base| segments.map(|segment| format!("{base}/{segment}"))).collect();
        all.extend(level.iter().cloned());
    }
    all
}

/// Matching as one would first write it.
fn holds(pattern: &str, subject: &str) -> bool {
    let wanted: Vec<&str> = pattern.split('/').skip(1).collect();
    let given: Vec<&str> = subject.split('/').skip(1).collect();
    fn rest(wanted: &[&str], given: &[&str], is_first: bool) -> bool {
        let is_own = is_first && given.first().is_some_and(|segment| segment.starts_with('$'));
        match (wanted, given) {
            ([], []) => true,
            (["**"], _) => !is_own,
            (["*", wanted @ ..], [_, given @ ..]) => !is_own && rest(wanted, given, false),
            ([name, wanted @ ..], [segment, given @ ..]) => name == segment && rest(wanted, given, false),
            _ => false,
        }
    }
    rest(&wanted, &given, true)
}

#[test]
fn a_pattern_matches_overlaps_and_covers_as_its_subjects_say() {
    let universe = universe();
    for one in patterns() {
        let held: Vec<bool> = universe.iter().map(|subject| holds(one.text(), subject)).collect();
        for (subject, is_held) in universe.iter().zip(&held) {
            assert_eq!(one.matches(subject), *is_held, "{} and {subject}", one.text());
            let below = subject.starts_with(one.prefix()) || format!("{subject}/") == one.prefix();
            assert!(!is_held || below, "{} does not lie below {}", subject, one.prefix());
        }
        for other in patterns() {
            let both = universe
                .iter()
                .zip(&held)
                .filter(|(subject, is_held)| **is_held && holds(other.text(), subject))
                .count();
            assert_eq!(one.overlaps(&other), both > 0, "{} and {}", one.text(), other.text());
            let all = universe.iter().filter(|subject| holds(other.text(), subject)).count();
            assert_eq!(one.covers(&other), both == all, "{} over {}", one.text(), other.text());
        }
    }
}

#[test]
fn of_two_patterns_of_a_subject_the_one_that_holds_less_is_not_the_less_specific() {
    for one in patterns() {
        for other in patterns() {
            assert_eq!(one.compare_specificity(&other), other.compare_specificity(&one).reverse());
            let is_within = other.covers(&one) && !one.covers(&other);
            if is_within {
                assert!(one.compare_specificity(&other).is_gt(), "{} in {}", one.text(), other.text());
            }
            // An order, so that rules can be sorted by it.
            for third in patterns() {
                let (first, second) = (one.compare_specificity(&other), other.compare_specificity(&third));
                assert!(first.is_lt() || second.is_lt() || one.compare_specificity(&third).is_ge());
            }
        }
    }
}

fn rule(pattern: &str, verdict: &str) -> RuleSettings {
    RuleSettings { pattern: pattern.into(), actions: "subscribe".into(), verdict: verdict.into() }
}

fn compile(rules: &[RuleSettings]) -> Rights {
    Rights::compile(rules).unwrap_or_else(|refusal| panic!("{}", refusal.reason))
}

/// The most specific rule that holds the subject; deny before ask before allow.
fn judge(rules: &[RuleSettings], subject: &str) -> Verdict {
    let held = rules.iter().filter(|rule| holds(&rule.pattern, subject));
    let strictness = |rule: &RuleSettings| ["allow", "ask", "deny"].iter().position(|word| *word == rule.verdict);
    let best = held.max_by(|a, b| {
        pattern(&a.pattern).compare_specificity(&pattern(&b.pattern)).then(strictness(a).cmp(&strictness(b)))
    });
    match best.map_or("deny", |rule| &rule.verdict) {
        "allow" => Verdict::Allow,
        "ask" => Verdict::Ask,
        _ => Verdict::Deny,
    }
}

fn check_rules(rules: &[RuleSettings], universe: &[String]) {
    let rights = compile(rules);
    let verdicts: Vec<Verdict> = universe.iter().map(|subject| judge(rules, subject)).collect();
    for (subject, verdict) in universe.iter().zip(&verdicts) {
        assert_eq!(rights.judge_subject(Action::Subscribe, subject), *verdict, "{subject} under {rules:?}");
        assert_eq!(rights.judge_subject(Action::Publish, subject), Verdict::Deny);
    }
    for asked in patterns().iter().filter(|pattern| pattern.has_wildcard()) {
        let answer = rights.judge_pattern(Action::Subscribe, asked);
        let within =
            || universe.iter().zip(&verdicts).filter(|(subject, _)| holds(asked.text(), subject)).map(|(_, v)| *v);
        let is_denied_anywhere =
            rules.iter().any(|rule| rule.verdict == "deny" && pattern(&rule.pattern).overlaps(asked));
        if is_denied_anywhere || within().any(|verdict| verdict == Verdict::Deny) {
            assert_eq!(answer, Verdict::Deny, "{} under {rules:?}", asked.text());
        }
        match answer {
            Verdict::Allow => assert!(within().all(|verdict| verdict == Verdict::Allow), "{} {rules:?}", asked.text()),
            Verdict::Ask => assert!(within().all(|verdict| verdict != Verdict::Deny)),
            Verdict::Deny => {}
        }
    }
}

#[test]
fn rights_decide_as_brute_force_does() {
    let universe: Vec<String> = universe().into_iter().filter(|subject| subject.matches('/').count() <= 3).collect();
    let verdicts = ["allow", "deny", "ask"];
    let few = ["/**", "/a/**", "/a/*", "/*/a", "/a/a", "/$s/**", "/*/*"];
    let rules: Vec<RuleSettings> = few.iter().flat_map(|text| verdicts.map(|verdict| rule(text, verdict))).collect();
    check_rules(&[], &universe);
    for one in &rules {
        check_rules(std::slice::from_ref(one), &universe);
        for other in &rules {
            check_rules(&[one.clone(), other.clone()], &universe);
        }
    }
    // Three at a time, where the third changes what two say.
    for (at, one) in rules.iter().enumerate().step_by(2) {
        for (next, other) in rules.iter().enumerate().skip(at).step_by(3) {
            for third in rules.iter().skip(next).step_by(4) {
                check_rules(&[third.clone(), one.clone(), other.clone()], &universe);
            }
        }
    }
}

#[test]
fn many_rules_decide_as_brute_force_does() {
    let (patterns, universe) = (patterns(), universe());
    let mut drawn = 1_u64;
    let mut draw = |below: usize| {
        drawn = drawn.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (drawn >> 33) as usize % below
    };
    for _ in 0..100 {
        let rules: Vec<RuleSettings> = (0..8 + draw(24))
            .map(|_| rule(patterns[draw(patterns.len())].text(), ["allow", "deny", "ask"][draw(3)]))
            .collect();
        let rights = compile(&rules);
        for subject in &universe {
            assert_eq!(rights.judge_subject(Action::Subscribe, subject), judge(&rules, subject), "{subject} {rules:?}");
        }
    }
}

#[test]
fn what_was_answered_is_not_asked_again() {
    let rights = compile(&[rule("/a/**", "ask"), rule("/a/no/**", "deny")]);
    let answer = |text: &str, verdict| {
        let rule = Rule::compile(&rule(text, "allow")).expect("a rule");
        Rule { subscribe: true, publish: false, verdict, ..rule }
    };
    assert_eq!(rights.judge_subject(Action::Subscribe, "/a/b"), Verdict::Ask);
    let keep = |rule: Rule| rights.keep(&rule, 1, 10_000);
    keep(answer("/a/b", Verdict::Allow));
    keep(answer("/a/c/*", Verdict::Allow));
    assert_eq!(rights.judge_subject(Action::Subscribe, "/a/b"), Verdict::Allow);
    assert_eq!(rights.judge_subject(Action::Subscribe, "/a/d"), Verdict::Ask);
    assert_eq!(rights.judge_pattern(Action::Subscribe, &pattern("/a/c/*")), Verdict::Allow);
    assert_eq!(rights.judge_pattern(Action::Subscribe, &pattern("/a/**")), Verdict::Deny);
    keep(answer("/a/b", Verdict::Deny));
    keep(answer("/a/no/1", Verdict::Allow));
    assert_eq!(rights.judge_subject(Action::Subscribe, "/a/b"), Verdict::Deny);
    assert_eq!(rights.judge_subject(Action::Subscribe, "/a/no/1"), Verdict::Deny);
}

#[test]
fn an_answer_belongs_to_its_question() {
    let rights = compile(&[RuleSettings { actions: "both".into(), ..rule("/**", "ask") }]);
    let answer = |text: &str, action, verdict| {
        let rule = Rule::compile(&rule(text, "allow")).expect("a rule");
        Rule { subscribe: action == Action::Subscribe, publish: action == Action::Publish, verdict, ..rule }
    };
    for verdict in [Verdict::Allow, Verdict::Deny] {
        rights.keep(&answer("/orders/**", Action::Publish, verdict), 1, 10_000);
        assert_eq!(rights.judge_pattern(Action::Publish, &pattern("/orders/**")), verdict);
        assert_eq!(rights.judge_pattern(Action::Publish, &pattern("/orders/mine/**")), Verdict::Ask);
        assert_eq!(rights.judge_subject(Action::Publish, "/orders/mine/1"), Verdict::Ask);
        assert_eq!(rights.judge_pattern(Action::Subscribe, &pattern("/orders/**")), Verdict::Ask);
    }
}

#[test]
fn a_word_that_is_none_is_refused() {
    let whole = rule("/a", "allow");
    assert!(Rights::compile(&[RuleSettings { actions: "read".into(), ..whole.clone() }]).is_err());
    assert!(Rights::compile(&[RuleSettings { verdict: "maybe".into(), ..whole.clone() }]).is_err());
    assert!(Rights::compile(&[RuleSettings { pattern: "a".into(), ..whole }]).is_err());
}

#[test]
fn legal_and_illegal_names() {
    let longest = format!("/{}", "a".repeat(1_023));
    for legal in ["/a", "/a*b/c", "/a/***", "/é/雪", "/a b", "/a/$b", &longest] {
        assert!(check_subject(legal).is_ok(), "{legal}");
        assert_eq!(Selector::parse(legal).ok(), Some(Selector::Subject(legal.into())));
    }
    let long = format!("{longest}a");
    for illegal in ["", "/", "a/b", "/a\0", "/a\n", "/a\u{85}", &long] {
        assert!(check_subject(illegal).is_err() && Selector::parse(illegal).is_err(), "{illegal:?}");
    }
    for pattern in ["/*", "/**", "/a/*", "/a/*/c/**"] {
        assert!(check_subject(pattern).is_err());
        assert!(matches!(Selector::parse(pattern), Ok(Selector::Pattern(_))), "{pattern}");
    }
    assert!(Pattern::parse("/a/**/c").is_err() && Pattern::parse("/**/**").is_err());
    assert!(check_subject("/$s").is_err() && Selector::parse("/$s").is_ok());
}

#[test]
fn ten_thousand_rules_judge_as_one_by_one_and_are_held_once() {
    let mut rules: Vec<RuleSettings> = (0..3_000).map(|n| rule(&format!("/rooms/{n}/**"), "allow")).collect();
    rules.extend((0..3_000).map(|n| rule(&format!("/rooms/{n}/secret"), "deny")));
    rules.extend([
        rule("/rooms/*/open/*", "ask"),
        rule("/**", "allow"),
        rule("/$node/**", "allow"),
        rule("/rooms/7", "deny"),
    ]);
    let rights = compile(&rules);
    let judged = |subject: &str| rights.judge_subject(Action::Subscribe, subject);
    for (subject, verdict) in [
        ("/rooms/2999/a", Verdict::Allow),
        ("/rooms/2999", Verdict::Allow),
        ("/rooms/7", Verdict::Deny),
        ("/rooms/7/secret", Verdict::Deny),
        ("/rooms/7/open/x", Verdict::Allow),
        ("/rooms/none/open/x", Verdict::Ask),
        ("/elsewhere", Verdict::Allow),
        ("/$node/stats", Verdict::Allow),
        ("/$other", Verdict::Deny),
    ] {
        assert_eq!(judged(subject), verdict, "{subject}");
        let mut closest: Vec<&RuleSettings> =
            rules.iter().filter(|one| pattern(&one.pattern).matches(subject)).collect();
        closest.sort_by(|a, b| pattern(&b.pattern).compare_specificity(&pattern(&a.pattern)));
        let expected = closest.first().map_or("deny", |one| &*one.verdict);
        assert_eq!(format!("{verdict:?}").to_lowercase(), expected, "{subject}");
    }
    let mut shared = SharedRules::default();
    let mut held: Vec<Rights> = (0..3).map(|_| compile(&rules)).collect();
    held.iter_mut().for_each(|one| one.share(&mut shared));
    let mut other = compile(&rules[1..]);
    other.share(&mut shared);
    assert!(held[1].has_same_rules(&held[0]) && held[2].has_same_rules(&held[0]) && !other.has_same_rules(&held[0]));
}

/// Rights by rules `(pattern, actions, verdict)`, of dispatch or of somebody else.
fn rights_of(source: Option<&str>, rules: &[(&str, &str, &str)]) -> Rights {
    let rules: Vec<_> = rules
        .iter()
        .map(|(pattern, actions, verdict)| RuleSettings {
            pattern: (*pattern).into(),
            actions: (*actions).into(),
            verdict: (*verdict).into(),
        })
        .collect();
    let mut rights = Rights::compile(&rules).unwrap_or_else(|refusal| panic!("{}", refusal.reason));
    rights.source = source.map(Into::into);
    rights
}

#[test]
fn only_dispatch_publishes_and_watches_on_its_subjects() {
    let everything = [("/**", "both", "allow"), ("/$inbox/**", "both", "allow"), ("/$dispatch/**", "both", "allow")];
    for subject in ["/$inbox/shop/ann", "/$dispatch/shop/notifications/7"] {
        for source in [DISPATCH, "jwt:godwit-dispatch\nkey"] {
            let dispatch = rights_of(Some(source), &everything);
            assert_eq!(dispatch.judge_subject(Action::Publish, subject), Verdict::Allow);
            assert_eq!(dispatch.judge_pattern(Action::Publish, &pattern("/$inbox/**")), Verdict::Allow);
        }
        for source in [None, Some("https://login.example"), Some("godwit-dispatcher"), Some("x\ngodwit-dispatch")] {
            let other = rights_of(source, &everything);
            assert_eq!(other.judge_subject(Action::Publish, subject), Verdict::Deny);
            assert_eq!(other.judge_pattern(Action::Publish, &pattern("/$inbox/**")), Verdict::Deny);
            let named = rights_of(source, &[(subject, "both", "allow")]);
            assert_eq!(named.judge_subject(Action::Publish, subject), Verdict::Deny);
        }
        assert_eq!(rights_of(Some(DISPATCH), &[]).judge_subject(Action::Publish, subject), Verdict::Deny);
    }
}

#[test]
fn others_subscribe_to_an_inbox_only_by_a_rule_that_names_it() {
    let wide = rights_of(Some("x"), &[("/**", "both", "allow"), ("/$inbox/**", "subscribe", "allow")]);
    assert_eq!(wide.judge_subject(Action::Subscribe, "/$inbox/shop/ann"), Verdict::Deny);
    assert_eq!(wide.judge_pattern(Action::Subscribe, &pattern("/$inbox/**")), Verdict::Deny);
    let own = rights_of(Some("x"), &[("/$inbox/shop/ann/**", "subscribe", "allow")]);
    assert_eq!(own.judge_subject(Action::Subscribe, "/$inbox/shop/ann"), Verdict::Allow);
    assert_eq!(own.judge_pattern(Action::Subscribe, &pattern("/$inbox/shop/ann/**")), Verdict::Allow);
    assert_eq!(own.judge_subject(Action::Subscribe, "/$inbox/shop/bob"), Verdict::Deny);
    assert_eq!(own.judge_pattern(Action::Subscribe, &pattern("/$inbox/shop/*")), Verdict::Deny);
    let asked = rights_of(None, &[("/$inbox/**", "subscribe", "ask")]);
    assert_eq!(asked.judge_subject(Action::Subscribe, "/$inbox/shop/ann"), Verdict::Ask);
    assert_eq!(asked.judge_pattern(Action::Subscribe, &pattern("/$inbox/**")), Verdict::Deny);
}
