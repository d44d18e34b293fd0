# SPDX-License-Identifier: Apache-2.0
"""Defines the command line that all scripts here share."""
import argparse


def parser(kind=str):
    """Returns a parser with --bin and --models, the folders of programs and models, and --work, a folder for files."""
    made = argparse.ArgumentParser()
    for name in ('bin', 'models', 'work'):
        made.add_argument('--' + name, type=kind, required=True)
    return made
