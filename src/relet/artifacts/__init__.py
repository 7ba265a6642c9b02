"""Where the bytes of artifacts live: a folder or a bucket, addressed by what they are."""
