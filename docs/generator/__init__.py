"""Parts of pages that are read from the code: one module for each kind of part."""
