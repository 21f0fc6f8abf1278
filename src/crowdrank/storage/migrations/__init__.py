"""The schema as it came to be, one file a version; a database is brought up to the last when it is opened."""
