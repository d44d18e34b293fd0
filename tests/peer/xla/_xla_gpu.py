#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs XLA's GPU compiler on an HLO text module, without a GPU, to compare rewrites with XLA's.

  _xla_gpu.py FILE.hlo [--target=sm_80|sm_90|sm_100] [--cuda=12.8] [--keep DIR]
             [--passes=fp8-gemm-rewriter|none] [--xla-flags='...']

  no --passes                  the whole GPU pipeline; prints the optimized module
  --passes=fp8-gemm-rewriter   only the FP8 instance of XLA's cuBLAS rewriter
  --passes=none                only XLA's parser and printer
  --devices=N                  partition over N devices by the module's shardings
  --handoff                    omit layout assignment: in that pass XLA aborts on a module that already
                               contains cuBLASLt calls (programs that need the pass then fail)
  --default-flags              use XLA's default flags: its Triton fusion then fuses fp8 dots unless their form
                               prevents this
  --keep DIR                   every dump that XLA writes (per stage, text and .hlo.pb)
  --executable FILE            the compiled program, serialized (_thunks.py reads it)
  --kernels FILE               read compiled kernels from FILE, and add new ones
  --time                       print the compile time in seconds instead of the module; nothing is dumped

The exit status also shows whether XLA accepts a module that already contains __cublas$lt$matmul$f8 calls.
Exit status: 0 if a module was printed, 1 if XLA rejected the module or crashed (message on stderr), 2 for invalid
usage.
"""
import argparse
import ctypes as C
import glob
import os
import re
import subprocess
import sys
import tempfile
import time

# Flags for a machine without a GPU,
FLAGS = ['--xla_gpu_autotune_level=0']
# and to send every matmul to cuBLASLt, regardless of its size.
CUBLASLT_FLAGS = [
    '--xla_gpu_enable_triton_gemm=false',
    '--xla_gpu_gemm_rewrite_size_threshold=0',
    '--xla_gpu_enable_cublaslt=true',
]
# Kernels need not be fast. These flags do not change the optimized module.
SLOW_KERNELS = ['--xla_backend_optimization_level=0', '--xla_llvm_disable_expensive_passes=true',
                '--xla_gpu_disable_gpuasm_optimizations=true']
# Target name -> target_config files, the first existing one of which is used.
SPECS = {
    'sm_80': ['a100_sxm_80.txtpb', 'a100_pcie_80.txtpb', 'a100_sxm_40.txtpb'],
    'sm_90': ['h100_sxm.txtpb', 'h100_pcie.txtpb', 'h100.txtpb'],
    'sm_100': ['b200.txtpb', 'gb200.txtpb'],
}
# Positions of the entry points in PJRT_Api (major version 0).
ERROR_DESTROY, ERROR_MESSAGE, PLUGIN_INIT, EXECUTABLE_SERIALIZE, \
    TOPOLOGY_CREATE, COMPILE = 0, 1, 3, 49, 82, 89


class NamedValue(C.Structure):
    _fields_ = [('struct_size', C.c_size_t), ('ext', C.c_void_p),
                ('name', C.c_char_p), ('name_size', C.c_size_t),
                ('type', C.c_int), ('string_value', C.c_char_p),
                ('value_size', C.c_size_t)]


class TopologyArgs(C.Structure):
    _fields_ = [('struct_size', C.c_size_t), ('ext', C.c_void_p),
                ('name', C.c_char_p), ('name_size', C.c_size_t),
                ('options', C.POINTER(NamedValue)), ('n', C.c_size_t),
                ('topology', C.c_void_p)]


class Program(C.Structure):
    _fields_ = [('struct_size', C.c_size_t), ('ext', C.c_void_p),
                ('code', C.c_char_p), ('code_size', C.c_size_t),
                ('format', C.c_char_p), ('format_size', C.c_size_t)]


class CompileArgs(C.Structure):
    _fields_ = [('struct_size', C.c_size_t), ('ext', C.c_void_p),
                ('topology', C.c_void_p), ('program', C.POINTER(Program)),
                ('options', C.c_char_p), ('options_size', C.c_size_t),
                ('client', C.c_void_p), ('executable', C.c_void_p)]


class MessageArgs(C.Structure):
    _fields_ = [('struct_size', C.c_size_t), ('ext', C.c_void_p),
                ('error', C.c_void_p), ('message', C.c_char_p),
                ('message_size', C.c_size_t)]


class SerializeArgs(C.Structure):
    _fields_ = [('struct_size', C.c_size_t), ('ext', C.c_void_p),
                ('executable', C.c_void_p), ('bytes', C.c_void_p),
                ('size', C.c_size_t), ('serialized', C.c_void_p),
                ('deleter', C.c_void_p)]


class PluginArgs(C.Structure):
    _fields_ = [('struct_size', C.c_size_t), ('ext', C.c_void_p)]


class Pjrt:
    def __init__(self, path):
        lib = C.CDLL(path)
        lib.GetPjrtApi.restype = C.c_void_p
        self.api = lib.GetPjrtApi()
        self.call(PLUGIN_INIT, PluginArgs(C.sizeof(PluginArgs)))

    def call(self, index, args):
        slot = C.c_void_p.from_address(self.api + 40 + 8 * index)
        fn = C.CFUNCTYPE(C.c_void_p, C.c_void_p)(slot.value)
        err = fn(C.addressof(args))
        if err:
            m = MessageArgs(C.sizeof(MessageArgs), None, err)
            slot = C.c_void_p.from_address(self.api + 40 + 8 * ERROR_MESSAGE)
            C.CFUNCTYPE(None, C.c_void_p)(slot.value)(C.addressof(m))
            raise RuntimeError(
                C.string_at(m.message, m.message_size).decode(errors='replace'))

    def topology(self, config, devices):
        vals = [(b'target_config', config.encode()),
                (b'topology', b'1x1x%d' % devices)]
        arr = (NamedValue * len(vals))()
        for a, (k, v) in zip(arr, vals):
            a.struct_size = C.sizeof(NamedValue)
            a.name, a.name_size = k, len(k)
            a.type, a.string_value, a.value_size = 0, v, len(v)
        t = TopologyArgs(C.sizeof(TopologyArgs), None, b'gpu', 3, arr,
                         len(vals))
        self.call(TOPOLOGY_CREATE, t)
        return t.topology

    def compile(self, topology, proto, options):
        p = Program(C.sizeof(Program), None, proto, len(proto), b'hlo', 3)
        c = CompileArgs(C.sizeof(CompileArgs), None, topology, C.pointer(p),
                        options, len(options), None, None)
        self.call(COMPILE, c)
        return c.executable

    def serialize(self, executable):
        s = SerializeArgs(C.sizeof(SerializeArgs), None, executable)
        self.call(EXECUTABLE_SERIALIZE, s)
        return C.string_at(s.bytes, s.size)


def find_plugin():
    for d in sys.path:
        for so in glob.glob(os.path.join(d, 'jax_plugins', 'xla_cuda*',
                                         'xla_cuda_plugin.so')):
            return so
    return None


def require_plugin():
    if not find_plugin():
        sys.exit('jax-cuda13-pjrt is not installed: `tools/dev deps`, or pip install --no-deps -r '
                 'tests/peer/requirements-alone.txt')


def child(plugin, config, path, devices, executable, timed):
    """Parses and compiles in a child process. The parent reads the module dumps."""
    import numpy as np
    from jaxlib import _hlo, xla_client
    with open(path) as f:
        module = _hlo.hlo_module_from_text(f.read())
    proto = module.as_serialized_hlo_module_proto()
    shape = _hlo.XlaComputation(proto).program_shape()
    opts = xla_client.CompileOptions()
    opts.argument_layouts = list(shape.parameter_shapes())
    build = opts.executable_build_options
    build.result_layout = shape.result_shape()
    build.num_replicas, build.num_partitions = 1, devices
    if devices > 1:
        build.use_spmd_partitioning = True
        build.device_assignment = xla_client.DeviceAssignment.create(
            np.arange(devices, dtype=np.int32).reshape(1, devices))
    pjrt = Pjrt(plugin)
    topology, options = pjrt.topology(config, devices), opts.SerializeAsString()
    start = time.perf_counter()
    compiled = pjrt.compile(topology, proto, options)
    if timed:
        print(time.perf_counter() - start)
    if executable:
        with open(executable, 'wb') as f:
            f.write(pjrt.serialize(compiled))


def target_config(folder, target, cuda):
    for name in SPECS[target]:
        path = os.path.join(folder, name)
        if os.path.exists(path):
            break
    else:
        sys.exit(f'no target config for {target} in {folder}')
    with open(path) as f:
        text = re.sub(r'(?m)^#.*\n', '', f.read())
    version = '.'.join((cuda.split('.') + ['0', '0'])[:3])
    inside = ''
    for key in ('runtime_version', 'compile_time_toolkit_version',
                'driver_version'):
        v = '13.0.0' if key == 'driver_version' else version
        text, n = re.subn(rf'{key}: "[^"]*"', f'{key}: "{v}"', text)
        if not n:
            inside += f'  {key}: "{v}"\n'
    if inside:
        text = re.sub(r'(gpu_device_info \{\n)', r'\1' + inside, text, count=1)
    return text


# Fields that the compiler of an older wheel does not support.
def drop_unknown(config, message):
    m = re.search(r'no field named "(\w+)"', message)
    if not m:
        return None
    new = re.sub(rf'(?m)^\s*{m.group(1)}: .*\n', '', config)
    return new if new != config else None


def main():
    if len(sys.argv) > 1 and sys.argv[1] == '--child':
        plugin, config, path, devices, executable, timed = sys.argv[2:8]
        with open(config) as f:
            try:
                child(plugin, f.read(), path, int(devices), executable,
                      timed == 'timed')
            except Exception as e:  # the parent shows the message to the user
                print(e, file=sys.stderr)
                sys.exit(1)
        return
    ap = argparse.ArgumentParser()
    ap.add_argument('file')
    ap.add_argument('--target', default='sm_90')
    ap.add_argument('--cuda', default='12.8')
    ap.add_argument('--handoff', action='store_true')
    ap.add_argument('--default-flags', action='store_true')
    ap.add_argument('--devices', type=int, default=1,
                    help='SPMD partitions; --keep has the partitioned module')
    ap.add_argument('--passes', default='')
    ap.add_argument('--xla-flags', default='')
    ap.add_argument('--plugin', default=os.environ.get('XLA_CUDA_PLUGIN'))
    ap.add_argument('--configs', default=os.path.join(
        os.path.dirname(os.path.abspath(__file__)), 'targets'))
    ap.add_argument('--keep', help='folder for every dump XLA writes')
    ap.add_argument('--executable', help='file for the compiled program')
    ap.add_argument('--kernels', help='file with compiled kernels')
    ap.add_argument('--time', action='store_true')
    a = ap.parse_args()
    plugin = a.plugin or find_plugin()
    if not plugin:
        sys.exit('no xla_cuda_plugin.so; give --plugin')
    if a.target not in SPECS:
        sys.exit(f'unknown target {a.target}')
    rewriter_only = a.passes == 'fp8-gemm-rewriter'
    if a.passes not in ('', 'none', 'fp8-gemm-rewriter'):
        sys.exit(f'unknown passes {a.passes}')
    if a.passes == 'none':
        from jaxlib import _hlo
        with open(a.file) as f:
            print(_hlo.hlo_module_from_text(f.read()).to_string())
        return
    with tempfile.TemporaryDirectory() as tmp:
        dump = a.keep or os.path.join(tmp, 'dump')
        config = os.path.join(tmp, 'config')
        text = target_config(a.configs, a.target, a.cuda)
        flags = FLAGS + CUBLASLT_FLAGS * (not a.default_flags)
        flags += [f'--xla_dump_to={dump}', '--xla_dump_hlo_as_text',
                  '--xla_dump_hlo_pass_re=cublas-gemm-rewriter', *SLOW_KERNELS] * (not a.time)
        if a.kernels:
            flags.append(f'--xla_gpu_kernel_cache_file={a.kernels}')
        if rewriter_only:
            flags.append('--xla_enable_hlo_passes_only=cublas-gemm-rewriter')
        if a.handoff:
            flags.append('--xla_disable_hlo_passes=layout-assignment')
        flags += a.xla_flags.split()
        env = dict(os.environ, XLA_FLAGS=' '.join(flags), JAX_PLATFORMS='cpu',
                   TF_CPP_MIN_LOG_LEVEL='2')
        for _ in range(8):
            with open(config, 'w') as f:
                f.write(text)
            r = subprocess.run([sys.executable, os.path.abspath(__file__),
                                '--child', plugin, config, a.file,
                                str(a.devices), a.executable or '',
                                'timed' if a.time else ''],
                               capture_output=True, text=True, env=env)
            less = drop_unknown(text, r.stderr) if r.returncode else None
            if less is None:
                break
            text = less
        out = r.stdout if a.time and not r.returncode else pick(dump, rewriter_only)
        if out is None:
            sys.stderr.write(r.stderr)
            sys.exit(1)
        sys.stdout.write(out)
        if r.returncode and not rewriter_only:  # dumped, but rejected by a later stage
            sys.stderr.write(r.stderr)
            sys.exit(1)


def pick(dump, rewriter_only):
    """Returns the dump to print: after the first rewriter run, or the final module."""
    pat = '*after_cublas-gemm-rewriter*.txt' if rewriter_only \
        else '*gpu_after_optimizations.txt'
    files = sorted(glob.glob(os.path.join(dump, pat)))
    if not files:
        return None
    with open(files[0]) as f:
        return f.read()


if __name__ == '__main__':
    main()
