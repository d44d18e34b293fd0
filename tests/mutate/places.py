# SPDX-License-Identifier: Apache-2.0
"""Finds positions and kinds of mutations in C code with libclang, for mutate.py.

A mutant replaces the bytes [start, end) of a file (an rvalue expression or a jump in a function body) by a mutated
form. Code inside a macro is not mutated, and neither is a constant expression that C requires (a case label, the size
of an array, a static initializer).
"""
import bisect
import random
import re

from clang.cindex import CursorKind as K, Diagnostic, Index, TranslationUnit, TypeKind

from mutant import EXPRESSION, STATEMENT, Mutant, mutated

FLIPPED = {"<": ("<=", ">"), "<=": ("<", ">="), ">": (">=", "<"), ">=": (">", "<="), "==": ("!=",), "!=": ("==",)}
OPERATORS = {"+": "-", "-": "+", "*": "+", "/": "*", "%": "/", "<<": ">>", ">>": "<<", "&": "|", "|": "&", "^": "|",
             "&&": "||", "||": "&&"}
COMPOUND = {"+=": "-=", "-=": "+=", "*=": "+=", "/=": "*=", "%=": "/=", "<<=": ">>=", ">>=": "<<=", "&=": "|=", "|=": "&=",
            "^=": "|="}
SKIPPED = {K.CXX_UNARY_EXPR, K.STATIC_ASSERT, K.ENUM_DECL, K.STRUCT_DECL, K.UNION_DECL, K.TYPEDEF_DECL, K.GENERIC_SELECTION_EXPR}
COMMUTE = "strcmp", "strncmp", "memcmp"  # exchanged arguments only change the sign of the result
FREES = re.compile(r"free$|_free_|_decref$|^dlclose$")  # only the sanitized build finds leaks, and it has no mutants
COMMENT = re.compile(rb"/\*.*?\*/|//[^\n]*", re.S)


