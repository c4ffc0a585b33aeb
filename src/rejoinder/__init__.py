"""Choose the next reply in a dialogue, judge how a dialogue went, and prove which system does it better."""

__version__ = "0.1.0"
