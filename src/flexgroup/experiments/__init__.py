"""Published figures and tables as data: what to run, what to show, what the paper says."""
