"""Phobos as data: scalar types, built-ins, attributes and `ctx` members, one table each, with their documentation."""
