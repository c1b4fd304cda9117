"""Decoding: from a model and its inputs to ids. Modules are imported where they are used."""
