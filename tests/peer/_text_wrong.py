"""Wrong HLO text: each row a text with a `!` in front of the byte at which the first error is.

jaxlib refuses every one of them, or aborts.
"""
A = ' a = f32[2] parameter(0)\n'
E = 'HloModule m\nENTRY e {\n%s\n}\n'


def body(*lines):
    return [E % (A + ' ' + line) for line in lines]


def of(shape, *operands_and_attrs):
    return [E % f' a = {shape} parameter(0)\n ROOT c = {rest}' for rest in operands_and_attrs]


def constant(*rows):
    return [E % f' ROOT c = {shape} constant({value})' for shape, value in rows]


def shape(*rows):
    return [E % f' ROOT c = {row} parameter(0)' for row in rows]


def add(*attrs):
    return body(*[f'ROOT c = f32[2] add(a, a), {attr}' for attr in attrs])


WRONG = [
    # The header.
    'HloModule!', 'HloModule m, !nope=1\nENTRY e { ROOT x = f32[] parameter(0) }',
    'HloModule m, is_scheduled=!7\nENTRY e { ROOT x = f32[] parameter(0) }',
    'HloModule m, is_scheduled=true, !is_scheduled=true\nENTRY e { ROOT x = f32[] parameter(0) }',
    'HloModule m, replica_count=!x\nENTRY e { ROOT x = f32[] parameter(0) }',
    'HloModule m, num_partitions=!true\nENTRY e { ROOT x = f32[] parameter(0) }',
    'HloModule m, entry_computation_layout={!f32[]}\nENTRY e { ROOT x = f32[] parameter(0) }',
    'HloModule m, entry_computation_layout={(f32[])!}\nENTRY e { ROOT x = f32[] parameter(0) }',
    'HloModule m, !dimensions={0}\nENTRY e { ROOT x = f32[] parameter(0) }',
    'HloModule !f32\nENTRY e { ROOT x = f32[] parameter(0) }',
    'HloModule m n\n!ENTRY e { ROOT x = f32[] parameter(0) }',
    'HloModule m\n!}\n', 'HloModule m!\n', '!', '!{}', '!"text"', '!\x7fELF', '!)',
    # Computations.
    'HloModule m\nENTRY e {\n!}\n', 'HloModule m\nENTRY !{\n}\n', 'HloModule m\n!f32 { ROOT x = f32[] parameter(0) }\n',
    'HloModule m\n!true { ROOT x = f32[] parameter(0) }\n',
    'HloModule m\nENTRY e { ROOT x = f32[] parameter(0) }\nENTRY !f { ROOT x = f32[] parameter(0) }\n',
    'HloModule m\nf { ROOT x = f32[] parameter(0) }\n!f { ROOT x = f32[] parameter(0) }\n',
    'HloModule m\nENTRY e { ROOT x = f32[] parameter(0) }, !nope=1\n',
    'HloModule m\nENTRY e { ROOT x = f32[] parameter(0)! ',
    'HloModule m\nENTRY e { ROOT x = f32[] parameter(0) } !}',
    'HloModule m\nENTRY e (x: f32[]) -> !f32[2] { ROOT x = f32[] parameter(0) }\n',
    'HloModule m\nENTRY e (x: f32[]) !{ ROOT x = f32[] parameter(0) }\n',
    'HloModule m\nENTRY e (x: !y) -> f32[] { ROOT x = f32[] parameter(0) }\n',
    'HloModule m\nENTRY e { ROOT x = f32[] parameter(0) }, execution_thread=!7\n',
    # Parameters.
    *body('!a = f32[2] negate(a)', 'ROOT b = f32[2] parameter(!-1)', '!b = f32[2] parameter(0)', '!b = f32[2] parameter(2)',
          'b = f32[2] parameter(!x)', 'b = f32[2] !parameter()', 'b = f32[2] parameter(1!.5)'),
    # Instructions.
    *body('ROOT c = f32[2] !addd(a, a)', 'ROOT c = f32[2] !Add(a, a)', 'ROOT c = f32[2] !add(a)', 'ROOT c = f32[2] !add(a, a, a)',
          'ROOT c = f32[2] add(a, !b)', 'ROOT c = f32[2] add(a !a)', 'ROOT c = f32[2] !add(a, )', 'ROOT c = f32[2] !add(, a)',
          'ROOT c = f32[2] add(a, a\n!}', 'ROOT c = f32[2] add\n!}', 'ROOT c = f32[2]\n!}', 'ROOT c =\n!}', 'ROOT !c f32[2] negate(a)',
          'ROOT !negate(a)', 'ROOT c = f32[2] negate(f32[3] !a)', 'ROOT c = f32[2] negate(s32[2] !a)',
          'ROOT c = f32[2] add(a, a) !x', 'ROOT c = f32[2] add(a, a)!,', 'ROOT c = f32[2] add(a, a)!, 7',
          'ROOT c = f32[2] negate(a)\n ROOT !d = f32[2] negate(a)', '!f32 = f32[2] negate(a)', '!%f32 = f32[2] negate(a)',
          '!inf = f32[2] negate(a)', '!ROOT = f32[2] negate(a)', 'ROOT c = f32[2] negate(!7)', 'ROOT c = f32[2] negate(a)!{}',
          'ROOT !1c = f32[2] negate(a)', 'ROOT !c=f32[2] negate(a)', 'ROOT c = f32[2] negate(a) !/* no end', 'ROOT c = f32[2] negate(!%)',
          'ROOT c = f32[2] negate(a!$)', 'ROOT c = f32[2] negate(!"a")', 'ROOT c = f32[2] negate(negate(!b))',
          'ROOT c = f32[2] negate(!negat(a))', 'ROOT c = f32[2] !%negate(a)', 'ROOT c = f32[2] negate(a) !metadata={op_name="a"}', 'ROOT c = f32[2] !negate:(a)',
          'ROOT c = f32[2] negate(a), control-predecessors={!}'),
    # Asynchronous ones.
    *body('ROOT s = f32[2] !negate-start(a)', 'ROOT s = (f32[2], f32[2]) !negate-start(a)', 'ROOT s = f32[2] !negate-done(a)',
          'ROOT s = f32[2] !async-done(a)', 'ROOT s = ((f32[2]), f32[2]) !async-start(a)',
          'ROOT s = ((f32[2]), f32[2]) !copy-update(a)', 'ROOT s = ((f32[2]), f32[2]) !parameter-start(a)',
          's = ((f32[2]), f32[2]) abs-start(a)\n ROOT d = f32[2] !negate-done(s)',
          'ROOT s = ((f32[2]), f32[2]) negate-start(a), !dimensions={0}'),
    # Shapes that cannot be inferred.
    *body('ROOT c = !convert(a)', 'ROOT c = !reshape(a)', 'ROOT c = !custom-call(a), custom_call_target="t"'),
    # Attributes.
    *add('!nope=1', '!dimensions={0}', 'metadata={!nope=1}', 'metadata={op_name=!7}', 'metadata={op_name="a" !op_name="b"}',
         'metadata={op_name="a"}, !metadata={op_name="a"}', 'metadata={op_name=!"a}', 'metadata=!7', 'backend_config=\n!}',
         'sharding=\n!}', 'control-predecessors={!b}', 'control-predecessors=!a', 'frontend_attributes={a="b"}}!}'),
    *body('ROOT c = pred[2] !compare(a, a)', 'ROOT c = pred[2] compare(a, a), direction=!{LT}', 'ROOT c = f32[2] !slice(a)',
          'ROOT c = f32[1] slice(a), slice={!0:1}', 'ROOT c = f32[1] slice(a), slice={[!x:1]}', 'ROOT c = f32[1] slice(a), slice={[0!]}',
          'ROOT c = f32[2] reverse(a), dimensions=!0', 'ROOT c = f32[2] reverse(a), dimensions={!x}',
          'ROOT c = f32[2] reverse(a), dimensions={0 !1}', 'ROOT c = f32[2] reverse(a), dimensions={!99999999999999999999}',
          'ROOT c = f32[2] pad(a, a), padding=!x', 'ROOT c = f32[2] !pad(a, a)', 'ROOT c = f32[2] call(a), to_apply=!nope',
          'ROOT c = f32[2] call(a), to_apply=!7', 'ROOT c = f32[2] !call(a)', 'ROOT c = f32[2] !custom-call(a)',
          'ROOT c = f32[2] custom-call(a), custom_call_target=!7', 'ROOT c = f32[2] !fusion(a), kind=kLoop',
          'ROOT c = (f32[2]) !iota()', 'ROOT c = f32[2] get-tuple-element(a), index=!x', 'ROOT c = f32[2] !get-tuple-element(a)',
          'ROOT c = f32[2] reduce-precision(a), exponent_bits=!x, mantissa_bits=1', 'ROOT c = f32[2] !reduce-precision(a), exponent_bits=5',
          'ROOT c = f32[2] call(a), to_apply={!}', 'ROOT c = f32[2] call(a), to_apply={ ROOT d = f32[2] !nope(a) }',
          'ROOT c = f32[2] call(a), to_apply={ ROOT d = f32[2] negate(!a) }',
          'ROOT c = f32[2] custom-call(a), custom_call_target="t", literal=s32[] !x',
          'ROOT c = f32[2] convolution(a, a), window={!nope=1}',
          'ROOT c = pred[2] compare(a, a), direction=!LESS', 'ROOT c = pred[2] compare(a, a), direction=LT, type=!REAL',
          'ROOT c = f32[2] fusion(a), kind=!loop, calls={ ROOT d = f32[2] parameter(0) }', 'ROOT c = f32[2] rng(a, a), distribution=!normal',
          'ROOT c = c64[2] fft(a), fft_type=!DFT, fft_length={2}', 'ROOT c = f32[2] custom-call(a), custom_call_target="t", schedule=!LATE',
          'ROOT c = f32[2] custom-call(a), custom_call_target="t", api_version=!2', 'ROOT c = f32[] dot(a, a), algorithm=!tf32',
          'ROOT c = f32[2] negate(a), metadata={op_name=!x}', 'ROOT c = f32[2] negate(a), metadata={source_line=!2147483648}',
          'ROOT c = f32[2] negate(a), metadata={source_line=!9223372036854775808}', 'ROOT c = f32[2] reverse(a), dimensions={!18446744073709551616}'),
    # Shapes and layouts.
    *shape('!f33[2]', 'f32[!-1]', 'f32[!9223372036854775808]', 'f32[2!x]', 'f32[2,!]', '!tuple[2]', 'f32[2]{1,!0}',
           'f32[2,3]{!0}', '(f32[2], !f33[])', '(f32[2] !x', 'f32[<=!x]', 'f32[2]!{}', 'f32[]!{}', 'b(!x)', '!b((f32[2]))', '!b(b(f32[2]))', '!b(token[])', '!token[2]',
           'f32[2,3]{1 !0}', 'f32[2,3]{1,0,!}', 'f32[2,3]{1,0,!2}', 'f32[2,3]{1,0:T(8,!)}', 'f32[2,3]{1,0:T !8}',
           'f32[2,3]{1,0:T(!-8)}', 'f32[2,3]{1,0:T(8)!T(2)}', 'f32[2,3]{1,0:S(5)!E(4)}', 'f32[2,3]{1,0:S(1)!S(2)}', 'f32[2,3]{1,0:S(1!,2)}',
           'f32[2,3]{1,0:E(!)}', 'f32[2,3]{1,0:D(!X)}', 'f32[2,3]{1,0:*(!x)}', 'f32[2,3]{1,0:L(!-1)}', 'f32[2,3]{1,0:SC(1!)}',
           'f32[2,3]{1,0:SC(!)}', 'f32[2,3]{1,0:!X}', 'f32[2,3]{1,0:!P(f32[2])}', 'f32[2,3]!{,1,0}', 'f32[2,3]{!:S(1)}', 'f32[!-1]', 'f32[2 !3]'),
    # Constants.
    *constant(('f32[2]', '!{1}'), ('f32[2]', '!{1, 2, 3}'), ('f32[2]', '{1, !x}'), ('f32[]', '!{1}'),
              ('s8[]', '!128'), ('s8[]', '!-129'), ('u8[]', '!256'), ('u8[]', '!-1'), ('u4[]', '!16'), ('s4[]', '!8'), ('s4[]', '!-9'),
              ('s32[]', '!1.0'), ('s32[]', '!1e3'), ('s32[]', '!2147483648'), ('u32[]', '!-1'), ('u64[]', '!18446744073709551616'),
              ('f8e4m3fn[]', '!465'), ('f8e5m2[]', '!61440'), ('f16[]', '!65520'), ('bf16[]', '!1e39'),
              ('f32[]', '!1e39'), ('f64[]', '!1e400'), ('f8e8m0fnu[]', '!-1'), ('f32[]', '!.5'), ('f32[]', '!+3'), ('f32[]', '!0x10'),
              ('f32[]', '!'), ('c64[]', '!1'), ('c64[]', '(1!)'), ('c64[]', '(1, !x)'), ('pred[]', '!yes'), ('f32[2,2]', '!{{1, 2}}'),
              ('f32[2,2]', '{!1, 2}'), ('(f32[], s32[])', '(1!)'), ('token[]', '!1'), ('f32[]', '1!, 2'), ('f32[3]', '{1, 2!'),
              ('f32[]', '!"1"'), ('f32[]', '!nan(0x)'), ('f32[]', '!nan(1)'), ('f32[]', '!18446744073709551616'), ('f32[]', '!{...}'),
              ('(f32[2])', '!{...}'), ('f32[2,2]', '{!1, 2, 3, 4}'), ('f32[0]', '!1'), ('c64[2]', '!(1,2)'), ('f32[2]', '!,1'),
              ('f32[2]', '!{...'), ('f32[2,2]', '{{!...}, {1,2}}')),
    # Bytes.
    *body('ROOT c = f32[2] negate(a)!\0', 'ROOT c = f32[2] negate(a)!\x80', 'ROOT c = f32[2] !@negate(a)'),
    'HloModule m\nENTRY e { ROOT x = f32[] parameter(0) }!\0', '!\xef\xbb\xbfHloModule m\nENTRY e { ROOT x = f32[] parameter(0) }',
]
