"""The syntax of user code, rewritten with hooks.

    f(a)            HOOKS.callee(f)(a)
    u = np.zeros(3) u = HOOKS.filled(HOOKS.method(np, "zeros"), ("t",))(3)      where `u[0] = t` follows
    o.m(a)          HOOKS.method(o, "m")(a)
    o.x             HOOKS.attribute(o, "x")
    c[i]            HOOKS.item(c, i)
    c[i] = v        HOOKS.place(c)[i] = v
    n               HOOKS.variable(n)           for a global or a variable of an enclosing function
    for v in c      for v in HOOKS.each(c, place)
    while c: …      for _ in HOOKS.turns(place): if not c: break …
    break           if HOOKS.leaves(line, column): break …      (`fnad.trace.looping`)
    a is b          HOOKS.same(a, b)
    case True: …    case m if HOOKS.same(m, True): …
    a + b, a < b    HOOKS.operand(a) + b
    o.x = v         HOOKS.stored(o, "x").x = v
    o.n += 1        HOOKS.counter(o, "n").n += 1
    v += x          v += HOOKS.changed(v, x)    for a local variable
    [f(v) for v in x if c]      [f(v) for …] unless HOOKS.comprehends(place), else
                                HOOKS.comprehended(x, lambda v: f(v), lambda v: c, place)
    u = []          u = HOOKS.listed([], line, column)      where `u.append` follows
    try: …          try: with HOOKS.trying("E"): …
    except E: …     except E: HOOKS.handles(); …
    finally: return finally: HOOKS.handles(); return
    with c: …       with HOOKS.within(c): …
    def f(): …      def f(): HOOKS.enters(facts); …     what f uses of outer scopes

`HOOKS` is a name for a constant here (`fnad.trace.conversion`). Every new node has the file, line and columns of the
node that it replaces.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Sequence
from copy import deepcopy
from typing import Any, cast

from fnad.trace.filling import extended_in, makers
from fnad.trace.nodes import (
    ENDS,
    NOT_COPIED,
    ORDERING,
    SINGLE,
    OfBools,
    as_value,
    constant,
    handled_by,
    hook,
    is_plain,
    left,
    listed,
    mangled,
    name_of,
    own_nodes,
    together,
)
from fnad.trace.variables import (
    COUNTED,
    EXTENDED,
    READ,
    TALLIED,
    WRITTEN,
    Place,
    Scope,
    bound_in,
    first_read,
    live_behind,
    reads_in,
)


class Hooked(ast.NodeTransformer):
    """Puts hooks into the syntax of a module; annotations, and patterns except bools, stay as they are.

    `_class` is the name of the class around a node, and `_local` has its variables that are not of outer scopes.
    `_scope` is the function around it, `_reads` counts how often that function reads variables. `_live` has those that
    may be read behind its loops, `_around` are the loops. `_final` are the statements that end a `finally` clause.
    `_makers` has the calls that make an array to be filled, `_extended` the variables with lists that are extended.
    """

    def __init__(self) -> None:
        self._class = ""
        self._local: frozenset[str] = frozenset()
        self._scope = Scope(frozenset(), None)
        self._reads: Counter[str] = Counter()
        self._live: dict[ast.AST, set[str]] = {}
        self._around: list[Place | None] = []
        self._final: tuple[type[ast.stmt], ...] = ()
        self._makers: dict[ast.Call, tuple[str, ...]] = {}
        self._extended: set[str] = set()

    def all(self, nodes: Iterable[Any]) -> list[Any]:
        """Rewrite statements or expressions; a statement may become several."""
        found = (self.visit(node) for node in nodes)
        return [part for each in found for part in (each if isinstance(each, list) else [each])]

    # ---- reads -------------------------------------------------------------------------------------------------------

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id in self._local:
            return node
        is_read = isinstance(node.ctx, ast.Load)
        self._scope.note(node.id, READ if is_read else WRITTEN)
        return hook("variable", node, node) if is_read else node

    def _owner(self, node: ast.expr, use: str = READ) -> ast.expr:
        """The expression before a dot, bracket or call; a variable is left to the hook around it."""
        if not isinstance(node, ast.Name):
            return self.visit(node)
        if node.id not in self._local:
            self._scope.note(node.id, use)
        return node

    def _of_attribute(self, name: str, node: ast.Attribute, use: str = READ) -> ast.Call:
        """The call of a hook on the owner of an attribute and its name."""
        return hook(name, node, self._owner(node.value, use), ast.Constant(mangled(node.attr, self._class)))

    def visit_Call(self, node: ast.Call) -> ast.AST:
        first: list[Any] = []
        if isinstance(node.func, ast.Name) and node.args and isinstance(node.args[0], ast.GeneratorExp):
            first = [self._as_loop(node.args.pop(0), self.visit(deepcopy(node.func)))]
        if isinstance(node.func, ast.Attribute):
            use = EXTENDED if node.func.attr in ("append", "add") else READ
            node.func = self._of_attribute("method", node.func, use)
        else:
            node.func = hook("callee", node.func, self._owner(node.func))
        if node in self._makers:
            node.func = hook("filled", node.func, node.func, constant(self._makers[node]))
        node.args, node.keywords = [*first, *self.all(node.args)], self.all(node.keywords)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if isinstance(node.ctx, ast.Load):
            return self._of_attribute("attribute", node)
        node.value = self._of_attribute("stored", node)
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        node.value, node.slice = self._owner(node.value), self.visit(node.slice)
        if isinstance(node.ctx, ast.Load):
            return hook("item", node, node.value, as_value(node.slice))
        node.value = hook("place", node.value, node.value)
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        identities = [isinstance(op, (ast.Is, ast.IsNot)) for op in node.ops]
        if len(identities) > 1 and any(identities):
            return self._chain(node, all(identities))
        self.generic_visit(node)
        if len(node.ops) == 1 and isinstance(node.ops[0], ORDERING):
            node.left = left(node.left, node.comparators[0])
        if identities != [True]:
            return node
        sides = (node.left, node.comparators[0])
        if any(isinstance(side, ast.Constant) and type(side.value) is not bool for side in sides):
            return node
        same = hook("same", node, node.left, node.comparators[0])
        return same if isinstance(node.ops[0], ast.Is) else ast.copy_location(ast.UnaryOp(ast.Not(), same), node)

    def _chain(self, node: ast.Compare, is_pure: bool) -> ast.AST:
        """`a is b is c` compares the wrapped operands with `==`; a chain of other kinds compares its neighbours."""
        operands = [node.left, *node.comparators]
        known = [isinstance(each, (ast.Name, ast.Constant)) for each in operands]
        if is_pure:
            node.left, *others = (hook("Same", each, self.visit(each)) for each in operands)
            node.comparators = list[ast.expr](others)
            node.ops = [ast.Eq() if isinstance(op, ast.Is) else ast.NotEq() for op in node.ops]
        elif all(known[1:-1]):
            pairs = zip(operands, node.ops, operands[1:], strict=False)
            tests = [ast.copy_location(ast.Compare(a, [op], [b]), node) for a, op, b in pairs]
            return together(ast.And(), self.all(tests), node)
        elif all(known[2:]):  # `a < f(x) is True`: the chain of names of its operands
            names = [name_of(f"__{k}__", each) for k, each in enumerate(operands)]
            chain = ast.copy_location(ast.Compare(names[0], node.ops, list[ast.expr](names[1:])), node)
            return ast.copy_location(ast.Call(self._of_item(names, chain, node), self.all(operands), []), node)
        else:
            self.generic_visit(node)
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        node.left = left(node.left, node.right)
        return node

    def visit_For(self, node: Any) -> ast.AST:
        place = self._place([node.target], node, node.lineno)
        operands = () if place is None else (constant(tuple(place)),)
        node.iter = hook("each", node.iter, self.visit(node.iter), *operands)
        node.target, node.body, orelse = self.visit(node.target), self._steps(node, place), self.all(node.orelse)
        node.orelse = orelse if place is None else []
        return self._whole(node, place, orelse)

    def visit_While(self, node: ast.While) -> Any:
        """A loop whose steps begin with its test."""
        place = self._place([], node, node.test.lineno)
        if place is None:
            node.test, node.body, node.orelse = self.visit(node.test), self._steps(node, None), self.all(node.orelse)
            return node
        test = ast.copy_location(ast.UnaryOp(ast.Not(), self.visit(node.test)), node.test)
        ends = ast.copy_location(ast.If(test, self._leaving(node.test, place), []), node.test)
        body: list[ast.stmt] = [ends, *self._steps(node, place)]
        turns = hook("turns", node.test, constant(tuple(place)))
        target = ast.copy_location(ast.Name(TURN, ast.Store()), node.test)
        return self._whole(ast.copy_location(ast.For(target, turns, body, []), node), place, self.all(node.orelse))

    def _whole(self, loop: Any, place: Place | None, orelse: list[ast.stmt]) -> Any:
        """A loop with what goes before and behind it, if there is a `return` in it, or it has an `else`."""
        if place is None:
            return loop
        start, behind = dict[str, Any](), list[ast.stmt]()
        if RESULT in place.names:
            start |= {place.left: constant(False), RESULT: constant(None)}
            behind.append(ast.If(name_of(place.left, loop), self._returning(loop, name_of(RESULT, loop)), []))
        if orelse:
            start[place.broken] = constant(False)
            behind.append(ast.If(ast.UnaryOp(ast.Not(), name_of(place.broken, loop)), orelse, []))
        before = [ast.Assign([name_of(name, loop, ast.Store())], value) for name, value in start.items()]
        around = [ast.fix_missing_locations(ast.copy_location(each, loop)) for each in (*before, *behind)]
        return [*around[: len(before)], loop, *around[len(before) :]] if around else loop

    def visit_Return(self, node: ast.Return) -> Any:
        return self._ended(node, self._returning(node, None if node.value is None else self.visit(node.value)))

    def _returning(self, node: Any, value: ast.expr | None) -> list[ast.stmt]:
        """Return a value, or leave the loop around and return it behind that."""
        place = self._around[-1] if self._around else None
        if place is None:
            return [ast.copy_location(ast.Return(value), node)]
        names = [name_of(name, node, ast.Store()) for name in (RESULT, place.left)]
        values = [value or constant(None), constant(True)]
        assigns = [ast.Assign([name], each) for name, each in zip(names, values, strict=True)]
        leaves = hook("leaves", node, ast.Constant(place.line), ast.Constant(place.column))
        made = [*assigns, ast.If(leaves, [ast.Break()], []), ast.Continue()]
        return [ast.fix_missing_locations(ast.copy_location(each, node)) for each in made]

    def visit_Break(self, node: ast.Break) -> Any:
        place = self._around[-1] if self._around else None
        if place is None:
            return self._ended(node, [node])
        is_noted = place.broken in place.names
        noted = ast.Assign([name_of(place.broken, node, ast.Store())], constant(True))
        made = [*[ast.fix_missing_locations(ast.copy_location(noted, node))] * is_noted, *self._leaving(node, place)]
        return self._ended(node, made)

    def _leaving(self, node: Any, place: Place) -> list[ast.stmt]:
        """Leave a loop, or go on to where the ways through a step are put together."""
        leaves = hook("leaves", node, ast.Constant(place.line), ast.Constant(place.column))
        made = [ast.If(leaves, [ast.copy_location(ast.Break(), node)], []), ast.Continue()]
        return [ast.copy_location(each, node) for each in made]

    def _steps(self, node: Any, place: Place | None) -> list[Any]:
        self._around.append(place)
        final, self._final = self._final, tuple(kind for kind in self._final if kind is ast.Return)
        body = self.all(node.body)
        self._final = final
        self._around.pop()
        return body

    def _place(self, before: list[ast.AST], node: Any, first: int) -> Place | None:
        """The place of a loop of which one step may stand for all, else None."""
        parts = [*before, *([node.test] if isinstance(node, ast.While) else ()), *node.body]
        last = node.end_lineno or first
        is_plain = self._scope.outer is not None and isinstance(node, (ast.For, ast.While))
        stored = bound_in(parts)
        if not is_plain or not stored <= self._local or any(isinstance(n, SINGLE) for n in own_nodes(parts)):
            return None
        read = Counter(reads_in(*parts))
        after = {name for name in stored if self._reads[name] > read[name]} & self._live.get(node, stored)
        kept = tuple(sorted((first_read(parts, bound_in(before)) | after) & stored))
        place = Place(node.lineno, node.col_offset, first, last, kept, kept if self._around else tuple(sorted(after)))
        own = [place.left, RESULT] if any(isinstance(n, ast.Return) for n in own_nodes(parts)) else []
        own += [place.broken] if node.orelse else []
        return place._replace(names=(*place.names, *own), after=(*place.after, *own))

    def _as_loop(self, node: Any, *function: ast.expr) -> ast.AST:
        """A list, or a generator for a function, that may be made by one loop."""
        part, *others = node.generators
        inner = [n for n in ast.walk(node) if isinstance(n, NOT_COPIED) and n is not node]
        names = part.target.elts if isinstance(part.target, ast.Tuple) else [part.target]
        is_plain = not (others or inner or part.is_async) and all(isinstance(name, ast.Name) for name in names)
        if self._scope.outer is None or not is_plain:
            return self._whole_comprehension(node)
        count = len(names) if isinstance(part.target, ast.Tuple) else None
        place = constant((node.lineno, node.col_offset, node.lineno, node.end_lineno, (), (), count))
        test = together(ast.And(), part.ifs or [constant(True)], node)
        functions = [self._of_item(names, deepcopy(each), node) for each in (node.elt, test)]
        values = ast.copy_location(ast.List([self.visit(deepcopy(part.iter))], ast.Load()), part.iter)
        one = hook("comprehended", node, values, *functions, place)
        is_one = hook("comprehends", node, place, *function)
        return ast.copy_location(ast.IfExp(is_one, one, cast("ast.expr", self._whole_comprehension(node))), node)

    def _of_item(self, names: list[Any], node: ast.expr, place: ast.expr) -> ast.expr:
        """The function from the variables of an item to a value."""
        parameters = ast.arguments([], [ast.arg(name.id) for name in names], None, [], [], None, [])
        function: Any = ast.fix_missing_locations(ast.copy_location(ast.Lambda(parameters, node), place))
        function = self.visit(function)
        for each in (function, *function.args.args):  # another line than that of a function of user code
            each.lineno, each.end_lineno, each.col_offset, each.end_col_offset = 1, 1, 0, 0
        return function

    def _whole_comprehension(self, node: Any) -> ast.AST:
        """The first iterable is evaluated outside, all else where the targets are variables."""
        outer, first = self._local, node.generators[0]
        first.iter = self.visit(first.iter)
        self._local = outer | bound_in([part.target for part in node.generators])
        for part in node.generators:
            part.iter = part.iter if part is first else self.visit(part.iter)
            part.iter = part.iter if part.is_async else hook("each", part.iter, part.iter)
            part.target, part.ifs = self.visit(part.target), self.all(part.ifs)
        for name in ("elt", "key", "value"):
            if (part := getattr(node, name, None)) is not None:  # `{**table for ...}` has no value
                setattr(node, name, self.visit(part))
        self._local = outer
        return node

    visit_ListComp = _as_loop
    visit_SetComp = visit_DictComp = visit_GeneratorExp = _whole_comprehension

    # ---- writes ------------------------------------------------------------------------------------------------------

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        """`n += 1` and the like, of which the value goes nowhere else, are counters."""
        target = node.target
        is_count = isinstance(node.value, ast.Constant) and isinstance(node.value.value, (int, float))
        if is_count and isinstance(target, ast.Attribute):
            target.value = self._of_attribute("counter", target)
        elif is_count and isinstance(target, ast.Name):
            if target.id not in self._local:
                self._scope.note(target.id, COUNTED)
        elif is_count and isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant):
            target.value = self._tallied(target.value)
        else:
            node.target = self.visit(target)
        node.value = self.visit(node.value)
        if isinstance(target, ast.Name) and target.id in self._local:
            read = ast.copy_location(ast.Name(target.id, ast.Load()), target)
            node.value = hook("changed", node.value, read, node.value)
        return node

    def visit_List(self, node: ast.List) -> ast.AST:
        """An empty list, if the function extends some."""
        self.generic_visit(node)
        return node if node.elts or not self._extended or not isinstance(node.ctx, ast.Load) else listed(node)

    def _listed(self, targets: Sequence[ast.expr], value: ast.expr) -> ast.expr:
        """The value of variables, with lists that the function extends."""
        for target in targets:
            if isinstance(target, ast.Name) and isinstance(value, ast.List) and target.id in self._extended:
                return listed(value)
            if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
                pairs = zip(target.elts, value.elts, strict=True)
                value.elts = [self._listed([part], element) for part, element in pairs]
        return value

    def _tallied(self, node: ast.expr) -> ast.expr:
        if isinstance(node, ast.Attribute):
            return self._of_attribute("tally", node)
        return hook("place", node, self._owner(node, TALLIED))

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        """`o.n = o.n + 1` is a counter too."""
        match node:
            case ast.Assign([ast.Attribute() as target], ast.BinOp(left=left, right=ast.Constant())) if ast.unparse(
                target
            ) == ast.unparse(left) and not any(isinstance(part, ast.Call) for part in ast.walk(target)):
                target.value = self._of_attribute("counter", target)
            case _:
                self.generic_visit(node)
                node.value = self._listed(node.targets, node.value)
        return node

    # ---- scopes ------------------------------------------------------------------------------------------------------

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        outer = self._class, self._local
        self._class, self._local = node.name, self._local | bound_in(node.body)
        node.body = self.all(node.body)
        self._class, self._local = outer
        node.decorator_list = self._callees(node.decorator_list)
        node.bases, node.keywords = self.all(node.bases), self.all(node.keywords)
        return node

    def _callees(self, nodes: Iterable[ast.expr]) -> list[ast.expr]:
        """Decorators, which Python calls."""
        return [hook("callee", node, self._owner(node)) for node in nodes]

    def _function(self, node: Any, body: list[Any]) -> tuple[list[Any], ast.expr | None]:
        """The rewritten body of a function, and what it uses of outer scopes."""
        self.visit(node.args)
        before = vars(self).copy()
        self._around, self._final = [], ()
        self._local = bound_in([node.args, *body])
        self._scope = Scope(self._local, self._scope)
        self._reads, self._live = Counter(reads_in(*body)), live_behind(body)
        found = self.all(body), self._scope.end()
        vars(self).update(before)
        return found

    def visit_FunctionDef(self, node: Any) -> ast.AST:
        if self._scope.outer is None:
            self._makers, self._extended = makers(node), extended_in(node)
        node.decorator_list = self._callees(node.decorator_list)
        has_text = isinstance(node.body[0], ast.Expr) and isinstance(node.body[0].value, ast.Constant)
        first = node.body[1 if has_text and len(node.body) > 1 else 0]
        node.body, facts = self._function(node, node.body)
        if facts is not None:
            node.body.insert(has_text, ast.copy_location(ast.Expr(hook("enters", first, facts)), first))
        return node

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        (node.body,), facts = self._function(node, [node.body])
        if facts is not None:
            enters = hook("enters", node.body, facts)
            node.body = ast.copy_location(ast.BoolOp(ast.Or(), [enters, node.body]), node.body)
        return node

    def visit_Import(self, node: Any) -> Any:
        """Note the names of modules before, as there may be none, and what is bound behind it."""
        if self._scope.outer is None:
            return node
        level, module = getattr(node, "level", 0), getattr(node, "module", None)
        names, attributes = tuple(alias.name for alias in node.names), ()
        if isinstance(node, ast.ImportFrom):
            names, attributes = (module or "",), names
        before = hook("imports", node, constant((level, names, attributes)))
        bound = [alias.asname or alias.name.partition(".")[0] for alias in node.names if alias.name != "*"]
        values = [ast.copy_location(ast.Name(name, ast.Load()), node) for name in bound]
        behind = hook("imported", node, *values)
        return [ast.copy_location(ast.Expr(before), node), node, ast.copy_location(ast.Expr(behind), node)]

    visit_ImportFrom = visit_Import

    def visit_Try(self, node: Any) -> ast.AST:
        kinds = [kind for kind in map(handled_by, node.handlers) if kind]
        first, final = node.body[0], self._final
        node.body, node.handlers, node.orelse = map(self.all, (node.body, node.handlers, node.orelse))
        self._final = ENDS
        node.finalbody, self._final = self.all(node.finalbody), final
        if kinds:
            item = ast.withitem(hook("trying", first, ast.Constant(f"({', '.join(kinds)},)")))
            node.body = [ast.fix_missing_locations(ast.copy_location(ast.With([item], node.body), first))]
        return node

    visit_TryStar = visit_Try

    def _ended(self, node: ast.stmt, made: list[Any]) -> list[Any]:
        """The statements for one that ends a `finally` clause, and with it the error under way."""
        ends = isinstance(node, self._final)
        return [*[ast.copy_location(ast.Expr(hook("handles", node)), node)] * ends, *made]

    def visit_Continue(self, node: ast.Continue) -> Any:
        return self._ended(node, [node])

    def visit_With(self, node: ast.With) -> ast.AST:
        self.generic_visit(node)
        for item in node.items:
            item.context_expr = hook("within", item.context_expr, item.context_expr)
        return node

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> ast.AST:
        first = node.body[0]
        kinds = [deepcopy(node.type)] if node.type is not None and is_plain(node.type) else []
        node.type = None if node.type is None else self.visit(node.type)
        node.body = [ast.copy_location(ast.Expr(hook("handles", first, *kinds)), first), *self.all(node.body)]
        return node

    def visit_Match(self, node: ast.Match) -> ast.AST:
        patterns = (part for case in node.cases for part in ast.walk(case.pattern))
        names = {name for part in patterns if isinstance(part, ast.MatchClass) for name in part.kwd_attrs}
        node.subject = self.visit(node.subject)
        if names:
            node.subject = hook("matched", node.subject, node.subject, constant(tuple(sorted(names))))
        for case in node.cases:
            bools = OfBools()
            case.pattern = bools.visit(case.pattern)
            tests = [*bools.tests, *([] if case.guard is None else [self.visit(case.guard)])]
            case.guard = together(ast.And(), tests, case.pattern) if tests else None
            case.body = self.all(case.body)
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        node.target = self.visit(node.target)
        node.value = None if node.value is None else self._listed([node.target], self.visit(node.value))
        return node

    def visit_arg(self, node: ast.arg) -> ast.AST:
        return node

    visit_TypeAlias = visit_arg


TURN, RESULT = "__turn__", "__result__"
"""The variable of the loop that stands for a `while`, and that for what a function returns from within a loop."""
