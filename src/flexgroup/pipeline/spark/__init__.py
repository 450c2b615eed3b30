"""Spark itself: the Java it runs on, starting a session, and what it says when it fails."""
