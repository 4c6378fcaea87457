"""The native code of direct calls (`fnad.backends.cpu.direct`), which reads a record of words.

The record and its sections are arrays of 64 bits: addresses of objects and of arrays, numbers, and what comes next.
Each section ends with 0. No access is atomic: the GIL orders them on processors that reorder memory, too, since a
thread that has taken it reads all that others wrote before they gave it back. `match` takes apart what `build` puts
together, both along the words of a pytree.
"""

from __future__ import annotations

import ctypes
import re
from functools import cache
from typing import Any

import llvmlite.binding as llvm
import numpy as np

from fnad.backends.cpu.loader import LOCK, key_of, link, object_code
from fnad.backends.cpu.objects import ARRAY_PLACES, C_CONTIGUOUS_ALIGNED, DATA, TYPE, numpy_function
from fnad.kernel.residual_stack import FIELDS

WORDS = {
    name: n + 1
    for n, name in enumerate(
        (
            "NAME",
            "CELL",
            "ATTRIBUTE",
            "KIND",
            "EMPTY",
            "FUNCTION",
            "ASKED",
            "CONTEXT",
            "ARRAY",
            "NUMBER",
            "INTEGER",
            "COMPLEX",
            "SCALAR",
            "OBJECT",
            "TUPLE",
            "LIST",
            "DICT",
        )
    )
}
"""The words that announce what follows in a section: conditions, then leaves and containers of pytrees."""

