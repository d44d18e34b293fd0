#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests a module in Google's Model Explorer: the graphs are those of the module, the colors those of its verdicts; the
explorer's extension manager finds the extension, and its server answers the browser's requests."""
import collections
import contextlib
import io
import json
import os
import pathlib
import re
import sys
import urllib.error
import urllib.request

import _cases

MODELS = ('seed_relu_damax', 'scan_layers.xla', 'encoder_qdq_fwd.xla', 'llama_train')

NAMESAKES = """HloModule m
f {
  p = f32[16,16] parameter(0)
  ROOT d = f32[16,16] dot(p, p), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
ENTRY e {
  p = f32[16,16] parameter(0)
  c = f32[16,16] call(p), to_apply=f
  ROOT d = f32[16,16] tanh(c)
}
"""


def instructions(text):
    """Returns name, shape, opcode and operands of each instruction, by computation, from the text."""
    found = collections.defaultdict(dict)
    for line in text.splitlines():
        header = re.match(r'(?:ENTRY )?%([^ ]+) \(.*\{$', line)
        if header:
            computation = header[1]
        one = re.match(r'  (?:ROOT )?%([^ ]+) = (\(.*?\)|[^ ]+) ([a-z][\w-]*)\((.*?)\)', line)
        if one:
            found[computation][one[1]] = one[2], one[3], re.findall(r'%([^ ,)]+)', one[4])
    return found


def graphs(args):
    """Nodes and edges are the instructions and operands of the text; each call links to a graph."""
    import hlofp8
    count = 0
    for name in MODELS:
        path = pathlib.Path(args.models, name + '.hlo')
        wanted = instructions(re.sub(r'/\*.*?\*/', '', path.read_text()))
        made = hlofp8.model_explorer(path)
        assert made.graphs[0].id in re.search(r'^ENTRY %(\S+)', path.read_text(), re.M)[1]
        assert {graph.id for graph in made.graphs} == set(wanted), name
        for graph in made.graphs:
            assert [node.id for node in graph.nodes] == list(wanted[graph.id]), (name, graph.id)
            for node in graph.nodes:
                shape, opcode, operands = wanted[graph.id][node.id]
                facts = {attribute.key: attribute.value for attribute in node.attrs}
                assert facts['shape'] == shape == node.outputsMetadata[0].attrs[0].value, (node, shape)
                assert opcode == 'custom-call' or node.label == opcode, node
                assert [edge.sourceNodeId for edge in node.incomingEdges] == operands, node
                assert set(node.subgraphIds) <= set(wanted), node
                assert bool(node.subgraphIds) == ('to_apply=' in str(facts) or 'calls=' in str(facts) or 'body=' in str(facts)), node
                count += 1
    return f'{count} nodes'


def overlays(args):
    """Each verdict has a node with its color, reason and source line."""
    import hlofp8
    made = hlofp8.model_explorer(pathlib.Path(args.models, 'llama_train.hlo'))
    nodes = {node.id: node for graph in made.graphs for node in graph.nodes}
    data = {name: result for graph in made.node_data['FP8'].graphsData.values() for name, result in graph.results.items()}
    assert set(data) == {verdict.input_instruction for verdict in made.explanation} == {n for n, node in nodes.items() if node.style}
    assert {str(result.value).split(':')[0] for result in data.values()} >= {'fp8', 'wide'}
    for verdict in made.explanation:
        facts = {attribute.key: attribute.value for attribute in nodes[verdict.input_instruction].attrs}
        assert data[verdict.input_instruction].value.startswith(verdict.kind) and facts['fp8: kind'] == verdict.kind
        assert data[verdict.input_instruction].bgColor == nodes[verdict.input_instruction].style.backgroundColor
        assert facts.get('fp8: reason') == verdict.reason and facts['source'] == f'{verdict.source_file}:{verdict.source_line}'
        assert facts['op_name'].startswith(nodes[verdict.input_instruction].namespace + '/') and verdict.op_name.endswith(facts['op_name'])
    times = made.node_data['µs by a roofline'].graphsData.values()
    assert all(result.value > 0 for graph in times for result in graph.results.values())
    dot = hlofp8.model_explorer(hlofp8.rewrite(pathlib.Path(args.models, 'seed_matmul.hlo')))
    assert '__cublas$lt$matmul$f8' in [node.label for node in dot.graphs[0].nodes], 'what was rewritten is read, too'
    # Two instructions in two computations have the same name: one is renamed, as in HLO text, and each has a separate
    # verdict.
    made = hlofp8.model_explorer(NAMESAKES)
    verdicts = [{node.id: (node.label, bool(node.style)) for node in graph.nodes} for graph in made.graphs]
    assert verdicts == [{'p.1': ('parameter', False), 'c': ('call', False), 'd.1': ('tanh', False)},
                        {'p': ('parameter', False), 'd': ('dot', True)}], verdicts
    assert list(made.node_data['FP8'].graphsData) == ['f']
    return f'{len(data)} verdicts'


def extension(args):
    """With --extensions=hlofp8, both extensions are found, convert a text and a binary module, and return the node
    data."""
    import hlofp8
    from model_explorer.extension_manager import ExtensionManager
    manager = ExtensionManager(['hlofp8'])
    with contextlib.redirect_stdout(io.StringIO()) as said:
        manager.load_extensions()
    assert 'hlofp8' not in said.getvalue(), said.getvalue()
    metadata = {each['id']: each for each in manager.get_extensions_metadata()}
    assert {'hlo', 'pb'} <= set(metadata['hlofp8']['fileExts']) and metadata['hlofp8_verdicts']['type'] == 'node_data_provider'
    source = os.path.join(args.models, 'encoder_qdq_fwd.hlo')
    binary = os.path.join(args.work, 'encoder.hlo.pb')
    pathlib.Path(binary).write_bytes(hlofp8.rewrite(pathlib.Path(source), passes='').proto)
    answers = []
    for path in (source, binary):
        convert = {'extensionId': 'hlofp8', 'cmdId': 'convert', 'modelPath': path, 'settings': {}, 'deleteAfterConversion': False}
        answers.append(json.loads(json.dumps(manager.run_cmd(convert)))['graphs'])
    assert [len(graph['nodes']) for graph in answers[0]] == [len(graph['nodes']) for graph in answers[1]]
    data = []
    for graph in answers[0]:
        run = {'extensionId': 'hlofp8_verdicts', 'cmdId': 'run', 'modelPath': source, 'graphId': graph['id'], 'configValues': {}, 'graph': graph}
        data += json.loads(json.dumps(manager.run_cmd(run)))['result']
    results = [result for each in data if each['name'] == 'FP8' for result in each['results'].values()]
    assert len(results) == 8 and sum(result['value'].startswith('fp8') for result in results) == 6, results


def server(args):
    """The server shows the graphs and the node data of ModelExplorer.config()."""
    import threading

    import hlofp8
    import model_explorer.server
    import portpicker
    made = hlofp8.model_explorer(pathlib.Path(args.models, 'seed_relu_damax.hlo'))
    port = portpicker.pick_unused_port()
    # The server runs until it is interrupted; its threads end with this process.
    model_explorer.server._check_new_version = lambda *_: {}
    options = {'port': port, 'no_open_in_browser': True, 'extensions': ['hlofp8']}
    threading.Thread(target=made.show, kwargs=options, daemon=True).start()

    def ask(path):
        for _ in range(100):
            with contextlib.suppress(urllib.error.URLError), urllib.request.urlopen(f'http://localhost:{port}/{path}') as answer:
                return json.load(answer)
            threading.Event().wait(0.1)
        raise AssertionError(f'no answer to {path}')
    shown = ask('api/v1/load_graphs_json?graph_index=0')['graphs']
    assert [graph['id'] for graph in shown] == [graph.id for graph in made.graphs]
    content = json.loads(ask('api/v1/load_node_data?node_data_index=0')['content'])
    assert content[shown[0]['id']]['results']['dot_general.1']['value'] == 'fp8', content
    assert any(each['id'] == 'hlofp8' for each in ask('api/v1/get_extensions'))


def main():
    args = _cases.arguments()
    try:
        import model_explorer  # noqa: F401
    except ModuleNotFoundError as error:
        print(f'nothing is compared: {error}')
        return 77
    return _cases.run([graphs, overlays, extension, server], args)


if __name__ == '__main__':
    sys.exit(main())
