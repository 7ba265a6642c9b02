"""The service: every operation of the catalog over HTTP, for those whom a credential lets in."""
