# SPDX-License-Identifier: Apache-2.0
"""Runs jaxlib's reader and printer of HLO text in separate processes, because jaxlib aborts on some inputs."""
import json
import subprocess
import sys

CHILD = r'''
import json, sys
from jaxlib import _hlo
def options(form):
    made = {'short': _hlo.HloPrintOptions.short_parsable, 'canonical': _hlo.HloPrintOptions.canonical}.get(
        form, _hlo.HloPrintOptions)()
    if form in ('long', 'no-metadata'):
        made.print_large_constants = True
    if form == 'no-metadata':
        made.print_metadata = False
    return made
for line in sys.stdin:
    index, text, forms = json.loads(line)
    print(json.dumps([index, None]), flush=True)
    try:
        module = _hlo.hlo_module_from_text(text)
        answer = [module.to_string(options(form)) for form in forms]
    except Exception as error:
        answer = str(error)
    print(json.dumps([index, answer]), flush=True)
'''


def read(texts, forms=('long',)):
    """Returns, for each text, the list of its prints in the given forms; jaxlib's message, a string, if jaxlib rejects
    the text; None if jaxlib aborts."""
    answers, done = [None] * len(texts), 0
    while done < len(texts):
        lines = ''.join(json.dumps([i, texts[i], list(forms)]) + '\n' for i in range(done, len(texts)))
        ran = subprocess.run([sys.executable, '-c', CHILD], input=lines, capture_output=True, text=True)
        last = done - 1
        for line in ran.stdout.splitlines():
            last, answer = json.loads(line)
            if answer is not None:
                answers[last] = answer
        if last < done:
            raise RuntimeError(ran.stderr)
        done = last + 1
    return answers
