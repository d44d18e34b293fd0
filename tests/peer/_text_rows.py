# SPDX-License-Identifier: Apache-2.0
"""Checks that the modules of _text_modules.py have every row of the tables of HLO text, and every construct.

missing() names the rows that no module has, so that a new row of a table requires a module.
"""
import re

# Forms that jaxlib 0.10's reader rejects, because they are newer. The golden test NEWER_TEST has them.
NEWER = {'debug_attributes', 'has_dynamic_root', 'sparsity', 'preserve_layout', 'dot_any_f8_any_f8_any',
         'dot_any_f8_any_f8_any_fast_accum', 'topk is_stable', 'dot sparsity', 'collective-broadcast has_dynamic_root'}
NEWER_TEST = 'testdata/parse/newer.hlo'

# Asynchronous forms of operations, except those that are opcodes.
SUGAR = ('call-start call-update call-done custom-call-start custom-call-update custom-call-done fusion-start fusion-update '
         'fusion-done abs-start abs-done negate-start negate-update negate-done slice-start slice-done add-start add-done '
         'dot-start dot-done dynamic-update-slice-start dynamic-update-slice-done reduce-scatter-start reduce-scatter-update '
         'reduce-scatter-done all-to-all-start all-to-all-done').split()

# Constructs, each with the pattern of texts that have it.
CONSTRUCTS = {
    'layout': r'\]\{1,0\}',
    'layout of a scalar': r'\[\]\{:',
    'one tile': r':T\(8,128\)[^(]',
    'several tiles': r'T\(8,128\)\(2,1\)',
    'merged tile dimension': r'T\(\d*,?\*',
    'memory space': r'[:)]S\(\d',
    'element size': r'E\(4\)',
    'tail padding': r'L\(64\)',
    'dynamic shape prefix': r'M\(16\)',
    'split config': r'SC\(1:2,1\)',
    'several split configs': r'SC\(0:2\)\(1:1\)',
    'index type': r'#\(u32\)',
    'pointer type': r'\*\(u8\)',
    'dense level': r'D\(D,',
    'compressed level': r'D\(D,C\)',
    'level that is not unique': r'C\+',
    'level that is not ordered': r'C~',
    'bounded dimension': r'\[<=10',
    'unbounded dimension': r'\[\?',
    'empty tuple': r'= \(\) ',
    'tuple in a tuple': r'\(f32\[2\], \(',
    'buffer': r'\bb\(',
    'token': r'token\[\]',
    'opaque': r'opaque\[\]',
    'index comment': r'/\*index=5\*/',
    'other comment': r'/\*[^i]',
    'line comment': r' // ',
    'names with a percent sign': r' %a = ',
    'operand with a shape': r'\(f32\[2\](\{0\})? ',
    'signature': r'\([a-z]+: f32\[2\].*\) -> ',
    'nested operand': r'add\(negate\(a\)',
    'inline computation': r'to_apply=\{',
    'inline fusion': r'calls=\{',
    'inline branches': r'branch_computations=\{\{',
    'shape left out': r' c = add\(',
    'elided literal': r'constant\(\{\.\.\.\}\)',
    'nan': r'[^-]\bnan\b[^(]',
    'negative nan': r'-nan\b',
    'nan with a payload': r'nan\(0x',
    'inf': r'[^-]inf\b',
    'negative inf': r'-inf\b',
    'tuple literal': r'constant\(\(\{',
    'complex element': r'constant\(\{?\(1, ',
    'negative zero': r'-0\.0',
    'exponent': r'\de[+-]\d',
    'sharding: replicated': r'sharding=\{replicated\}',
    'sharding: manual': r'sharding=\{manual\}',
    'sharding: unknown': r'sharding=\{unknown\}',
    'sharding: unreduced': r'sharding=\{unreduced\}',
    'sharding: maximal': r'\{maximal device=',
    'sharding: device list': r'devices=\[2,2\]0,1,2,3',
    'sharding: iota': r'devices=\[2\]<=\[2\]',
    'sharding: iota transposed': r'<=\[2,2\]T\(1,0\)',
    'sharding: last_tile_dim_replicate': r'last_tile_dim_replicate',
    'sharding: last_tile_dims': r'last_tile_dims=\{manual, ?replicated\}',
    'sharding: tuple': r'sharding=\{\{\w+\}, \{',
    'sharding: shard_as': r'shard_as 1',
    'sharding: shard_like': r'shard_like ',
    'sharding: metadata': r'<=\[2\] metadata=\{op_name',
    'sharding: list of metadata': r'metadata=\{\{op_name="a"\}, ',
    'sharding: mesh': r"sharding=\{mesh\['a'=2\], \[\{'a'\}\]",
    'sharding: sub-axis': r"'b':\(2\)2",
    'sharding: open dimension': r"'a', \?\}",
    'sharding: replicated axes': r"replicated=\{'b'",
    'sharding: unreduced axes': r"unreduced=\{'b'",
    'sharding: manual axes': r"manual=\{'b'",
    'sharding: wholly replicated mesh': r"\], replicated\}",
    'sharding: wholly manual mesh': r"\], manual\}",
    'sharding: wholly unreduced mesh': r"\], unreduced\}",
    'sharding: device ids': r'device_ids=\(1,0',
    'sharding: device ids by iota': r'device_ids=\(\[',
    'sharding: maximal mesh': r'maximal_mesh\[device_id=',
    'groups: lists': r'replica_groups=\{\{0,1\},\{2,3\}\}',
    'groups: none': r'replica_groups=\{\}',
    'groups: iota': r'replica_groups=\[2,2\]<=\[4\]',
    'groups: iota transposed': r'replica_groups=\[2,2\]<=\[2,2\]T\(1,0\)',
    'groups: mesh': r"replica_groups=mesh\['a'=2,'b'=2\] ?\{'a'\}",
    'backend_config: string': r'backend_config="',
    'backend_config: JSON': r'backend_config=\{"',
    'frontend attribute in braces': r'frontend_attributes=\{[^}]*=\{',
    'tables': r'FileNames\n[^$]*FunctionNames\n[^$]*FileLocations\n[^$]*StackFrames\n',
    'origin of a tuple': r'origin=\{\(\{"',
    'origin of an element': r'\{"a" \{0\}\}',
    'window with dilation, padding and stride': r'stride=2x2 pad=1_1x1_1 lhs_dilate',
    'dim_labels with unknown dimensions': r'dim_labels=\S*\?',
    'slice with a stride': r'slice=\{\[0:8:2\]',
    'padding': r'padding=1_2',
    'interior padding': r'padding=\S*1_2_1',
    'negative padding': r'padding=\S*-1',
    'may-alias': r'may-alias',
    'must-alias': r'must-alias',
    'alias of a part': r'\(1, \{0\}',
    'after a body': r'\}, execution_thread="',
    'CRLF': r'\r\n',
    'no header': r'^ENTRY ',
    'no ENTRY': r'^\w+ \{[^$]*\}\s*$(?<!ENTRY)',
    'one instruction': r'^%?\w+ = ',
    'all on one line': r'^HloModule m\nENTRY e \{\n.*parameter\(0\) +b = .*\n\}\n$',
    'string in single quotes': r"op_name='",
    'octal escape': r'\\303',
}


