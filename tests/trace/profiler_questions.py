"""What a profiler sees and leaves alone, asked of the Python that runs this; it needs the standard library alone."""

import cProfile
import importlib.util
import math
import pathlib
import pstats
import sys

FILE = pathlib.Path(__file__).parents[2] / "fnad" / "watch.py"
spec = importlib.util.spec_from_file_location("watch", FILE)
watch = importlib.util.module_from_spec(spec)
spec.loader.exec_module(watch)


def inner():
    return math.sin(0.0)


def outer():
    return hidden()


@watch.unwatched
def hidden():
    return inner()


def seen_in(run):
    found = []

    def see(frame, event, arg):
        found.append((frame.f_code, event, arg))

    with watch.profiled(see):
        run()
    return found


def what_is_seen():
    found = seen_in(inner)
    assert (inner.__code__, "call", None) in found
    assert (inner.__code__, "c_call", math.sin) in found
    assert (inner.__code__, "return", 0.0) in found
    assert sys.getprofile() is None


def what_is_not_seen():
    found = seen_in(outer)
    assert (outer.__code__, "call", None) in found
    assert not any(code is inner.__code__ for code, _, _ in found)
    assert (outer.__code__, "return", 0.0) in found


def that_another_profiler_goes_on():
    others = []

    def other(frame, event, arg):
        others.append((frame.f_code, event, arg))

    sys.setprofile(other)
    try:
        found = seen_in(outer)
        assert sys.getprofile() is other
        inner()
    finally:
        sys.setprofile(None)
    for seen in (found, others):  # nothing is hidden from it
        assert (outer.__code__, "call", None) in seen
        assert (inner.__code__, "c_call", math.sin) in seen
    assert others.count((inner.__code__, "call", None)) == 2


def that_cprofile_goes_on():
    profile = cProfile.Profile()
    profile.enable()
    found = seen_in(inner)
    outer()
    profile.disable()
    assert (inner.__code__, "call", None) in found
    names = {name for _, _, name in pstats.Stats(profile).stats}
    assert {"outer", "inner"} <= names
    assert sys.getprofile() is None


if __name__ == "__main__":
    what_is_seen()
    what_is_not_seen()
    that_another_profiler_goes_on()
    that_cprofile_goes_on()
