# SPDX-License-Identifier: Apache-2.0
"""Reads and prints modules in one process; converter.c describes the protocol."""
import subprocess


class Refused(ValueError):
    """Raised with the diagnostics of a rejected module."""


class Converter:
    def __init__(self, folder):
        self.process = subprocess.Popen([f'{folder}/converter'], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def convert(self, data, form='text'):
        """Returns the bytes of a module in the other form, unverified."""
        self.process.stdin.write(b'%s %d\n%s' % (form.encode(), len(data), data))
        self.process.stdin.flush()
        head = self.process.stdout.readline().split()
        if len(head) != 2:
            raise RuntimeError(f'converter ended with {self.process.wait()}')
        answer = self.process.stdout.read(int(head[1]))
        if int(head[0]):
            raise Refused(answer.decode('latin-1'))
        return answer

    def close(self):
        """Ends the process. Must be called, because a sanitizer reports leaks at the end."""
        self.process.stdin.close()
        if self.process.wait():
            raise RuntimeError(f'converter ended with {self.process.returncode}')
