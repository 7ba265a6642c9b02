"""One verb per file: its request, its answer, its rule."""
