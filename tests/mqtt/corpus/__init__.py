"""Some thousands of byte sequences, each with what a server must answer: generated from the standards, field by field.

`case` says what a case is; the other modules hold the cases of one family of packets each. Nothing here talks to a node:
tests/mqtt/test_corpus.py does.
"""
