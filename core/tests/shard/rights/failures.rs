//! Tokens that were refused: guessing is slow, one wrong token that is shown all the time hinders nobody else, and who has come
//! already is not hindered by what its neighbours try.
use std::net::SocketAddr;
use std::sync::Arc;

use super::world;
use crate::world::{Place, World};
use godwit_core::codes::Code;
use godwit_core::holder::Holder;
use godwit_core::report::{Order, Report};
use godwit_core::rights::Rights;

fn address() -> SocketAddr {
    ([192, 0, 2, 1], 4000).into()
}

fn request(token: &str) -> Vec<u8> {
    format!("GET /v1/snapshot?subject=/a HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer {token}\r\n\r\n").into_bytes()
}

/// The status of the answer to who shows this token on that connection.
fn ask(world: &mut World, place: Place, token: &str) -> String {
    world.bytes(place, &request(token));
    world.turn(0);
    judge_tokens(world);
    let taken = std::mem::take(&mut world.socket(place).taken);
    String::from_utf8_lossy(&taken).chars().take("HTTP/1.1 200".len()).collect()
}

/// What the token that somebody at this address shows is answered with, where `good` is granted and all else refused.
fn try_token(world: &mut World, token: &str) -> String {
    let place = world.accept_from(0, address(), 0);
    ask(world, place, token)
}

fn judge_tokens(world: &mut World) {
    for report in world.reports() {
        if let Report::Authorize { connection, token: Some(token), .. } = report {
            let order = if token.starts_with("good") {
                let (holder, rights) = (Holder::new("", "basic", "ann"), Arc::new(Rights::default()));
                Order::Grant { connection, holder, rights, expires_ms: None, token: None }
            } else {
                Order::Refuse { connection, code: Code::TokenInvalid, reason: String::new() }
            };
            world.order(0, order);
        }
    }
    world.turn(0);
}

#[test]
fn a_token_that_is_wrong_again_and_again_counts_once_against_its_address() {
    let mut world = world(|limits| limits.token_failures_per_minute_per_address_max = 3);
    let wrong: Vec<bool> = (0..40).map(|_| try_token(&mut world, "old") == "HTTP/1.1 401").collect();
    assert_eq!(wrong.iter().filter(|is_judged| **is_judged).count(), 3, "it is judged as often as guesses are");
    assert_eq!(try_token(&mut world, "good"), "HTTP/1.1 403", "who shows another one is judged");
    for guess in ["b", "c", "d"] {
        try_token(&mut world, guess);
    }
    assert_eq!(try_token(&mut world, "good"), "HTTP/1.1 429", "different ones are guesses");
}

#[test]
fn who_has_come_renews_over_http_whatever_its_neighbours_tried() {
    let mut world = world(|limits| limits.token_failures_per_minute_per_address_max = 2);
    let place = world.accept_from(0, address(), 0);
    assert_eq!(ask(&mut world, place, "good-1"), "HTTP/1.1 403");
    for guess in ["a", "b", "c", "d"] {
        try_token(&mut world, guess);
    }
    assert_eq!(ask(&mut world, place, "good-2"), "HTTP/1.1 403");
    assert_eq!(ask(&mut world, place, "bad-1"), "HTTP/1.1 401", "one guess of it is judged");
    assert_eq!(ask(&mut world, place, "bad-2"), "", "and ends its connection");
}

#[test]
fn a_wrong_renewal_counts_against_its_holder_and_not_against_neighbours() {
    let mut world = world(|limits| limits.token_failures_per_minute_per_address_max = 2);
    let renew = |world: &mut World, token: &str| {
        let place = world.accept_from(0, address(), 0);
        assert_eq!(ask(world, place, "good"), "HTTP/1.1 403", "who comes is not hindered");
        ask(world, place, token)
    };
    assert_eq!(renew(&mut world, "bad-1"), "HTTP/1.1 401");
    assert_eq!(renew(&mut world, "bad-2"), "HTTP/1.1 401");
    assert_eq!(renew(&mut world, "bad-3"), "HTTP/1.1 429", "its holder has guessed often enough");
    assert_eq!(renew(&mut world, "good-2"), "HTTP/1.1 429", "whatever it shows");
    for _ in 0..10 {
        assert_eq!(try_token(&mut world, "good"), "HTTP/1.1 403", "a neighbour");
    }
    assert_eq!(try_token(&mut world, "bad-4"), "HTTP/1.1 401", "whose guesses have a count of their own");
}
