"""Files of any size: read in windows, scored, and written so that a killed job can be resumed."""
