"""What scripts and notebooks call: `olaf.train`, `olaf.local`."""
