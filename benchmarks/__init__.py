"""Speed, memory and agreement against named peers, side by side in one run: `make bench` writes docs/results.md."""
