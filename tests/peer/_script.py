# SPDX-License-Identifier: Apache-2.0
"""The command line that all scripts here share."""
import argparse


def parser(kind=str):
    """--bin and --models: where the programs and the models are; --work: where files may be written."""
    made = argparse.ArgumentParser()
    for name in ('bin', 'models', 'work'):
        made.add_argument('--' + name, type=kind, required=True)
    return made
