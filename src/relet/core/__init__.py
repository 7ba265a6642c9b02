"""What is true, whatever the storage: words, rules and limits; no clock, input, output, thread or driver."""
