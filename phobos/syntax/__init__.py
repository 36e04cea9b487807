"""Text to tree: characters, tokens, spans; no meaning."""
