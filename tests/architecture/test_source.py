"""The scanner measures what it says: planted functions of known length, with every trap that braces can set."""

from tests.architecture.source import python_functions, rust_functions

RUST = r"""
fn one() {}
pub(crate) fn four<'a>(
    text: &'a str,
) -> [u8; 2] { [b'{', 0] }
trait T { fn none(&self) -> [u8; 2]; fn given(&self) { let _ = "}"; } }
fn six() {
    let _ = r#"fn fake() { "#; // fn fake2() {
    let _ = ('{', '\'', "\"}");
    /* } */
    let inner = || { 1 };
}
"""


def test_rust_functions_are_measured_past_strings_comments_and_bodiless_signatures() -> None:
    assert [(found.name, found.lines) for found in rust_functions(RUST)] == [
        ("one", 1),
        ("four", 3),
        ("given", 1),
        ("six", 6),
    ]


def test_python_functions_are_measured_from_signature_to_last_line() -> None:
    text = "def one(): ...\n\nclass A:\n    async def three(\n        self,\n    ) -> None: ...\n"
    assert [(found.name, found.line, found.lines) for found in python_functions(text)] == [
        ("one", 1, 1),
        ("three", 4, 3),
    ]
