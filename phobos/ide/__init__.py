"""Editor answers: pure functions from a document and an offset to offsets and plain strings. No protocol here."""