class File:
    """Collects the candidates for mutation in one source, by the line on which they begin."""

    def __init__(self, name, path, data, arguments):
        self.name, self.path, self.data, self.found, self.lines = name, path, data, [], {}
        self.arguments = arguments
        options = TranslationUnit.PARSE_DETAILED_PROCESSING_RECORD
        self.unit = Index.create().parse(path, args=arguments, unsaved_files=[(path, data)], options=options)
        self.errors = errors(self.unit)  # libclang does not support gcc's atomics: only new errors show that a mutant is invalid
        spans = []
        for cursor in self.unit.cursor.get_children():
            if cursor.kind == K.MACRO_INSTANTIATION and self.here(cursor):
                spans.append((cursor.extent.start.offset, cursor.extent.end.offset))
        self.macros = sorted(spans)
        for cursor in self.unit.cursor.get_children():
            if cursor.kind == K.FUNCTION_DECL and cursor.is_definition() and self.here(cursor):
                for child in cursor.get_children():
                    if child.kind == K.COMPOUND_STMT:
                        self.statement(child)
        starts = [0] + [at.end() for at in re.finditer(rb"\n", data)]
        for mutant in self.found:
            self.lines.setdefault(bisect.bisect_right(starts, mutant.start), []).append(mutant)

    def here(self, cursor):
        return cursor.location.file is not None and cursor.location.file.name == self.path

    def compiles(self, data):
        self.unit.reparse(unsaved_files=[(self.path, data)])
        return len(errors(self.unit)) <= len(self.errors)

    def span(self, cursor):
        return cursor.extent.start.offset, cursor.extent.end.offset

    def source(self, cursor):
        start, end = self.span(cursor)
        return self.data[start:end]

    def plain(self, cursor):
        """Returns whether the expression is not part of a macro's expansion; it may contain whole macros."""
        start, end = self.span(cursor)
        return start < end and all(not (low < end and start < high) or (start <= low and high <= end and (low, high) != (start, end))
                                   for low, high in self.macros)

    def add(self, cursor, kind, form, text=b""):
        start, end = self.span(cursor)
        if form == EXPRESSION and cursor.type.get_canonical().kind in (TypeKind.VOID, TypeKind.INVALID, TypeKind.RECORD) \
                and cursor.kind != K.CALL_EXPR:
            return
        text = COMMENT.sub(b" ", text).replace(b"\n", b" ") if b"//" in text else text
        self.found.append(Mutant(self.name, start, end, kind, form, text))

    def statement(self, cursor):
        """Adds the candidates in a statement of a function, and the statement itself if it can be omitted."""
        kind = cursor.kind
        children = list(cursor.get_children())
        if kind in (K.COMPOUND_STMT, K.LABEL_STMT, K.DEFAULT_STMT):
            for child in children:
                self.statement(child)
        elif kind == K.CASE_STMT:
            self.statement(children[-1])
        elif kind in (K.IF_STMT, K.WHILE_STMT, K.SWITCH_STMT):
            if kind != K.SWITCH_STMT:
                self.negate(children[0])
            self.expression(children[0], cursor)
            for child in children[1:]:
                self.statement(child)
        elif kind == K.FOR_STMT:
            for child in children[:-1]:
                self.expression(child, cursor)
            self.statement(children[-1])
        elif kind == K.DO_STMT:
            self.statement(children[0])
            self.expression(children[1], cursor)
        elif kind in (K.BREAK_STMT, K.CONTINUE_STMT):
            if self.plain(cursor):
                self.add(cursor, "statement", STATEMENT)
        else:
            if self.plain(cursor) and (kind == K.CALL_EXPR and not FREES.search(cursor.spelling)
                                       or kind == K.COMPOUND_ASSIGNMENT_OPERATOR
                                       or kind == K.BINARY_OPERATOR and self.operator(children) == "="
                                       or kind == K.UNARY_OPERATOR and self.source(cursor).strip(b"(*)")[-2:] in (b"++", b"--")):
                self.add(cursor, "statement", STATEMENT)
            self.expression(cursor, None)

    def negate(self, cursor):
        if self.plain(cursor):
            self.add(cursor, "negation", EXPRESSION, b"!(" + self.source(cursor) + b")")

    def operator(self, children):
        """Returns the text between two operands, which is their operator unless a macro contains it; empty for other numbers."""
        if len(children) != 2:
            return ""
        return COMMENT.sub(b"", self.data[children[0].extent.end.offset:children[1].extent.start.offset]).strip().decode()

    def expression(self, cursor, parent):
        kind = cursor.kind
        if kind in SKIPPED:
            return
        children = list(cursor.get_children())
        if kind == K.VAR_DECL:
            if cursor.storage_class.name == "STATIC":
                return
            if cursor.type.get_canonical().kind in (TypeKind.CONSTANTARRAY, TypeKind.VARIABLEARRAY, TypeKind.INCOMPLETEARRAY):
                children = [child for child in children if child.kind == K.INIT_LIST_EXPR]
        elif kind == K.COMPOUND_LITERAL_EXPR:
            children = [child for child in children if child.kind == K.INIT_LIST_EXPR]
        elif kind == K.INIT_LIST_EXPR and self.source(cursor) == b"{0}":
            return
        elif self.plain(cursor):
            self.candidates(cursor, kind, children)
        elif kind in (K.INTEGER_LITERAL, K.UNEXPOSED_EXPR) and self.source(cursor) in (b"true", b"false"):
            if kind == K.INTEGER_LITERAL or not children:
                self.add(cursor, "constant", EXPRESSION, b"false" if self.source(cursor) == b"true" else b"true")
            return
        if kind in (K.INTEGER_LITERAL, K.FLOATING_LITERAL):
            self.constant(cursor, parent)
        for child in children:
            if child.kind == K.COMPOUND_STMT:
                self.statement(child)
            else:
                self.expression(child, cursor)

    def candidates(self, cursor, kind, children):
        text = self.source(cursor)
        if kind == K.BINARY_OPERATOR and len(children) == 2:
            self.binary(cursor, children)
        elif kind == K.COMPOUND_ASSIGNMENT_OPERATOR and (operator := self.operator(children)) in COMPOUND:
            left, right = (self.source(child) for child in children)
            self.add(cursor, "operator", EXPRESSION, b"%s %s %s" % (left, COMPOUND[operator].encode(), right))
        elif kind == K.CONDITIONAL_OPERATOR:
            self.negate(children[0])
        elif kind == K.UNARY_OPERATOR and text[:1] == b"!":
            self.add(cursor, "negation", EXPRESSION, b"!!(" + self.source(children[0]) + b")")
        elif kind == K.UNARY_OPERATOR and text[:1] in (b"-", b"~") and text[:2] != b"--":
            self.add(cursor, "operator", EXPRESSION, self.source(children[0]))
        elif kind == K.CALL_EXPR:
            self.swaps(cursor)

    def binary(self, cursor, children):
        operator = self.operator(children)
        left, right = (self.source(child) for child in children)
        near, far = (text if re.fullmatch(rb"[\w.>\[\]-]+", text) else b"(" + text + b")" for text in (left, right))
        joined = lambda by: b"%s %s %s" % (near, by.encode(), far)
        for other in FLIPPED.get(operator, ()):
            self.add(cursor, "comparison", EXPRESSION, joined(other))
        if operator in FLIPPED and children[1].type.get_canonical().kind in INTEGERS and not re.fullmatch(rb"[0-9]\w*", right):
            for by in (b" - 1", b" + 1"):
                self.add(cursor, "constant", EXPRESSION, joined(operator) + by)
        if operator in OPERATORS:
            self.add(cursor, "operator", EXPRESSION, joined(OPERATORS[operator]))
        if operator in ("&&", "||"):
            self.add(cursor, "operand", EXPRESSION, b"!!(%s)" % left)
            self.add(cursor, "operand", EXPRESSION, b"!!(%s)" % right)

    def swaps(self, call):
        given = list(call.get_arguments())
        if call.spelling in COMMUTE or any(self.source(one).startswith(b"sizeof") for one in given):
            return
        for first, left in enumerate(given):
            for right in given[first + 1:]:
                if left.type.get_canonical().spelling != right.type.get_canonical().spelling:
                    continue
                one, two = self.source(left), self.source(right)
                if one == two or not one or not two:
                    continue
                start, low, high = call.extent.start.offset, self.span(left), self.span(right)
                text = self.source(call)
                self.add(call, "swap", EXPRESSION, text[:low[0] - start] + two + text[low[1] - start:high[0] - start] + one
                         + text[high[1] - start:])
                break

    def constant(self, cursor, parent):
        text = self.source(cursor)
        if not (self.plain(cursor) or re.fullmatch(rb"[A-Z][A-Z0-9_]*", text)) or text == b"NULL" or re.search(rb"_(MIN|MAX)$", text):
            return
        if parent is not None and parent.type.get_canonical().kind == TypeKind.POINTER and parent.kind != K.BINARY_OPERATOR:
            return
        self.add(cursor, "constant", EXPRESSION, text + b" + 1")
        if not re.fullmatch(rb"0[uUlLxX0.f]*", text):
            self.add(cursor, "constant", EXPRESSION, text + b" - 1")


