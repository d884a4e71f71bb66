"""How often Python looks for circles while programs are made."""

import gc

from dojo_core.garbage import MADE, looking_seldom


def test_what_was_set_comes_back_when_the_last_of_several_is_done():
    usual = gc.get_threshold()
    try:
        gc.set_threshold(700, 10, 10)
        one, two = looking_seldom(), looking_seldom()
        with one:
            two.__enter__()  # another thread's, say, which goes on for longer
            assert gc.get_threshold()[0] == MADE
        assert gc.get_threshold()[0] == MADE
        two.__exit__(None, None, None)
        assert gc.get_threshold() == (700, 10, 10)
    finally:
        gc.set_threshold(*usual)
