"""The layers of the recurrent core. Import them from their modules."""
