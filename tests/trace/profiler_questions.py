"""What a profiler sees and leaves alone, asked of the Python that runs this; it needs the standard library alone."""

import cProfile
import importlib.util
import math
import pathlib
import pstats
import sys
import threading

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


def seen_in(run, **choice):
    found = []

    def see(frame, event, arg):
        found.append((frame.f_code, event, arg))

    with watch.profiled(see, **choice):
        watch.seen(run)
    return found


def what_is_seen():
    found = seen_in(inner)
    assert (inner.__code__, "call", None) in found
    assert (inner.__code__, "c_call", math.sin) in found
    assert all(event in {"call", "c_call"} for _, event, _ in found)
    assert sys.getprofile() is None


def what_is_passed_over():
    begun = [event for _, event, _ in seen_in(inner, passed={__file__})]
    assert begun == ["c_call"]
    called = [function for _, event, function in seen_in(trigonometry, asked={math.cos}) if event == "c_call"]
    assert called == [math.cos]


def trigonometry():
    return math.sin(0.0) + math.cos(0.0)


def methods():
    values = []
    values.append(1.0)
    list.append(values, 2.0)
    values.extend(*[[3.0]])
    float.fromhex("0x1p0")


def what_is_seen_of_methods():
    called = [function for code, event, function in seen_in(methods) if event == "c_call" and code is methods.__code__]
    assert [function.__name__ for function in called] == ["append", "append", "extend", "fromhex"]
    assert [function.__self__ for function in called] == [[1.0, 2.0, 3.0]] * 3 + [float]


def numbers():
    try:
        yield math.sin(0.0)
        yield math.cos(0.0)
    except ValueError:
        yield math.tan(0.0)


def what_goes_on_is_seen():
    for go_on, function in ((next, math.cos), (lambda begun: begun.throw(ValueError), math.tan)):
        begun = numbers()
        next(begun)
        found = seen_in(lambda go_on=go_on, begun=begun: go_on(begun))
        assert (numbers.__code__, "call", None) in found
        assert (numbers.__code__, "c_call", function) in found


def that_threads_see_their_own():
    both, found = threading.Barrier(2), {}

    def run(function):
        def meet_and_call():
            both.wait()
            function()
            both.wait()

        found[function] = seen_in(meet_and_call)

    threads = [threading.Thread(target=run, args=(function,)) for function in (inner, methods)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for function, other in ((inner, methods), (methods, inner)):
        seen = {(code, event) for code, event, _ in found[function]}
        assert {(function.__code__, "call"), (function.__code__, "c_call")} <= seen
        assert (other.__code__, "call") not in seen


def that_other_threads_are_not_seen():
    def run():
        thread = threading.Thread(target=inner)
        thread.start()
        thread.join()

    assert inner.__code__ not in [code for code, _, _ in seen_in(run)]


@watch.unwatched
def around():
    before, result, after = math.cos(0.0), watch.seen(inner), math.cos(0.0)
    return before, result, after


def that_watched_code_within_unwatched_is_seen():
    found = seen_in(around)
    assert [code for code, event, _ in found if event == "call" and code is inner.__code__] == [inner.__code__]
    assert (inner.__code__, "c_call", math.sin) in found
    assert (around.__code__, "c_call", math.cos) not in found
    assert sys.getprofile() is None
    watch.seen(inner)
    around()
    assert sys.getprofile() is None


def that_watches_within_one_another_see():
    within = []
    for found in (seen_in(lambda: within.extend(seen_in(outer))), within):
        assert (outer.__code__, "call", None) in found
        assert not any(code is inner.__code__ for code, _, _ in found)


def that_own_code_begins_once():
    begun, begins = [], watch.MONITOR._begins
    watch.MONITOR._begins = lambda code, offset: (begun.append(code), begins(code, offset))[1]
    try:
        seen_in(lambda: [hidden() for _ in range(9)])
    finally:
        del watch.MONITOR._begins
    assert begun.count(hidden.__code__) == 1  # that of `unwatched`, in the file that is asked about
    assert begun.count(inner.__code__) == 9


def that_ids_that_are_taken_are_left_alone():
    every, monitoring = range(6), sys.monitoring
    for free in (*every, None):
        for tool in every:
            if tool != free:
                monitoring.use_tool_id(tool, "another")
        try:
            found = seen_in(inner)
            left = [monitoring.get_tool(tool) for tool in every]
        finally:
            for tool in every:
                monitoring.free_tool_id(tool)
        assert left == [None if tool == free else "another" for tool in every]
        assert {(inner.__code__, "call", None), (inner.__code__, "c_call", math.sin)} <= set(found)


def that_nothing_is_left():
    seen_in(inner)
    for tool in range(6):
        assert sys.monitoring.get_tool(tool) is None
        sys.monitoring.use_tool_id(tool, "asking")
        assert sys.monitoring.get_events(tool) == sys.monitoring.get_local_events(tool, inner.__code__) == 0
        sys.monitoring.free_tool_id(tool)


def that_nothing_is_seen_at_first():
    found = []
    with watch.profiled(lambda frame, event, arg: found.append(event)):
        inner()
        assert watch.is_hidden()
        watch.seen(lambda: found.append(watch.is_hidden()))
        inner()
    assert found[0] == "call"
    assert False in found
    assert found.count("call") <= 2  # of the lambda, and perhaps of what asks
    assert not watch.is_hidden()


def what_is_not_seen():
    found = seen_in(outer)
    assert (outer.__code__, "call", None) in found
    assert not any(code is inner.__code__ for code, _, _ in found)


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
    assert (outer.__code__, "call", None) in found
    assert (outer.__code__, "call", None) in others
    assert (inner.__code__, "c_call", math.sin) in others  # from which nothing is hidden
    assert others.count((inner.__code__, "call", None)) == 2


def that_a_profiler_set_meanwhile_goes_on():
    others = []

    def set_another():
        hidden()
        sys.setprofile(lambda frame, event, arg: others.append((frame.f_code, event)))
        hidden()
        inner()
        sys.setprofile(None)

    seen_in(set_another)
    assert (hidden.__wrapped__.__code__, "call") in others
    assert others.count((inner.__code__, "call")) == 2


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
    what_is_passed_over()
    what_is_seen_of_methods()
    that_nothing_is_seen_at_first()
    what_is_not_seen()
    what_goes_on_is_seen()
    that_threads_see_their_own()
    that_other_threads_are_not_seen()
    that_watched_code_within_unwatched_is_seen()
    that_watches_within_one_another_see()
    that_another_profiler_goes_on()
    that_a_profiler_set_meanwhile_goes_on()
    that_cprofile_goes_on()
    if watch.monitoring is not None:
        that_own_code_begins_once()
        that_ids_that_are_taken_are_left_alone()
        that_nothing_is_left()
