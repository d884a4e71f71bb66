"""Convolutions of stride 1 by algorithms with fewer products: Winograd's, or any whose text fits
(moves/algorithms.py).

A block, a row of tiles of one image, goes through all steps while it stays in a core's cache: what it reads
is turned, so that channels lie side by side; sums of a tile's pixels, in vectors of channels; a product of
matrices, tiles by channels, for each product of the algorithm; sums of these; and the result is turned back.
The sums of the weights are made once, before. Source: A. Lavin and S. Gray, "Fast Algorithms for
Convolutional Neural Networks", CVPR 2016.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from agents.passes.contractions import find, initialisation, tile_nests
from agents.passes.nests import isolate, leaf_at, order, shared_scopes
from agents.passes.structure import depths_of, only, scope_of, widths_for
from agents.passes.threads import share
from agents.passes.tiles import choose_tile
from agents.passes.vectors import separate_lanes, vectorise, write_out
from dojo_core.graph.hoisting import MOST
from dojo_core.moves.algorithms import MOST_GROWTH, Algorithm, AlgorithmError, algorithm, names
from dojo_core.moves.bilinear import is_product_sum
from dojo_core.moves.places import NoSuchPlace, Place, fresh_name
from dojo_core.moves.storage import buffer_named
from dojo_core.program.affine import Affine
from dojo_core.program.tables import affine
from dojo_core.program.tree import DTYPE_BYTES, Access, Leaf, Op, Provenance
from dojo_core.recipes import Sketch

WEIGHT = 32  # tiles whose product with a weight takes as long as making that weight's sums
FETCHED = 6  # tiles whose product with a weight takes as long as fetching it from beyond a core's cache
SUMS = 4  # products that take as long as making one of the sums of a tile's pixels, or of a result's products
WORTH = 0.6  # of the direct sum's time: less is gained in part by what this costs around


@dataclass(frozen=True)
class Convolution:
    """``y[n,k,i,j] += x[n,c,i+r,j+s] * w[k,c,r,s]``, whose scopes are told by provenance; ``image`` is None
    where there is one and its arrays have no dimension for it."""

    sum: Provenance
    image: Provenance | None
    out: Provenance
    rows: Provenance
    columns: Provenance
    channels: Provenance
    taps: tuple[Provenance, Provenance]
    x: str
    w: str
    y: str
    sizes: dict[Provenance, int]


def use_fewer_products(sketch: Sketch, operation: Provenance) -> None:
    """Compute a convolution by the algorithm that takes least time, where the policy allows one and it
    pays."""
    if sketch.context.policy != "algebraic":
        return
    with sketch.attempt():
        convolution = find_convolution(sketch, operation)
        chosen = choose(sketch, convolution)
        _Play(sketch, convolution, chosen).all()


def find_convolution(sketch: Sketch, operation: Provenance) -> Convolution:
    """The convolution that an operation is. Raises NoSuchPlace."""
    program = sketch.program
    leaf = leaf_at(sketch, operation)
    if not is_product_sum(program, leaf) or any(scope.mark for scope in leaf.scopes):
        raise NoSuchPlace("It is no convolution of two dimensions.")
    target = [affine(form) for form in leaf.op.target.index]
    images = len(target) - 3  # a dimension, or none
    if images not in (0, 1) or len(leaf.scopes) != 6 + images:
        raise NoSuchPlace("It is no convolution of two dimensions.")
    if any(len(form.terms) != 1 or form.terms[0][1] != 1 or form.const for form in target):
        raise NoSuchPlace("Its results are no image with channels.")
    *image, out, rows, columns = (form.depths[0] for form in target)
    summed = set(range(len(leaf.scopes))) - {*image, out, rows, columns}
    for x, w in (leaf.op.sources, leaf.op.sources[::-1]):
        if not set(image) <= depths_of(x) or out not in depths_of(w):
            continue
        if (len(x.index), len(w.index)) != (3 + images, 4):
            continue
        mine, taps = [affine(form) for form in x.index], [affine(form) for form in w.index]
        windows = [
            {d for d, c in form.terms if c == 1} - {place}
            for form, place in zip(mine[-2:], (rows, columns), strict=True)
            if form.coefficient(place) == 1 and len(form.terms) == 2 and not form.const
        ]
        if len(windows) != 2 or not all(len(each) == 1 for each in windows):
            continue
        down, across = (next(iter(each)) for each in windows)
        channels = next(iter(summed - {down, across}), -1)
        plain = [((depth, 1),) for depth in (*image, channels)] == [form.terms for form in mine[:-2]]
        wanted = [((depth, 1),) for depth in (out, channels, down, across)]
        if (
            plain
            and wanted == [form.terms for form in taps]
            and not any(f.const for f in (*mine[:-2], *taps))
        ):
            depths = (*image, out, rows, columns, channels, down, across)
            of = {depth: leaf.scopes[depth].provenance for depth in depths}
            return Convolution(
                operation,
                of[image[0]] if image else None,
                of[out],
                of[rows],
                of[columns],
                of[channels],
                (of[down], of[across]),
                x.array,
                w.array,
                leaf.op.target.array,
                {of[depth]: leaf.scopes[depth].size for depth in depths},
            )
    raise NoSuchPlace("No window of stride 1 slides over its rows and columns.")


def choose(sketch: Sketch, convolution: Convolution) -> Algorithm:
    """The algorithm with the least time, of equal ones the most exact. Raises NoSuchPlace where none pays."""
    sizes, target = convolution.sizes, sketch.context.target
    images = 1 if convolution.image is None else sizes[convolution.image]
    out, rows, columns, channels = (
        sizes[each] for each in (convolution.out, convolution.rows, convolution.columns, convolution.channels)
    )
    taps = {sizes[each] for each in convolution.taps}
    number = DTYPE_BYTES[sketch.program.buffer_of[convolution.w].dtype]
    constant = convolution.w in sketch.context.constants

    def time(each: Algorithm) -> float:
        """Multiply-adds, or what takes as long."""
        tile, products = each.result.shape[0], each.products**2
        blocks, tiles = images * -(-rows // tile), -(-columns // tile)
        far = products * out * channels * number > target.cache_bytes
        once = constant and products <= MOST * each.right.shape[0] ** 2
        weights = blocks * (max(tiles, FETCHED) if far else tiles) + (0 if once else WEIGHT)
        return products * (weights * out * channels + SUMS * blocks * tiles * (out + channels))

    fitting = [
        each
        for each in _algorithms()
        if len(each.right.shape) == 1 and {each.right.shape[0]} == taps and each.growth(2) <= MOST_GROWTH
    ]
    direct = images * rows * columns * out * channels * sizes[convolution.taps[0]] ** 2
    best = min(fitting, key=lambda each: (time(each), each.growth()), default=None)
    if best is None or time(best) > WORTH * direct:
        raise NoSuchPlace("No algorithm makes up for the sums that it takes.")
    return best


def _algorithms() -> list[Algorithm]:
    """All that can be read; what is wrong with a text is told to who names it in a move."""
    found = []
    for name in names():
        try:
            found.append(algorithm(name))
        except AlgorithmError:
            continue
    return found


class _Play:
    """The moves of one convolution, step by step. Raises where one is refused."""

    def __init__(self, sketch: Sketch, convolution: Convolution, chosen: Algorithm) -> None:
        self.sketch, self.convolution, self.algorithm = sketch, convolution, chosen
        self.tile = chosen.result.shape[0]
        leaf = leaf_at(sketch, convolution.sum)
        widths = widths_for(sketch.program, [leaf], sketch.context.target)
        sizes = convolution.sizes
        even = [w for w in widths if not (sizes[convolution.out] % w or sizes[convolution.channels] % w)]
        if not even or ("transpose", even[0]) not in sketch.context.target.instructions:
            raise NoSuchPlace("No vector divides its channels.")
        self.width = even[0]
        rows, columns = sizes[convolution.rows], sizes[convolution.columns]
        self.down, self.across = (-(-size // self.tile) * self.tile for size in (rows, columns))
        self.taps = sizes[convolution.taps[0]]
        several = convolution.image is not None and sizes[convolution.image] > 1
        self.images = int(several)  # dimensions of the result before its channels
        self.around = self.images + 1  # scopes around a block: images, rows of tiles

    def all(self) -> None:
        sketch, convolution = self.sketch, self.convolution
        isolate(sketch, convolution.sum)
        first = initialisation(sketch, convolution.sum, find(sketch, convolution.sum, strided=True))
        if first is None:
            raise NoSuchPlace("Nothing sets its result first.")
        isolate(sketch, first.sum)
        if not self.images and convolution.image is not None:
            for operation in (first.sum, convolution.sum):
                self._unwrap_image(operation)
        image = self._room_for_tiles()
        result, stores = convolution.y, self._followers()
        if not stores:
            result = fresh_name(sketch.program, "t" + convolution.y[:20])
            sketch.play("stage_write", convolution.y, "root", result)
            stores = [self._writer(convolution.y).op.provenance]
        stored = [leaf_at(sketch, store).op.target.array for store in stores]
        self._blocks(first.sum, stores, result)
        self._turned(image)
        weights = fresh_name(sketch.program, "w" + convolution.w[:20])
        sketch.play("stage_read", convolution.w, "root", weights)
        name = fresh_name(sketch.program, "u")
        leaf = leaf_at(sketch, convolution.sum)
        inner = leaf.scopes[-4].provenance
        place = sketch.place(leaf.path)
        depth = len(sketch.path(inner)) - 1
        sketch.play("bilinear", Place(place.array, place.number, depth), self.algorithm.name, name)
        self._turn_weights(weights)
        for array in (f"{name}b1", f"{name}b", f"{name}a1", f"{name}a", f"{name}m1", result):
            self._vectorise_sums(array)
        self._tile_products(f"{name}m")
        for makes, uses in ((f"{name}a1", f"{name}a"), (f"{name}m1", result), (f"{name}b1", f"{name}b")):
            with sketch.attempt():
                self._join_sums(makes, uses)
        with sketch.attempt():
            self._side_by_side(f"{name}b")
        if convolution.w not in sketch.context.constants:
            with sketch.attempt():
                self._by_panels(f"{name}b", weights)
        self._turn_back(result, stores)
        self._share([image, weights, f"{name}b1", f"{name}b", *stored])

    # ---------------------------------------------------------------- arrays

    def _writer(self, array: str) -> Leaf:
        """The last operation that writes an array."""
        return [leaf for leaf in self.sketch.program.leaves if leaf.op.target.array == array][-1]

    def _followers(self) -> list[Provenance]:
        """What makes something else of each element of a result that nobody else reads; nothing of one that
        the caller gets. Raises NoSuchPlace where there are others who read it."""
        sketch, y = self.sketch, self.convolution.y
        if y in sketch.program.interface:
            return []
        leaves = sketch.program.leaves
        total = leaf_at(sketch, self.convolution.sum)
        sizes = [total.scopes[affine(form).depths[0]].size for form in total.op.target.index]
        made, followers = {y}, []
        for leaf in leaves[leaves.index(total) + 1 :]:
            read = [access for access in leaf.op.sources if access.array in made]
            if not read:
                continue
            index = leaf.op.target.index
            alike = [scope.size for scope in leaf.scopes] == sizes and all(
                form == Affine.iterator(depth) for depth, form in enumerate(index)
            )
            if (
                alike
                and not (leaf.op.accumulate or leaf.op.guard or any(scope.mark for scope in leaf.scopes))
                and all(access.index == index for access in read)
            ):
                made.add(leaf.op.target.array)
                followers.append(leaf.op.provenance)
            elif any(access.array == y for access in read):
                raise NoSuchPlace("Its result is read otherwise than element by element.")
        for follower in followers:
            isolate(sketch, follower)
        return followers

    def _unwrap_image(self, operation: Provenance) -> None:
        """Leave out the scope over a single image."""
        leaf = leaf_at(self.sketch, operation)
        depth = affine(leaf.op.target.index[0]).depths
        self.sketch.play("unwrap", self.sketch.place(leaf.path[: depth[0] + 1]))

    def _pad_dim(self, array: str, dim: int, size: int) -> bool:
        """Make a dimension, counted from the last, -1, as long as this at least; was it shorter?"""
        buffer = self.sketch.program.buffer_of[array]
        if buffer.dims[dim].size >= size:
            return False
        self.sketch.play("pad_dim", buffer.name, len(buffer.dims) + dim, size)
        return True

    def _room_for_tiles(self) -> str:
        """The image, in a temporary, with zeros where the last tiles reach beyond it, and rows of
        whole vectors."""
        sketch, array = self.sketch, self.convolution.x
        if array in sketch.program.interface:
            array = fresh_name(sketch.program, "z" + self.convolution.x[:20])
            sketch.play("stage_read", self.convolution.x, "root", array)
        more = self.taps - 1
        grown = [self._pad_dim(array, -2, self.down + more), self._pad_dim(array, -1, self.across + more)]
        self._pad_dim(array, -1, self._whole(self.across + more))
        if any(grown):
            sketch.play("zero_fill", array)
        return array

    def _whole(self, size: int) -> int:
        return -(-size // self.width) * self.width

    # ---------------------------------------------------------------- blocks

    def _lengthen(self, scope: Provenance, size: int, mode: str = "free") -> None:
        path = self.sketch.path(scope)
        if scope_of(self.sketch.program, path).size < size:
            self.sketch.play("pad_scope", self.sketch.place(path), size, mode)

    def _split(self, scope: Provenance, size: int) -> tuple[Provenance, Provenance]:
        """A scope over parts, and that over one of them."""
        path = self.sketch.path(scope)
        self.sketch.play("split_scope", self.sketch.place(path), size)
        return self.sketch.provenance(path), self.sketch.provenance((*path, 0))

    def _along(self, operation: Provenance, access: Access, dim: int) -> Provenance:
        """The scope that an access of an operation goes along in a dimension, the innermost of several."""
        return leaf_at(self.sketch, operation).scopes[affine(access.index[dim]).depths[-1]].provenance

    def _blocks(self, first: Provenance, stores: Sequence[Provenance], result: str) -> None:
        """One nest for a row of tiles of an image: what sets its results, the sum, and what stores them."""
        sketch, c = self.sketch, self.convolution
        self._pad_dim(result, -2, self.down)
        self._pad_dim(result, -1, self.across)
        for operation in (first, c.sum):
            for dim, size in ((-2, self.down), (-1, self.across)):
                self._lengthen(self._along(operation, leaf_at(sketch, operation).op.target, dim), size)
        shared: list[list[Provenance]] = []
        target = leaf_at(sketch, c.sum).op.target
        rows, columns = (self._along(c.sum, target, dim) for dim in (-2, -1))
        blocks, row = self._split(rows, self.tile)
        tiles, pixels = self._split(columns, self.tile)
        image = [c.image] if self.images and c.image is not None else []
        order(sketch, c.sum, [*image, blocks, tiles, c.channels, c.out, row, pixels, *c.taps])
        shared = []
        for operation, mode in ((first, "free"), *((store, "guard") for store in stores)):
            target = leaf_at(sketch, operation).op.target
            *image, out, rows, columns = (
                self._along(operation, target, d) for d in range(-3 - self.images, 0)
            )
            self._lengthen(rows, self.down, mode)
            block, row = self._split(self._along(operation, target, -2), self.tile)
            last = [row, columns, out] if operation == first else [out, row, columns]
            order(sketch, operation, [*image, block, *last])
            shared.append([*image, block])
        for scope in shared[0]:
            for _ in range(1 + len(stores)):
                sketch.play("join_scopes", sketch.place(sketch.path(scope)))
        inside = leaf_at(sketch, stores[0]).scopes[self.around :]
        for scope in [each.provenance for each in inside]:
            for _ in stores[1:]:
                sketch.play("join_scopes", sketch.place(sketch.path(scope)))
        out_dim = self.images  # of the result, behind that of images
        sketch.play("split_dim", result, out_dim + 1, self.tile)
        sketch.play("reuse_dims", result, *range(out_dim), out_dim + 1, "stack")
        sketch.play("swap_dims", result, out_dim, out_dim + 3)
        sketch.play("swap_dims", result, out_dim, out_dim + 2)

    # ---------------------------------------------------------------- turning

    def _turn(self, operation: Provenance, near: int, far: int) -> None:
        """Copy in squares that are turned in registers: dimension ``near`` of what is written and ``far``
        lie side by side in what is written and in what is read."""
        sketch = self.sketch
        target = leaf_at(sketch, operation).op.target
        lanes, terms = (self._along(operation, target, dim) for dim in (near, far))
        parts = []
        for scope in (lanes, terms):
            size = scope_of(sketch.program, sketch.path(scope)).size
            parts.append(self._split(scope, self.width) if size > self.width else (None, scope))
        (lane_blocks, lane), (term_blocks, term) = parts
        band = [s.provenance for s in leaf_at(sketch, operation).scopes]
        squares = [each for each in (term_blocks, lane_blocks) if each is not None]
        others = [each for each in band if each not in (*squares, lane, term)]
        order(sketch, operation, [*others, *squares, lane, term])
        sketch.play("use_instruction", sketch.place(sketch.path(lane)), "transpose")

    def _turned(self, image: str) -> None:
        """What a block reads of the image, with channels side by side."""
        sketch, around = self.sketch, self.around
        name = fresh_name(sketch.program, "p" + image[:20])
        block = leaf_at(sketch, self.convolution.sum).path[:around]
        sketch.play("stage_read", image, sketch.place(block), name)
        copy = self._writer(name).op.provenance
        sketch.play("swap_dims", name, around, around + 2)
        sketch.play("swap_dims", name, around, around + 1)
        columns = self._along(copy, leaf_at(sketch, copy).op.target, -2)
        size = self._whole(self.across + self.taps - 1)
        self._pad_dim(name, -2, size)
        self._lengthen(columns, size)
        self._turn(copy, -1, -2)

    def _turn_weights(self, name: str) -> None:
        """The weights with the channels of the result side by side."""
        sketch, source = self.sketch, self.convolution.w
        copy = self._writer(name).op.provenance
        for array in (name, source):
            for dim in (2, 1):
                sketch.play("merge_dims", sketch.program.buffer_of[array].name, dim)
        for depth in (2, 1):
            sketch.play("merge_scopes", sketch.place(leaf_at(sketch, copy).path[: depth + 1]))
        sketch.play("swap_dims", name, 0, 1)
        self._turn(copy, -1, -2)

    def _turn_back(self, result: str, stores: Sequence[Provenance]) -> None:
        """Store a block's results, turned so that pixels lie side by side again."""
        sketch = self.sketch
        nest = sketch.path(leaf_at(sketch, stores[0]).scopes[self.around].provenance)
        sketch.play("wrap", sketch.place(nest), 1)
        name = fresh_name(sketch.program, "o" + result[:20])
        sketch.play("stage_read", result, sketch.place(nest), name)
        copy = self._writer(name).op.provenance
        sketch.play("swap_dims", name, self.around + 2, self.around + 3)
        size = self._whole(self.convolution.sizes[self.convolution.columns])
        columns = self._along(copy, leaf_at(sketch, copy).op.target, -1)
        self._pad_dim(name, -1, size)
        self._pad_dim(result, -2, size)
        self._lengthen(columns, size)
        self._turn(copy, -1, -2)
        vectorise(sketch, leaf_at(sketch, stores[0]).scopes[-1].provenance)

    # ---------------------------------------------------------------- sums and products

    def _vectorise_sums(self, array: str) -> None:
        """Sums of an algorithm in vectors of channels, each operation by itself."""
        sketch = self.sketch
        operation = self._writer(array).op.provenance
        channels = self._along(operation, leaf_at(sketch, operation).op.target, -1)
        _, lane = self._split(channels, self.width) if self._size(channels) > self.width else (None, channels)
        while not all(isinstance(child, Op) for child in scope_of(sketch.program, sketch.path(lane)).body):
            sketch.play("interchange", sketch.place(sketch.path(lane)))
        separate_lanes(sketch, lane)

    def _size(self, scope: Provenance) -> int:
        return scope_of(self.sketch.program, self.sketch.path(scope)).size

    def _tile_products(self, array: str) -> None:
        """Products of matrices, tiles by channels, in register tiles."""
        sketch = self.sketch
        operation = only(
            leaf.op.provenance
            for leaf in sketch.program.leaves
            if leaf.op.target.array == array and leaf.op.accumulate
        )
        contraction = find(sketch, operation, self.around)
        first = initialisation(sketch, operation, contraction)
        rows = self._size(contraction.rows) if contraction.rows is not None else 1
        columns = self._size(contraction.columns)
        registers = sketch.context.target.vector_registers
        tile = choose_tile(rows, columns, (self.width,), registers, columns)
        even = [n for n in range(1, tile.vectors + 1) if columns % (n * self.width) == 0]
        tile = replace(tile, vectors=even[-1])  # a vector divides them
        tile_nests(sketch, first, contraction, tile)
        sums = leaf_at(sketch, operation).op.target.array
        for provenance in dict.fromkeys(
            leaf.scopes[-1].provenance
            for leaf in sketch.program.leaves
            if sums in {access.array for access in leaf.op.elements}
        ):
            write_out(sketch, provenance, tile.rows * tile.vectors)
        sketch.play("set_location", sums, "register")

    def _side_by_side(self, weights: str) -> None:
        """The weights that a tile's products read one after the other, so that they lie."""
        sketch = self.sketch
        last = len(buffer_named(sketch.program, weights).dims) - 1
        sketch.play("split_dim", weights, last, self.width)
        sketch.play("swap_dims", weights, last - 1, last)

    def _by_panels(self, sums: str, weights: str) -> None:
        """What is made of the weights that a panel of products reads, one panel after the other: then lines
        are whole before they leave a cache. Sums for the algorithm's products lie a power of two apart, and
        would fall into few of its sets. Weights that are constants stay as products read them faster: it is
        done once."""
        sketch = self.sketch
        last = len(buffer_named(sketch.program, sums).dims) - 1
        for array in (sums, weights):
            writer = next(leaf for leaf in sketch.program.leaves if leaf.op.target.array == array)
            sketch.play("interchange", sketch.place(writer.path[:1]))
        sketch.play("swap_dims", sums, 0, last - 2)
        sketch.play("split_dim", weights, 1, self.width)
        sketch.play("swap_dims", weights, 0, 1)

    def _join_sums(self, makes: str, uses: str) -> None:
        """Both steps of an algorithm's sums for a vector of channels at a time, what is between them
        kept close."""
        sketch = self.sketch
        one, other = (self._writer(each).op.provenance for each in (makes, uses))
        shared = shared_scopes(sketch, one, other)
        for scope in [s.provenance for s in leaf_at(sketch, one).scopes[shared:-2]]:
            sketch.play("join_scopes", sketch.place(sketch.path(scope)))
        dims = buffer_named(sketch.program, makes).dims
        last = len(dims) - 1
        if dims[last].size > self.width:
            sketch.play("split_dim", makes, last, self.width)
        sketch.play("reuse_dims", makes, last - 1, last, "stack")

    # ---------------------------------------------------------------- threads

    def _share(self, arrays: Sequence[str]) -> None:
        """Vectors where an array is made that has none yet, and threads for the outermost scopes."""
        sketch = self.sketch
        for array in arrays:
            for operation in [
                leaf.op.provenance for leaf in sketch.program.leaves if leaf.op.target.array == array
            ]:
                vectorise(sketch, leaf_at(sketch, operation).scopes[-1].provenance)
            for leaf in [leaf for leaf in sketch.program.leaves if leaf.op.target.array == array]:
                share(sketch, leaf.path[:1])
