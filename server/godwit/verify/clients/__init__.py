"""The clients of Godwit in a run: publishers, subscribers without a library, and subscribers with the libraries. `raw`
speaks the protocol itself; `library` and `javascript` receive what a program with the client would; `publisher` writes
the expected history.
"""