CODE = r"""
; in use, arguments, parameters of a kernel at most, ANOTHER, status, objects, their end, results in objects,
; the words of: conditions, arguments, new results, kernels, results; and the table of residual stacks, its end
%record = type { i64, i64, i64, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr }

@direct_ndarray = global ptr null
@direct_new = global ptr null
@direct_scalar = global ptr null
@direct_number = global ptr null

declare void @Py_IncRef(ptr)
declare void @Py_DecRef(ptr)
declare void @PyErr_Clear()
declare ptr @PyObject_CallNoArgs(ptr)
declare i32 @PyObject_IsTrue(ptr)
declare i32 @PyObject_RichCompareBool(ptr, ptr, i32)
declare ptr @PyObject_GetAttr(ptr, ptr)
declare ptr @PyCell_Get(ptr)
declare i32 @PyContextVar_Get(ptr, ptr, ptr)
declare ptr @PyFunction_GetCode(ptr)
declare ptr @PyFunction_GetDefaults(ptr)
declare ptr @PyFunction_GetKwDefaults(ptr)
declare double @PyFloat_AsDouble(ptr)
declare i64 @PyLong_AsLongLong(ptr)
declare double @PyComplex_RealAsDouble(ptr)
declare double @PyComplex_ImagAsDouble(ptr)
declare ptr @PyErr_Occurred()
declare void @PyMem_RawFree(ptr)
declare ptr @PyTuple_New(i64)
declare i64 @PyTuple_Size(ptr)
declare ptr @PyTuple_GetItem(ptr, i64)
declare i32 @PyTuple_SetItem(ptr, i64, ptr)
declare ptr @PyList_New(i64)
declare i64 @PyList_Size(ptr)
declare ptr @PyList_GetItem(ptr, i64)
declare i32 @PyList_SetItem(ptr, i64, ptr)
declare ptr @PyDict_New()
declare i64 @PyDict_Size(ptr)
declare i32 @PyDict_Next(ptr, ptr, ptr, ptr)
declare i32 @PyDict_SetItem(ptr, ptr, ptr)
declare ptr @PyDict_GetItemWithError(ptr, ptr)
declare i32 @memcmp(ptr, ptr, i64)

; ---- words and objects ----

define internal ptr @next(ptr %cursor) {
  %place = load ptr, ptr %cursor
  %after = getelementptr ptr, ptr %place, i64 1
  store ptr %after, ptr %cursor
  %word = load ptr, ptr %place
  ret ptr %word
}

define internal i64 @next_number(ptr %cursor) {
  %word = call ptr @next(ptr %cursor)
  %number = ptrtoint ptr %word to i64
  ret i64 %number
}

define internal ptr @member(ptr %object, i64 %offset) {
  %place = getelementptr i8, ptr %object, i64 %offset
  %found = load ptr, ptr %place
  ret ptr %found
}

define internal void @put(ptr %slot, ptr %object) {
  %place = load ptr, ptr %slot
  store ptr %object, ptr %place
  %after = getelementptr ptr, ptr %place, i64 1
  store ptr %after, ptr %slot
  ret void
}

define internal void @drop(ptr %first, ptr %end) {
  br label %test
test:
  %place = phi ptr [%first, %0], [%after, %drop]
  %is_end = icmp eq ptr %place, %end
  br i1 %is_end, label %done, label %drop
drop:
  %object = load ptr, ptr %place
  store ptr null, ptr %place
  call void @Py_DecRef(ptr %object)
  %after = getelementptr ptr, ptr %place, i64 1
  br label %test
done:
  ret void
}

; Free the residual stacks of a table, and make them empty: addresses, capacities and rows are 0.
define internal void @release(ptr %table, ptr %end) {
  br label %test
test:
  %entry = phi ptr [%table, %0], [%after, %free]
  %is_end = icmp eq ptr %entry, %end
  br i1 %is_end, label %done, label %free
free:
  %address = load ptr, ptr %entry
  call void @PyMem_RawFree(ptr %address)
  store [FIELDS x i64] zeroinitializer, ptr %entry
  %after = getelementptr i64, ptr %entry, i64 FIELDS
  br label %test
done:
  ret void
}

; ---- conditions: whether what the function read, and the settings, are as they were ----

define internal i1 @hold(ptr %conditions) {
  %cursor = alloca ptr
  %setting = alloca ptr
  store ptr %conditions, ptr %cursor
  br label %look
look:
  %kind = call i64 @next_number(ptr %cursor)
  switch i64 %kind, label %yes [
    i64 NAME, label %name
    i64 CELL, label %cell
    i64 ATTRIBUTE, label %attribute
    i64 KIND, label %kind_of
    i64 EMPTY, label %empty
    i64 FUNCTION, label %function
    i64 ASKED, label %asked
    i64 CONTEXT, label %context
  ]
name:
  %namespace = call ptr @next(ptr %cursor)
  %key = call ptr @next(ptr %cursor)
  %value = call ptr @next(ptr %cursor)
  %found = call ptr @PyDict_GetItemWithError(ptr %namespace, ptr %key)
  %is_found = icmp eq ptr %found, %value
  br i1 %is_found, label %look, label %no
cell:
  %a_cell = call ptr @next(ptr %cursor)
  %content = call ptr @next(ptr %cursor)
  %now = call ptr @PyCell_Get(ptr %a_cell)
  call void @Py_DecRef(ptr %now)
  %is_content = icmp eq ptr %now, %content
  br i1 %is_content, label %look, label %no
attribute:
  %holder = call ptr @next(ptr %cursor)
  %attribute_name = call ptr @next(ptr %cursor)
  %attribute_value = call ptr @next(ptr %cursor)
  %attribute_now = call ptr @PyObject_GetAttr(ptr %holder, ptr %attribute_name)
  call void @Py_DecRef(ptr %attribute_now)
  %is_attribute = icmp eq ptr %attribute_now, %attribute_value
  %has_none = icmp eq ptr %attribute_now, null
  br i1 %has_none, label %absent, label %present
absent:
  call void @PyErr_Clear()
  br label %present
present:
  br i1 %is_attribute, label %look, label %no
kind_of:
  %an_object = call ptr @next(ptr %cursor)
  %a_type = call ptr @next(ptr %cursor)
  %type_now = call ptr @member(ptr %an_object, i64 TYPE)
  %is_of_type = icmp eq ptr %type_now, %a_type
  br i1 %is_of_type, label %look, label %no
empty:
  %dict = call ptr @next(ptr %cursor)
  %size = call i64 @PyDict_Size(ptr %dict)
  %is_empty = icmp eq i64 %size, 0
  br i1 %is_empty, label %look, label %no
function:
  %a_function = call ptr @next(ptr %cursor)
  %code = call ptr @next(ptr %cursor)
  %defaults = call ptr @next(ptr %cursor)
  %by_name = call ptr @next(ptr %cursor)
  %code_now = call ptr @PyFunction_GetCode(ptr %a_function)
  %defaults_now = call ptr @PyFunction_GetDefaults(ptr %a_function)
  %by_name_now = call ptr @PyFunction_GetKwDefaults(ptr %a_function)
  %is_code = icmp eq ptr %code, %code_now
  %is_defaults = icmp eq ptr %defaults, %defaults_now
  %is_by_name = icmp eq ptr %by_name, %by_name_now
  %are_defaults = and i1 %is_defaults, %is_by_name
  %is_function = and i1 %is_code, %are_defaults
  br i1 %is_function, label %look, label %no
asked:
  %question = call ptr @next(ptr %cursor)
  %answer = call ptr @PyObject_CallNoArgs(ptr %question)
  %is_error = icmp eq ptr %answer, null
  br i1 %is_error, label %error, label %answered
answered:
  %truth = call i32 @PyObject_IsTrue(ptr %answer)
  call void @Py_DecRef(ptr %answer)
  %is_true = icmp eq i32 %truth, 1
  br i1 %is_true, label %look, label %error
context:
  %variable = call ptr @next(ptr %cursor)
  %expected = call ptr @next(ptr %cursor)
  store ptr null, ptr %setting
  %got = call i32 @PyContextVar_Get(ptr %variable, ptr null, ptr %setting)
  %set = load ptr, ptr %setting
  call void @Py_DecRef(ptr %set)
  %is_set = icmp eq ptr %set, %expected
  br i1 %is_set, label %look, label %no
error:
  call void @PyErr_Clear()
  ret i1 0
no:
  ret i1 0
yes:
  ret i1 1
}

; ---- arguments ----

define internal i1 @match(ptr %value, ptr %cursor, ptr %slot) {
  %position = alloca i64
  %key = alloca ptr
  %item = alloca ptr
  %kind = call i64 @next_number(ptr %cursor)
  %expected = call ptr @next(ptr %cursor)
  %type = call ptr @member(ptr %value, i64 TYPE)
  %is_type = icmp eq ptr %type, %expected
  br i1 %is_type, label %typed, label %no
typed:
  switch i64 %kind, label %yes [
    i64 ARRAY, label %array
    i64 NUMBER, label %number
    i64 INTEGER, label %number
    i64 COMPLEX, label %number
    i64 SCALAR, label %number
    i64 TUPLE, label %sequence
    i64 LIST, label %sequence
    i64 DICT, label %dict
  ]
array:
  %descr = call ptr @next(ptr %cursor)
  %rank = call i64 @next_number(ptr %cursor)
  %shape = call ptr @next(ptr %cursor)
  %is_array = call i1 @is_like(ptr %value, ptr %descr, i64 %rank, ptr %shape)
  br i1 %is_array, label %take, label %no
take:
  call void @Py_IncRef(ptr %value)
  call void @put(ptr %slot, ptr %value)
  ret i1 1
number:
  %cell = call ptr @next(ptr %cursor)
  %data = call ptr @member(ptr %cell, i64 DATA)
  %is_read = call i1 @read(i64 %kind, ptr %value, ptr %data)
  br i1 %is_read, label %take_cell, label %no
take_cell:
  call void @Py_IncRef(ptr %cell)
  call void @put(ptr %slot, ptr %cell)
  ret i1 1
sequence:
  %is_tuple = icmp eq i64 %kind, TUPLE
  %size_of = select i1 %is_tuple, ptr @PyTuple_Size, ptr @PyList_Size
  %item_of = select i1 %is_tuple, ptr @PyTuple_GetItem, ptr @PyList_GetItem
  %length = call i64 @next_number(ptr %cursor)
  %length_now = call i64 %size_of(ptr %value)
  %is_length = icmp eq i64 %length, %length_now
  br i1 %is_length, label %elements, label %no
elements:
  %n = phi i64 [0, %sequence], [%n_after, %element]
  %are_all = icmp eq i64 %n, %length
  br i1 %are_all, label %yes, label %element
element:
  %n_after = add i64 %n, 1
  %an_element = call ptr %item_of(ptr %value, i64 %n)
  %is_element = call i1 @match(ptr %an_element, ptr %cursor, ptr %slot)
  br i1 %is_element, label %elements, label %no
dict:
  %size = call i64 @next_number(ptr %cursor)
  %size_now = call i64 @PyDict_Size(ptr %value)
  store i64 0, ptr %position
  %is_size = icmp eq i64 %size, %size_now
  br i1 %is_size, label %items, label %no
items:
  %more = call i32 @PyDict_Next(ptr %value, ptr %position, ptr %key, ptr %item)
  %is_end = icmp eq i32 %more, 0
  br i1 %is_end, label %yes, label %look
look:
  %known = call ptr @next(ptr %cursor)
  %a_key = load ptr, ptr %key
  %is_key = call i1 @is_same_key(ptr %a_key, ptr %known)
  br i1 %is_key, label %look_behind, label %no
look_behind:
  %an_item = load ptr, ptr %item
  %is_item = call i1 @match(ptr %an_item, ptr %cursor, ptr %slot)
  br i1 %is_item, label %items, label %no
no:
  ret i1 0
yes:
  ret i1 1
}

; Whether a number fits, which is then in memory. A bool is an integer, of which a kernel reads the first byte.
define internal i1 @read(i64 %kind, ptr %value, ptr %data) {
  switch i64 %kind, label %float [ i64 INTEGER, label %integer  i64 COMPLEX, label %complex  i64 SCALAR, label %scalar ]
float:
  %double = call double @PyFloat_AsDouble(ptr %value)
  store double %double, ptr %data
  ret i1 1
complex:
  %real = call double @PyComplex_RealAsDouble(ptr %value)
  %imaginary = call double @PyComplex_ImagAsDouble(ptr %value)
  %behind = getelementptr double, ptr %data, i64 1
  store double %real, ptr %data
  store double %imaginary, ptr %behind
  ret i1 1
scalar:
  %read_scalar = load ptr, ptr @direct_number
  call void %read_scalar(ptr %value, ptr %data)
  ret i1 1
integer:
  %long = call i64 @PyLong_AsLongLong(ptr %value)
  store i64 %long, ptr %data
  %may_fail = icmp eq i64 %long, -1
  br i1 %may_fail, label %look, label %yes
look:
  %error = call ptr @PyErr_Occurred()
  %is_error = icmp ne ptr %error, null
  br i1 %is_error, label %too_large, label %yes
too_large:
  call void @PyErr_Clear()
  ret i1 0
yes:
  ret i1 1
}

define internal i1 @is_like(ptr %array, ptr %descr, i64 %rank, ptr %shape) {
  %descr_now = call ptr @member(ptr %array, i64 DESCR)
  %is_descr = icmp eq ptr %descr_now, %descr
  %rank_place = getelementptr i8, ptr %array, i64 RANK
  %rank_32 = load i32, ptr %rank_place
  %rank_now = sext i32 %rank_32 to i64
  %is_rank = icmp eq i64 %rank_now, %rank
  %flags_place = getelementptr i8, ptr %array, i64 FLAGS
  %flags = load i32, ptr %flags_place
  %plain = and i32 %flags, PLAIN
  %is_plain = icmp eq i32 %plain, PLAIN
  %is_kind = and i1 %is_descr, %is_rank
  %may_be = and i1 %is_kind, %is_plain
  br i1 %may_be, label %compare, label %no
compare:
  %shape_now = call ptr @member(ptr %array, i64 SHAPE)
  %bytes = mul i64 %rank, 8
  %difference = call i32 @memcmp(ptr %shape_now, ptr %shape, i64 %bytes)
  %is_shape = icmp eq i32 %difference, 0
  ret i1 %is_shape
no:
  ret i1 0
}

; Keys that are not known to be strings or integers are not compared: that would call user functions.
define internal i1 @is_same_key(ptr %key, ptr %known) {
  %is_known = icmp eq ptr %key, %known
  br i1 %is_known, label %yes, label %look
look:
  %type = call ptr @member(ptr %key, i64 TYPE)
  %known_type = call ptr @member(ptr %known, i64 TYPE)
  %is_type = icmp eq ptr %type, %known_type
  br i1 %is_type, label %compare, label %no
compare:
  %equal = call i32 @PyObject_RichCompareBool(ptr %key, ptr %known, i32 2)
  %is_equal = icmp eq i32 %equal, 1
  ret i1 %is_equal
no:
  ret i1 0
yes:
  ret i1 1
}

; ---- results ----

define internal i1 @make(ptr %news, ptr %slot) {
  %cursor = alloca ptr
  store ptr %news, ptr %cursor
  br label %look
look:
  %kind = call i64 @next_number(ptr %cursor)
  switch i64 %kind, label %yes [ i64 ARRAY, label %array  i64 ASKED, label %asked  i64 NUMBER, label %number ]
array:
  %descr = call ptr @next(ptr %cursor)
  %rank = call i64 @next_number(ptr %cursor)
  %shape = call ptr @next(ptr %cursor)
  %rank_32 = trunc i64 %rank to i32
  call void @Py_IncRef(ptr %descr)
  %new_array = load ptr, ptr @direct_new
  %ndarray = load ptr, ptr @direct_ndarray
  %array_made = call ptr %new_array(
    ptr %ndarray, ptr %descr, i32 %rank_32, ptr %shape, ptr null, ptr null, i32 0, ptr null)
  br label %keep
asked:
  %maker = call ptr @next(ptr %cursor)
  %made = call ptr @PyObject_CallNoArgs(ptr %maker)
  br label %keep
number:
  %cell = call ptr @next(ptr %cursor)
  call void @Py_IncRef(ptr %cell)
  br label %keep
keep:
  %object = phi ptr [%array_made, %array], [%made, %asked], [%cell, %number]
  call void @put(ptr %slot, ptr %object)
  %is_error = icmp eq ptr %object, null
  br i1 %is_error, label %no, label %look
no:
  ret i1 0
yes:
  ret i1 1
}

define internal ptr @build(ptr %cursor, ptr %slot) {
  %kind = call i64 @next_number(ptr %cursor)
  switch i64 %kind, label %array [
    i64 NUMBER, label %number
    i64 OBJECT, label %object
    i64 TUPLE, label %sequence
    i64 LIST, label %sequence
    i64 DICT, label %dict
  ]
array:
  %place = load ptr, ptr %slot
  %an_array = load ptr, ptr %place
  call void @put(ptr %slot, ptr null)
  ret ptr %an_array
number:
  %cell_place = load ptr, ptr %slot
  %cell = load ptr, ptr %cell_place
  %cell_after = getelementptr ptr, ptr %cell_place, i64 1
  store ptr %cell_after, ptr %slot
  %data = call ptr @member(ptr %cell, i64 DATA)
  %descr = call ptr @member(ptr %cell, i64 DESCR)
  %scalar_of = load ptr, ptr @direct_scalar
  %scalar = call ptr %scalar_of(ptr %data, ptr %descr, ptr %cell)
  ret ptr %scalar
object:
  %an_object = call ptr @next(ptr %cursor)
  call void @Py_IncRef(ptr %an_object)
  ret ptr %an_object
sequence:
  %is_tuple = icmp eq i64 %kind, TUPLE
  %new_sequence = select i1 %is_tuple, ptr @PyTuple_New, ptr @PyList_New
  %set_element = select i1 %is_tuple, ptr @PyTuple_SetItem, ptr @PyList_SetItem
  %length = call i64 @next_number(ptr %cursor)
  %a_sequence = call ptr %new_sequence(i64 %length)
  %no_sequence = icmp eq ptr %a_sequence, null
  br i1 %no_sequence, label %failed, label %elements
elements:
  %n = phi i64 [0, %sequence], [%n_after, %set]
  %are_all = icmp eq i64 %n, %length
  br i1 %are_all, label %done, label %element
element:
  %n_after = add i64 %n, 1
  %an_element = call ptr @build(ptr %cursor, ptr %slot)
  %no_element = icmp eq ptr %an_element, null
  br i1 %no_element, label %give_up, label %set
set:
  %was_set = call i32 %set_element(ptr %a_sequence, i64 %n, ptr %an_element)
  br label %elements
dict:
  %size = call i64 @next_number(ptr %cursor)
  %a_dict = call ptr @PyDict_New()
  %no_dict = icmp eq ptr %a_dict, null
  br i1 %no_dict, label %failed, label %items
items:
  %m = phi i64 [0, %dict], [%m_after, %enter]
  %are_all_items = icmp eq i64 %m, %size
  br i1 %are_all_items, label %done, label %item
item:
  %m_after = add i64 %m, 1
  %key = call ptr @next(ptr %cursor)
  %an_item = call ptr @build(ptr %cursor, ptr %slot)
  %no_item = icmp eq ptr %an_item, null
  br i1 %no_item, label %give_up, label %enter
enter:
  %error = call i32 @PyDict_SetItem(ptr %a_dict, ptr %key, ptr %an_item)
  call void @Py_DecRef(ptr %an_item)
  %is_entered = icmp eq i32 %error, 0
  br i1 %is_entered, label %items, label %give_up
done:
  %container = phi ptr [%a_sequence, %elements], [%a_dict, %items]
  ret ptr %container
give_up:
  %partial = phi ptr [%a_sequence, %element], [%a_dict, %item], [%a_dict, %enter]
  call void @Py_DecRef(ptr %partial)
  ret ptr null
failed:
  ret ptr null
}

; ---- kernels: 0 if all ran, 1 if one failed by an exception, 2 if by the status ----

define internal i64 @run(ptr %kernels, i64 %most, ptr %status) {
  %cursor = alloca ptr
  %arguments = alloca ptr, i64 %most
  store ptr %kernels, ptr %cursor
  br label %look
look:
  %kernel = call ptr @next(ptr %cursor)
  %is_last = icmp eq ptr %kernel, null
  br i1 %is_last, label %done, label %begin
begin:
  %count = call i64 @next_number(ptr %cursor)
  br label %collect
collect:
  %n = phi i64 [0, %begin], [%after, %one]
  %are_all = icmp eq i64 %n, %count
  br i1 %are_all, label %call, label %one
one:
  %after = add i64 %n, 1
  %place = call ptr @next(ptr %cursor)
  %object = load ptr, ptr %place
  %argument = getelementptr ptr, ptr %arguments, i64 %n
  store ptr %object, ptr %argument
  br label %collect
call:
  %none = call ptr %kernel(ptr null, ptr %arguments, i64 %count)
  %is_error = icmp eq ptr %none, null
  br i1 %is_error, label %error, label %check
check:
  call void @Py_DecRef(ptr %none)
  %fault = load i64, ptr %status
  %is_fault = icmp ne i64 %fault, 0
  br i1 %is_fault, label %fault_found, label %look
error:
  call void @clear(ptr %status)
  ret i64 1
fault_found:
  call void @clear(ptr %status)
  ret i64 2
done:
  ret i64 0
}

define internal void @clear(ptr %status) {
  %detail = getelementptr i64, ptr %status, i64 1
  store i64 0, ptr %status
  store i64 0, ptr %detail
  ret void
}

; ---- the call ----

define internal ptr @call(ptr %record, ptr %arguments) {
  %cursor = alloca ptr
  %slot = alloca ptr
  %r = load %record, ptr %record
  %count = extractvalue %record %r, 1
  %most = extractvalue %record %r, 2
  %another = extractvalue %record %r, 3
  %status = extractvalue %record %r, 4
  %objects = extractvalue %record %r, 5
  %results = extractvalue %record %r, 7
  %matches = extractvalue %record %r, 9
  %news = extractvalue %record %r, 10
  %kernels = extractvalue %record %r, 11
  %tree = extractvalue %record %r, 12
  store ptr %objects, ptr %slot
  store ptr %matches, ptr %cursor
  br label %test
test:
  %n = phi i64 [0, %0], [%after, %argument]
  %are_all = icmp eq i64 %n, %count
  br i1 %are_all, label %make, label %argument
argument:
  %after = add i64 %n, 1
  %place = getelementptr ptr, ptr %arguments, i64 %n
  %value = load ptr, ptr %place
  %is_like = call i1 @match(ptr %value, ptr %cursor, ptr %slot)
  br i1 %is_like, label %test, label %other
make:
  store ptr %results, ptr %slot
  %are_made = call i1 @make(ptr %news, ptr %slot)
  br i1 %are_made, label %run, label %error
run:
  %failure = call i64 @run(ptr %kernels, i64 %most, ptr %status)
  switch i64 %failure, label %other [ i64 0, label %build  i64 1, label %error ]
build:
  store ptr %results, ptr %slot
  store ptr %tree, ptr %cursor
  %built = call ptr @build(ptr %cursor, ptr %slot)
  ret ptr %built
other:
  call void @Py_IncRef(ptr %another)
  ret ptr %another
error:
  ret ptr null
}

define ptr @direct_call(ptr %self, ptr %arguments, i64 %count) {
  %owner = call ptr @PyTuple_GetItem(ptr %self, i64 1)
  %array = call ptr @PyTuple_GetItem(ptr %owner, i64 0)
  %record = call ptr @member(ptr %array, i64 DATA)
  %r = load %record, ptr %record
  %expected = extractvalue %record %r, 1
  %another = extractvalue %record %r, 3
  %objects = extractvalue %record %r, 5
  %end = extractvalue %record %r, 6
  %conditions = extractvalue %record %r, 8
  %is_count = icmp eq i64 %count, %expected
  br i1 %is_count, label %look, label %other
look:
  %hold = call i1 @hold(ptr %conditions)
  %uses = load i64, ptr %record  ; after what may have run Python code
  %is_free = icmp eq i64 %uses, 0
  %may_run = and i1 %hold, %is_free
  br i1 %may_run, label %run, label %other
run:
  store i64 1, ptr %record
  %result = call ptr @call(ptr %record, ptr %arguments)
  call void @drop(ptr %objects, ptr %end)
  %stacks = extractvalue %record %r, 13
  %stacks_end = extractvalue %record %r, 14
  call void @release(ptr %stacks, ptr %stacks_end)
  store i64 0, ptr %record
  ret ptr %result
other:
  call void @Py_IncRef(ptr %another)
  ret ptr %another
}
"""


def code() -> str:
    """The code, with numbers in the places of words."""
    values = {**WORDS, **ARRAY_PLACES, "DATA": DATA, "TYPE": TYPE, "PLAIN": C_CONTIGUOUS_ALIGNED, "FIELDS": FIELDS}
    return re.sub(rf"\b({'|'.join(values)})\b", lambda match: str(values[match[1]]), CODE)


@cache
def address() -> int:
    """The address of the function, a METH_FASTCALL builtin of the tuple (definition, (record, ...))."""
    with LOCK:
        engine = link(object_code(key_of(text := code()), lambda: llvm.parse_assembly(text)))
        found = engine.get_function_address("direct_call")
        places: dict[str, Any] = {
            name: ctypes.c_void_p.from_address(engine.get_global_value_address(f"direct_{name}"))
            for name in ("ndarray", "new", "scalar", "number")
        }
        engine.detach()  # which unloads nothing
    places["ndarray"].value = id(np.ndarray)
    places["new"].value = numpy_function("PyArray_NewFromDescr")
    places["scalar"].value = numpy_function("PyArray_Scalar")
    places["number"].value = numpy_function("PyArray_ScalarAsCtype")
    return found
