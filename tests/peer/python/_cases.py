# SPDX-License-Identifier: Apache-2.0
"""Imports the Python package of a build, and runs the cases of a script."""
import os
import re
import socket
import subprocess
import sys
import time
import traceback

import _script

SOURCE = os.path.abspath(os.path.join(os.path.dirname(__file__), '..', '..', '..'))

# The devices over which the functions of _functions.py are sharded, if not jax.devices().
devices = None


def without_log(said):
    """Returns messages without those of XLA's log, which mentions missing GPU drivers."""
    return re.sub(r'(?m)^(WARNING: All log messages before absl|[IW]\d{4} ).*\n', '', said)


def arguments():
    """Parses the command line, installs the package of the build in --work, and makes it importable."""
    parser = _script.parser()
    parser.add_argument('names', nargs='*', help='cases; all by default')
    parser.add_argument('--long', action='store_true', help='more of what takes long')
    args = parser.parse_args()
    args.bin, args.models, args.work = map(os.path.abspath, (args.bin, args.models, args.work))
    site = os.path.join(args.work, 'site')
    build = os.path.dirname(args.bin)
    subprocess.run(['cmake', '--install', build, '--component', 'python', '--prefix', site], check=True,
                   stdout=subprocess.DEVNULL)
    sys.path.insert(0, site)
    args.site = site
    return args


def run(cases, args):
    """Runs the functions, each of which returns a line to print, or raises an exception. Returns the exit status."""
    failed = 0
    cases = [case for case in cases if not args.names or case.__name__ in args.names]
    for case in cases:
        start = time.monotonic()
        try:
            said = case(args)
            print(f'{case.__name__}: {said or "ok"} ({time.monotonic() - start:.1f} s)', flush=True)
        except Exception:
            failed += 1
            print(f'{case.__name__}: {traceback.format_exc()}', flush=True)
    print(f'{len(cases) - failed} passed, {failed} failed')
    return 1 if failed or not cases else 0


def refused(what, call, *args, **kwargs):
    """Returns the text of the hlofp8.Error that a call raises. Raises AssertionError if the text does not contain
    `what`."""
    import hlofp8
    try:
        call(*args, **kwargs)
    except hlofp8.Error as error:
        assert what in str(error), f'{what!r} is not in {str(error)!r}'
        return str(error)
    raise AssertionError(f'nothing was refused: {what}')


def processes(args, command, *environments, python=sys.executable, folder=None):
    """Runs Python with the command in one process of four CPU devices for each of the environments, which are added to that of
    this process. jax.distributed.initialize() connects the processes. Ends all if one fails. Returns the output, the errors
    and the status of each."""
    try:
        socket.gethostbyname(socket.gethostname())
    except OSError as error:
        raise AssertionError(f'{socket.gethostname()}: {error}; Gloo needs this host name: add it to /etc/hosts') from None
    with socket.socket() as free:
        free.bind(('localhost', 0))
        port = str(free.getsockname()[1])
    common = {**os.environ, 'PYTHONPATH': os.pathsep.join([args.site, os.environ['PYTHONPATH']]), 'JAX_PLATFORMS': 'cpu',
              'XLA_FLAGS': '--xla_force_host_platform_device_count=4',
              # JAX finds the processes by the variables of Open MPI.
              'OMPI_MCA_orte_hnp_uri': '0.0;tcp://127.0.0.1:0', 'JAX_COORDINATOR_PORT': port,
              'OMPI_COMM_WORLD_SIZE': str(len(environments))}
    started = [subprocess.Popen([python, *command], cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                env=common | dict.fromkeys(('OMPI_COMM_WORLD_RANK', 'OMPI_COMM_WORLD_LOCAL_RANK'), str(index)) | more)
               for index, more in enumerate(environments)]
    while None in (states := [process.poll() for process in started]) and not any(states):
        time.sleep(0.1)
    for process in started:
        process.kill()  # a process would wait forever for one that failed
    return [(*process.communicate(), process.returncode) for process in started]
