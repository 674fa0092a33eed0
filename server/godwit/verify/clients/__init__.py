"""Those who use Godwit in a run: publishers, subscribers that hear the wire, subscribers through the libraries.

`raw` hears the node itself; `library` and `javascript` hear what a user of the client would; `publisher` writes the expected history.
"""