INTEGERS = {TypeKind.INT, TypeKind.UINT, TypeKind.LONG, TypeKind.ULONG, TypeKind.LONGLONG, TypeKind.ULONGLONG, TypeKind.SHORT,
            TypeKind.USHORT, TypeKind.SCHAR, TypeKind.UCHAR, TypeKind.CHAR_S, TypeKind.CHAR_U}


def errors(unit):
    return [told for told in unit.diagnostics if told.severity >= Diagnostic.Error]


# Replaces mutant.h while libclang checks whether mutants compile.
ASIDE = b"int hlo_mutant(int);\n#define HLO_MUTANT(n) hlo_mutant(n)\n"


def draw(sources, count, seed, parsed):
    """Draws `count` mutants uniformly over the lines of code that can have a mutant, at most one per line. Of the kinds
    that the line can have, the kind drawn least often so far is used.

    sources: name -> bytes; parsed(name) -> File.
    """
    drawn, taken, files, used = random.Random(seed), {}, {}, {}
    lines = [(name, number) for name in sorted(sources)
             for number, text in enumerate(sources[name].split(b"\n"), 1) if text.strip(b" \t{};")]
    drawn.shuffle(lines)
    made = []
    for name, line in lines:
        if len(made) == count:
            break
        file = files.setdefault(name, None) or parsed(name)
        files[name] = file
        here = file.lines.get(line, [])
        kinds = sorted({mutant.kind for mutant in here})
        drawn.shuffle(kinds)
        kinds.sort(key=lambda kind: used.get(kind, 0))
        for kind in kinds:
            mutant = drawn.choice([mutant for mutant in here if mutant.kind == kind])
            beside = taken.setdefault(name, [])
            if any(mutant.start < other.end and other.start < mutant.end for _, other in beside):
                continue
            placed = beside + [(len(made), mutant)]
            if not file.compiles(ASIDE + mutated(file.data, placed)):
                continue
            beside.append((len(made), mutant))
            made.append((mutant, line))
            used[kind] = used.get(kind, 0) + 1
            break
    return made