def table(root, name, row):
    return re.findall(row, re.sub(r'/\*.*?\*/', '', (root / name).read_text(), flags=re.S), flags=re.S)


# Types of constants on which jaxlib aborts when it serializes them; test_text.py has some.
UNSERIALIZED = ('f6e2m3fn', 'f6e3m2fn')


def rows(root):
    """Yields (row, pattern): a text contains the row if the pattern matches one of its lines."""
    attr = dict(table(root, 'ir/table/attr.def', r'HLO_ATTR\((\w+),\s*"([^"]+)"'))
    for name in attr.values():
        yield f'attribute {name}', name, rf'(?<![\w-]){re.escape(name)}='
    for line in table(root, 'ir/table/op.def', r'HLO_OP\(([^;]*?)\)\s*(?=HLO_OP|\Z)'):
        op = re.search(r'"([^"]+)"', line)[1]
        yield f'opcode {op}', op, rf'(?<![\w-]){re.escape(op)}\('
        for id in re.findall(r'\bA\((\w+)\)', line):
            name = attr[id]
            yield f'{op} with {name}', f'{op} {name}', rf'(?<![\w-]){re.escape(op)}(-start)?\(.*(?<![\w-]){re.escape(name)}='
    for name, kind in table(root, 'ir/table/type.def', r'HLO_TYPE\(\w+, "(\w+)", \d+, (\w+)\)'):
        if name != 'tuple':
            yield f'type {name}', name, rf'(?<!\w){name}\['
        if kind != 'NONE' and name not in UNSERIALIZED:
            yield f'constant of {name}', name, rf'(?<!\w){name}\[.*constant\('
    for id, words in table(root, 'ir/table/attr_value.def', r'HLO_ATTR_VALUES\((\w+), \w+,((?:\s*"[^"]*")+)\)'):
        for word in re.sub(r'["\s]+', ' ', words).split():
            yield f'{attr[id]}={word}', word, rf'(?<![\w-]){attr[id]}={word}\b'
    for name in SUGAR:
        yield f'asynchronous {name}', name, rf' {name}\('


def missing(modules, root):
    """Returns the rows and constructs that no text has, and those of NEWER that the golden test lacks."""
    lines = '\n'.join(text.replace('\r', '\n') for _, text in modules)
    newer = (root / NEWER_TEST).read_text()
    lack = [row for row, key, pattern in rows(root) if not re.search(pattern, newer if key in NEWER else lines)]
    texts = [text for _, text in modules]
    return lack + [name for name, pattern in CONSTRUCTS.items() if not any(re.search(pattern, text) for text in texts)]
