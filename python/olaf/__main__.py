"""``python -m olaf`` is ``olaf``."""

from olaf.cli.main import main

if __name__ == "__main__":
    main()
