"""What is known of the memory of objects, asked of the Python and the NumPy that run this; it needs nothing else."""

import ctypes
import datetime
import gc
import importlib.util
import pathlib
import weakref

import numpy as np

FILE = pathlib.Path(__file__).parents[2] / "fnad" / "backends" / "cpu" / "objects.py"
spec = importlib.util.spec_from_file_location("objects", FILE)
objects = importlib.util.module_from_spec(spec)
spec.loader.exec_module(objects)


PLACES = {"RANK": objects.RANK, "SHAPE": objects.SHAPE, "DESCR": objects.DESCR, "FLAGS": objects.FLAGS}


def where_arrays_have_their_data():
    assert objects.IS_KNOWN
    for array in (np.zeros(3), np.ones((2, 4), "f4", order="F")[1:, ::2], np.zeros((0, 5)), np.array(1j)):
        assert ctypes.c_void_p.from_address(id(array) + objects.DATA).value == array.ctypes.data
        assert ctypes.c_void_p.from_address(id(array) + objects.TYPE).value == id(type(array))
        places = {name: id(array) + place for name, place in PLACES.items()}
        assert ctypes.c_int.from_address(places["RANK"]).value == array.ndim
        assert ctypes.c_void_p.from_address(places["DESCR"]).value == id(array.dtype)
        shape = (ctypes.c_ssize_t * array.ndim).from_address(ctypes.c_void_p.from_address(places["SHAPE"]).value or 0)
        assert (*shape,) == array.shape
        flags = ctypes.c_int.from_address(places["FLAGS"]).value & objects.C_CONTIGUOUS_ALIGNED
        assert (flags == objects.C_CONTIGUOUS_ALIGNED) == (array.flags.c_contiguous and array.flags.aligned)


def what_a_builtin_receives():
    take = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p), ctypes.c_ssize_t)
    received = []

    @take
    def length(_, arguments, count):
        received.extend(arguments[i] for i in range(count))
        return 0

    arrays = [np.zeros(2), np.ones(3)]
    function = objects.builtin("length", ctypes.cast(length, ctypes.c_void_p).value, length)
    assert function.__name__ == "length"
    assert objects.function_of(function) == ctypes.cast(length, ctypes.c_void_p).value
    try:
        function(*arrays)
    except SystemError:  # it returned no object and set no exception
        pass
    else:
        raise AssertionError
    assert received == [id(array) for array in arrays]


def what_a_builtin_reads_when_its_cycle_is_freed():
    cycle = {}
    function = objects.builtin("length", 0, cycle)
    place = ctypes.c_void_p.from_address(id(function) + object.__basicsize__).value
    size, read = ctypes.sizeof(objects.MethodDefinition), []
    written = ctypes.string_at(place, size)
    freed = np.zeros(1)  # freed right before the function
    seen = weakref.ref(freed, lambda _: read.append(ctypes.string_at(place, size)))
    cycle.update(freed=freed, function=function)
    del cycle, function, freed
    gc.collect()
    assert seen() is None
    assert read == [written]


def which_loop_a_ufunc_has():
    kind = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4)
    for ufunc, expected in ((np.add, 5.0), (np.multiply, 6.0), (np.maximum, 3.0)):
        loop, data = objects.loop_of(ufunc, ufunc.types.index("dd->d"))
        x, y, out = np.array([2.0]), np.array([3.0]), np.array([0.0])
        places = np.array([array.ctypes.data for array in (x, y, out)], np.intp)
        one, eight = np.array([1], np.intp), np.full(3, 8, np.intp)
        kind(loop)(places.ctypes.data, one.ctypes.data, eight.ctypes.data, data)
        assert out[0] == expected


def what_is_in_a_capsule():
    capsule = datetime.datetime_CAPI
    assert objects.signature(capsule) == "datetime.datetime_CAPI"
    assert objects.address(capsule) > 0


def another_layout():
    for name in ("DATA", "TYPE"):
        found = getattr(objects, name)
        setattr(objects, name, found + 8)
        assert not objects.has_known_arrays()
        setattr(objects, name, found)


if __name__ == "__main__":
    where_arrays_have_their_data()
    what_a_builtin_receives()
    what_a_builtin_reads_when_its_cycle_is_freed()
    which_loop_a_ufunc_has()
    what_is_in_a_capsule()
    another_layout()
