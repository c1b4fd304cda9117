"""Tests of the three packages; layer_checks and golden_files are what they share."""
