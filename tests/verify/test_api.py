"""`olaf.verify` as a library."""

import subprocess
import sys

import olaf.verify


def test_everything_it_offers_is_there() -> None:
    homes = {name for names in olaf.verify._HOMES.values() for name in names}
    assert homes == set(olaf.verify.__all__) == set(dir(olaf.verify))
    for name in olaf.verify.__all__:
        assert getattr(olaf.verify, name) is not None


def test_a_provers_process_imports_no_more_than_it_needs() -> None:
    code = "import sys, olaf.verify.working; print('pydantic' in sys.modules, 'z3' in sys.modules)"
    said = subprocess.check_output([sys.executable, "-c", code], text=True, timeout=60)
    assert said.split() == ["False", "False"]
