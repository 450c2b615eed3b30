"""Finding all that is wrong with a trace set: `report` goes through all its files and rows."""
