"""The native code of direct calls (`fnad.backends.cpu.direct`), which reads a record of words.

It is compiled by `fnad.backends.cpu.native`. The record and its sections are arrays of words: addresses of objects and
of arrays, numbers, and what comes next. Each section ends with 0. No access is atomic: the GIL orders them on
processors that reorder memory, too, because a thread that has taken it reads all that others wrote before they gave it
back. `fits` takes apart what `build` puts together, both along the words of a pytree.
"""

# ruff: noqa: N802 - functions in C have their names

from __future__ import annotations

from enum import IntEnum

from fnad.backends.cpu import objects
from fnad.backends.cpu.native import Double, Int, StaticMemory, Word, int_at, room
from fnad.kernel.residual_stack import FIELDS

Tag = IntEnum("Tag", [
    "NAME", "CELL", "ATTRIBUTE", "KIND", "EMPTY", "FUNCTION", "ASKED", "CONTEXT",
    "ARRAY", "NUMBER", "INTEGER", "COMPLEX", "SCALAR", "OBJECT", "TUPLE", "LIST", "DICT",
])  # fmt: skip
"""The words that announce what follows in a section: conditions, then leaves and containers of pytrees."""

# The record: in use, the numbers of arguments and of the most arrays of a kernel, ANOTHER, the status; objects, their
# end, results in them; the sections of conditions, arguments, new results, kernels and results; the residual stacks.
IN_USE, COUNT, MOST, ANOTHER, STATUS, OBJECTS, OBJECTS_END, RESULTS = range(8)
CONDITIONS, ARGUMENTS, NEW, KERNELS, TREE, STACKS, STACKS_END = range(8, 15)

