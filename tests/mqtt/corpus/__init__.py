"""Some thousands of byte sequences, each with what a server must answer: generated from the standards, field by field.

`case` defines a case; each other module has the cases of one family of packets. Nothing here connects to a node:
tests/mqtt/test_corpus.py does.
"""
