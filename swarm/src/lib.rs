//! The load generator: very many clients on the same drivers as the node.