TYPE, DATA, SHAPE, DESCR = (n // 8 for n in (objects.TYPE, objects.DATA, objects.SHAPE, objects.DESCR))
RANK, FLAGS, PLAIN = objects.RANK, objects.FLAGS, objects.C_CONTIGUOUS_ALIGNED
RAN, RAISED, FAILED = range(3)

direct_ndarray = StaticMemory(1, is_elsewhere=True)
"""The type of arrays."""


def Py_IncRef(value: Word) -> None: ...
def Py_DecRef(value: Word) -> None: ...
def PyErr_Clear() -> None: ...
def PyErr_Occurred() -> Word: ...
def PyObject_CallNoArgs(function: Word) -> Word: ...
def PyObject_IsTrue(value: Word) -> Int: ...
def PyObject_RichCompareBool(a: Word, b: Word, operation: Int) -> Int: ...
def PyObject_GetAttr(value: Word, name: Word) -> Word: ...
def PyCell_Get(cell: Word) -> Word: ...
def PyContextVar_Get(variable: Word, default: Word, value: Word) -> Int: ...
def PyFunction_GetCode(function: Word) -> Word: ...
def PyFunction_GetDefaults(function: Word) -> Word: ...
def PyFunction_GetKwDefaults(function: Word) -> Word: ...
def PyFloat_AsDouble(value: Word) -> Double: ...
def PyLong_AsLongLong(value: Word) -> Word: ...
def PyComplex_RealAsDouble(value: Word) -> Double: ...
def PyComplex_ImagAsDouble(value: Word) -> Double: ...
def PyMem_RawFree(address: Word) -> None: ...
def PyTuple_New(size: Word) -> Word: ...
def PyTuple_Size(values: Word) -> Word: ...
def PyTuple_GetItem(values: Word, n: Word) -> Word: ...
def PyTuple_SetItem(values: Word, n: Word, value: Word) -> Int: ...
def PyList_New(size: Word) -> Word: ...
def PyList_Size(values: Word) -> Word: ...
def PyList_GetItem(values: Word, n: Word) -> Word: ...
def PyList_SetItem(values: Word, n: Word, value: Word) -> Int: ...
def PyDict_New() -> Word: ...
def PyDict_Size(values: Word) -> Word: ...
def PyDict_Next(values: Word, position: Word, key: Word, value: Word) -> Int: ...
def PyDict_SetItem(values: Word, key: Word, value: Word) -> Int: ...
def PyDict_GetItemWithError(values: Word, key: Word) -> Word: ...
def PyArray_NewFromDescr(
    kind: Word, descr: Word, rank: Int, shape: Word, strides: Word, data: Word, flags: Int, base: Word
) -> Word: ...
def PyArray_NewCopy(array: Word, order: Int) -> Word: ...
def PyArray_Scalar(data: Word, descr: Word, base: Word) -> Word: ...
def PyArray_ScalarAsCtype(scalar: Word, data: Word) -> None: ...
def memcmp(a: Word, b: Word, size: Word) -> Int: ...


# ---- words and objects -----------------------------------------------------------------------------------------------


def take(cursor: Word) -> Word:
    """The next word of a section."""
    place = cursor[0]
    cursor[0] = place + 8
    return place[0]


def put(slot: Word, value: Word) -> None:
    """Store a value in the next place."""
    place = slot[0]
    place[0] = value
    slot[0] = place + 8


def drop(place: Word, end: Word) -> None:
    """Release the objects in these places."""
    while place != end:
        value = place[0]
        place[0] = 0
        Py_DecRef(value)
        place = place + 8


def release(entry: Word, end: Word) -> None:
    """Free the residual stacks of a table, and make them empty: addresses, capacities and rows are 0."""
    while entry != end:
        PyMem_RawFree(entry[0])
        for n in range(FIELDS):
            entry[n] = 0
        entry = entry + 8 * FIELDS


# ---- conditions: is what the function read, and are the settings, as they were? --------------------------------------


def hold(conditions: Word) -> Word:  # noqa: C901, PLR0912 - a case for each kind
    cursor = room(1)
    setting = room(1)
    cursor[0] = conditions
    while True:
        match take(cursor):
            case Tag.NAME:
                namespace = take(cursor)
                found = PyDict_GetItemWithError(namespace, take(cursor))
            case Tag.CELL:
                found = PyCell_Get(take(cursor))
                Py_DecRef(found)
            case Tag.ATTRIBUTE:
                owner = take(cursor)
                found = PyObject_GetAttr(owner, take(cursor))
                Py_DecRef(found)
                if found == 0:
                    PyErr_Clear()
            case Tag.KIND:
                found = take(cursor)[TYPE]
            case Tag.EMPTY:
                if PyDict_Size(take(cursor)) != 0:
                    return 0
                continue
            case Tag.FUNCTION:
                function = take(cursor)
                if PyFunction_GetCode(function) != take(cursor) or PyFunction_GetDefaults(function) != take(cursor):
                    return 0
                found = PyFunction_GetKwDefaults(function)
            case Tag.ASKED:
                answer = PyObject_CallNoArgs(take(cursor))
                if answer == 0:
                    PyErr_Clear()
                    return 0
                truth = PyObject_IsTrue(answer)
                Py_DecRef(answer)
                if truth != 1:
                    PyErr_Clear()
                    return 0
                continue
            case Tag.CONTEXT:
                variable = take(cursor)
                setting[0] = 0
                PyContextVar_Get(variable, 0, setting)
                found = setting[0]
                Py_DecRef(found)
            case _:
                return 1
        if found != take(cursor):
            return 0


# ---- arguments -------------------------------------------------------------------------------------------------------


def fits(value: Word, cursor: Word, slot: Word) -> Word:  # noqa: C901 - likewise
    """True if a value is like that of the call before; arrays and numbers are held in the slots."""
    kind = take(cursor)
    if value[TYPE] != take(cursor):
        return 0
    match kind:
        case Tag.ARRAY:
            descr = take(cursor)
            rank = take(cursor)
            if not is_like(value, descr, rank, take(cursor)):
                return 0
            array = taken(value)
            if array == 0:
                return 0
            put(slot, array)
        case Tag.NUMBER | Tag.INTEGER | Tag.COMPLEX | Tag.SCALAR:
            cell = take(cursor)
            if not read(kind, value, cell[DATA]):
                return 0
            Py_IncRef(cell)
            put(slot, cell)
        case Tag.TUPLE | Tag.LIST:
            size = take(cursor)
            if size != (PyTuple_Size(value) if kind == Tag.TUPLE else PyList_Size(value)):
                return 0
            for n in range(size):
                element = PyTuple_GetItem(value, n) if kind == Tag.TUPLE else PyList_GetItem(value, n)
                if not fits(element, cursor, slot):
                    return 0
        case Tag.DICT:
            return fits_dict(value, cursor, slot)
        case _:
            pass
    return 1


def fits_dict(value: Word, cursor: Word, slot: Word) -> Word:
    position = room(1)
    key = room(1)
    item = room(1)
    position[0] = 0
    if take(cursor) != PyDict_Size(value):
        return 0
    while PyDict_Next(value, position, key, item):
        if not is_same_key(key[0], take(cursor)) or not fits(item[0], cursor, slot):
            return 0
    return 1


def read(kind: Word, value: Word, data: Word) -> Word:
    """True if a number fits into memory, where it is then. Of a bool, which is an integer, kernels read one byte."""
    match kind:
        case Tag.INTEGER:
            data[0] = PyLong_AsLongLong(value)
            if data[0] == -1 and PyErr_Occurred():
                PyErr_Clear()
                return 0
        case Tag.COMPLEX:
            data[0] = PyComplex_RealAsDouble(value)
            data[1] = PyComplex_ImagAsDouble(value)
        case Tag.SCALAR:
            PyArray_ScalarAsCtype(value, data)
        case _:
            data[0] = PyFloat_AsDouble(value)
    return 1


def is_like(array: Word, descr: Word, rank: Word, shape: Word) -> Word:
    """True if an array has this dtype and shape."""
    if array[DESCR] != descr or int_at(array + RANK) != rank:
        return 0
    return memcmp(array[SHAPE], shape, 8 * rank) == 0


def taken(array: Word) -> Word:
    """The array as kernels take it, which may be a copy; 0 if there is no memory for one."""
    if int_at(array + FLAGS) & PLAIN == PLAIN:
        Py_IncRef(array)
        return array
    copy = PyArray_NewCopy(array, 0)
    if copy == 0:
        PyErr_Clear()
    return copy


def is_same_key(key: Word, known: Word) -> Word:
    """True if keys are equal; others than strings and integers are not compared: that would call user functions."""
    if key == known:
        return 1
    return key[TYPE] == known[TYPE] and PyObject_RichCompareBool(key, known, 2) == 1


# ---- results ---------------------------------------------------------------------------------------------------------


def make(new: Word, slot: Word) -> Word:
    """True unless a new result fails."""
    cursor = room(1)
    cursor[0] = new
    while True:
        match take(cursor):
            case Tag.ARRAY:
                descr = take(cursor)
                rank = take(cursor)
                Py_IncRef(descr)
                made = PyArray_NewFromDescr(direct_ndarray, descr, rank, take(cursor), 0, 0, 0, 0)
            case Tag.ASKED:
                made = PyObject_CallNoArgs(take(cursor))
            case Tag.NUMBER:
                made = take(cursor)
                Py_IncRef(made)
            case _:
                return 1
        put(slot, made)
        if made == 0:
            return 0


def build(cursor: Word, slot: Word) -> Word:
    """The pytree of results, which are taken from the slots; 0 if that fails."""
    kind = take(cursor)
    match kind:
        case Tag.NUMBER:
            cell = take(slot)
            return PyArray_Scalar(cell[DATA], cell[DESCR], cell)
        case Tag.OBJECT:
            value = take(cursor)
            Py_IncRef(value)
            return value
        case Tag.TUPLE | Tag.LIST:
            size = take(cursor)
            made = PyTuple_New(size) if kind == Tag.TUPLE else PyList_New(size)
            if made == 0:
                return 0
            for n in range(size):
                element = build(cursor, slot)
                if element == 0:
                    Py_DecRef(made)
                    return 0
                if kind == Tag.TUPLE:
                    PyTuple_SetItem(made, n, element)
                else:
                    PyList_SetItem(made, n, element)
            return made
        case Tag.DICT:
            return build_dict(cursor, slot)
        case _:
            array = slot[0][0]
            put(slot, 0)
            return array


def build_dict(cursor: Word, slot: Word) -> Word:
    size = take(cursor)
    made = PyDict_New()
    if made == 0:
        return 0
    for _ in range(size):
        key = take(cursor)
        item = build(cursor, slot)
        if item == 0:
            Py_DecRef(made)
            return 0
        error = PyDict_SetItem(made, key, item)
        Py_DecRef(item)
        if error:
            Py_DecRef(made)
            return 0
    return made


# ---- the call --------------------------------------------------------------------------------------------------------


def run(kernels: Word, most: Word, status: Word) -> Word:
    """Run all kernels until one raises an exception or fails by the status."""
    cursor = room(1)
    arguments = room(most)
    cursor[0] = kernels
    while True:
        kernel = take(cursor)
        if kernel == 0:
            return RAN
        count = take(cursor)
        for n in range(count):
            arguments[n] = take(cursor)[0]
        found = kernel(0, arguments, count)
        failure = RAISED if found == 0 else FAILED if status[0] else RAN
        if failure:
            Py_DecRef(found)
            status[0] = 0
            status[1] = 0
            return failure
        Py_DecRef(found)


def result(record: Word, arguments: Word) -> Word:
    cursor = room(1)
    slot = room(1)
    another = record[ANOTHER]
    count = record[COUNT]
    slot[0] = record[OBJECTS]
    cursor[0] = record[ARGUMENTS]
    for n in range(count):
        if not fits(arguments[n], cursor, slot):
            Py_IncRef(another)
            return another
    results = record[RESULTS]
    slot[0] = results
    if not make(record[NEW], slot):
        return 0
    failure = run(record[KERNELS], record[MOST], record[STATUS])
    if failure == FAILED:
        Py_IncRef(another)
        return another
    slot[0] = results
    cursor[0] = record[TREE]
    return build(cursor, slot) if failure == RAN else 0


def direct_call(owner: Word, arguments: Word, count: Word) -> Word:
    """The builtin of the tuple (definition, (record, …))."""
    array = PyTuple_GetItem(PyTuple_GetItem(owner, 1), 0)
    record = array[DATA]
    # The record is read after the conditions, which may run Python code.
    if count != record[COUNT] or not hold(record[CONDITIONS]) or record[IN_USE]:
        Py_IncRef(record[ANOTHER])
        return record[ANOTHER]
    record[IN_USE] = 1
    found = result(record, arguments)
    drop(record[OBJECTS], record[OBJECTS_END])
    release(record[STACKS], record[STACKS_END])
    record[IN_USE] = 0
    return found
