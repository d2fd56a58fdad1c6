//! Byte-exact edits of a JSON text: spans are found, replaced in a copy, and nothing else moves.
