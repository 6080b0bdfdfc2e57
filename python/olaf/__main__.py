"""``python -m olaf`` is the same as ``olaf``."""

from olaf.cli.main import main

if __name__ == "__main__":
    main()
