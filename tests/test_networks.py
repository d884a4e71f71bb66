"""The layers of known networks, as shapes of kernels."""

import json

import pytest

from dojo_core import kernels
from dojo_core.cli.positions import kernels_and_shapes
from dojo_core.service.games import Games
from dojo_core.service.sources import Store
from dojo_core.service.wiring import KernelLibrary
from tests.test_cli import dojo

LAYERS = kernels.named_layers()


@pytest.mark.parametrize("layer", LAYERS.values(), ids=LAYERS)
def test_every_layer_is_a_shape_of_its_kernel(layer):
    kernel = kernels.get(layer.kernel)
    shape = kernel.shape(layer.name)
    assert "x".join(map(str, shape)) == layer.shape
    assert kernel.program(shape).outputs


def resnet50():
    """The convolutions of ResNet-50, derived: (out, in, height, width, filter, stride, padding)."""
    found = {(64, 3, 224, 224, 7, 2, 3)}
    channels, size = 64, 56
    for stage, blocks in enumerate((3, 4, 6, 3)):
        width = 64 << stage
        for block in range(blocks):
            stride = 2 if stage and not block else 1
            after = size // stride
            found.add((width, channels, size, size, 1, 1, 0))
            found.add((width, width, size, size, 3, stride, 1))
            found.add((4 * width, width, after, after, 1, 1, 0))
            if not block:
                found.add((4 * width, channels, size, size, 1, stride, 0))
            channels, size = 4 * width, after
    return found


def test_the_convolutions_of_resnet50_are_all_there():
    listed = [kernels.get("conv2d").shape(name) for name in LAYERS if LAYERS[name].kernel == "conv2d"]
    assert {shape[1:] for shape in listed} == resnet50()
    assert len(listed) == len(set(listed))


def test_the_command_line_takes_a_layer_for_a_kernel_or_for_a_shape():
    program = kernels.get("conv2d").program((1, 64, 64, 56, 56, 3, 1, 1))
    assert dojo("show", "resnet50.layer1.conv2").stdout == program.text
    assert dojo("show", "conv2d", "--shape", "resnet50.layer1.conv2").stdout == program.text
    listed = json.loads(dojo("kernels", "resnet50", "--json").stdout)
    assert {"name": "resnet50.fc", "kernel": "gemv", "shape": "1000x2048"} in listed
    assert "bert-base.gelu" in dojo("kernels", "gelu").stdout
    for words, sentence in [
        (("kernels", "alexnet"), "There is no 'alexnet'. The networks: resnet50"),
        (("kernels", "dot"), "dot computes no named layer."),
        (("show", "matmul", "--shape", "resnet50.conv1"), "resnet50.conv1 is a shape of conv2d, not of"),
        (("show", "bert-base.up", "--shape", "1x2x3"), "bert-base.up has its shape in its name"),
    ]:
        assert sentence in dojo(*words, code=1).output.replace("\n", " ")


def test_a_command_for_several_kernels_takes_shapes_networks_and_table_3():
    assert dojo("show", "softmax:96x64").stdout == kernels.get("softmax").program((96, 64)).text
    assert kernels_and_shapes(["softmax:96x64", "own.txt"]) == [("softmax", "96x64"), ("own.txt", None)]
    assert kernels_and_shapes(["layernorm"], "96x64") == [("layernorm", "96x64")]
    bert = kernels_and_shapes(["bert-base"])
    assert len(bert) > 5 and set(bert) == {
        (k.kernel, k.shape) for k in LAYERS.values() if k.network == "bert-base"
    }
    assert len(kernels_and_shapes(["table3"])) == 16
    for words, sentence in [
        (("show", "softmax:96x64", "--shape", "1x2"), "softmax:96x64 has its shape in its name"),
        (("show", "softmax:96"), "softmax takes "),
        (("bench", "table3", "--shape", "1x2"), "The kernels of table3 have shapes of their own"),
    ]:
        assert sentence in dojo(*words, code=1).output.replace("\n", " ")


def test_the_app_offers_layers_and_starts_from_them():
    library = KernelLibrary()
    (card,) = [card for card in library.cards() if card.name == "gqa"]
    assert ("llama3-8b.decode.attention", "8x4x1x512x128") in card.layers
    store: Store = None  # nothing is saved here
    game = Games(store, library, None).from_kernel("gelu", "BERT-base.gelu", "reassoc")
    assert (game.shape, game.title) == ("512x3072", "gelu 512x3072")
