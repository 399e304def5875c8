"""What the tests of the watch share."""

import pytest

pytest.register_assert_rewrite("tests.watching.loops")
