"""All agents by name: the passes, each search over edges and over lines, PerfLLM with its ablations, what
packages bring; and kinds of which there are as many as one names: language models, saved games."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from agents import saved_game
from agents.agent import Agent, Budget, Proposals, Strategy, Task
from agents.llm import player as llm
from agents.llm import settings as llm_settings
from agents.passes import PASSES, Pass, pass_moves
from agents.perfllm.across import weights
from agents.perfllm.settings import VARIANTS, Settings
from agents.search.cost_model import CostModel, Ranking, listening, load, model_file, ranked
from agents.search.methods import annealing, sampling, uniform
from agents.search.neighbours import Neighbour, edge
from agents.search.restarts import Restarts
from agents.trail import Trail
from dojo_core import plugins
from dojo_core.extras import need


def _of_pass(one: Pass) -> Agent:
    def strategy(task: Task, budget: Budget, rng: random.Random) -> Proposals:
        yield [Trail.at(task.game).played(pass_moves(task.game, one.name))]

    return Agent(one.name, one.about, strategy)


Method = Callable[[Task, Budget, random.Random, list[Trail], Neighbour], Proposals]


@dataclass(frozen=True)
class Search:
    """A method over edges, or over ``lines``."""

    name: str
    about: str
    method: Method
    lines: bool = False

    @property
    def version(self) -> str:
        """Runs of another version are other runs."""
        return "2" if self.lines else ""

    def begin(self, task: Task) -> tuple[list[Trail], Neighbour]:
        """Where it begins, and what is next to a line."""
        if not self.lines:
            return [Trail.at(task.game)], edge
        restarts = Restarts(task)
        return restarts.start(), restarts.next_to

    def agent(self) -> Agent:
        def strategy(task: Task, budget: Budget, rng: random.Random) -> Proposals:
            return self.method(task, budget, rng, *self.begin(task))

        return Agent(self.name, self.about, strategy, self.version)

    def guided(self, model: CostModel) -> Agent:
        """The same search, measuring what a cost model picks."""

        def strategy(task: Task, budget: Budget, rng: random.Random) -> Proposals:
            ranking = Ranking(model)
            start, next_to = self.begin(task)
            proposals = self.method(task, budget, rng, start, ranked(next_to, ranking))
            return listening(proposals, ranking)

        about = f"{self.about}; a cost model picks what is measured"
        return Agent(self.name + MODEL, about, strategy, version=self.version + model.digest)


def _learning(settings: Settings) -> Strategy:
    def strategy(task: Task, budget: Budget, rng: random.Random) -> Proposals:
        from agents.perfllm.agent import play  # with torch, whose import takes seconds

        return play(task, budget, rng, settings)

    return strategy


def _knowing(task: Task, budget: Budget, rng: random.Random) -> Proposals:
    from agents.perfllm.across.player import play  # with torch, whose import takes seconds

    return play(task, budget, rng)


def _unguided(task: Task, budget: Budget, rng: random.Random) -> Proposals:
    from agents.perfllm.across.player import play_unguided  # with torch, whose import takes seconds

    return play_unguided(task, budget, rng)


def _onward(task: Task, budget: Budget, rng: random.Random) -> Proposals:
    from agents.perfllm.across.player import play_onward  # with torch, whose import takes seconds

    return play_onward(task, budget, rng)


MODEL = "+model"  # a search's name with this behind it: guided by the cost model
SEARCHES = {
    each.name: each
    for each in (
        Search("random-edges", "a random legal move from any program seen", uniform),
        Search("random-lines", "a random edit of any line seen", uniform, True),
        Search("sampling-edges", "a legal move from a program seen, rather a fast one", sampling),
        Search("sampling-lines", "an edit of a line seen, rather a fast one", sampling, True),
        Search("annealing-edges", "simulated annealing over legal moves", annealing),
        Search("annealing-lines", "simulated annealing over edits of known lines", annealing, True),
    )
}


def _guarded(agent: Agent) -> Agent:
    """An agent of a package; what it raises and should not is Unusable, with a sentence."""

    def strategy(task: Task, budget: Budget, rng: random.Random) -> Proposals:
        try:
            yield from agent.strategy(task, budget, rng)
        except Exception as fault:
            raise plugins.Unusable(plugins.failed("dojo.agents", agent.name, fault)) from fault

    return Agent(agent.name, agent.about, strategy, agent.version, agent.unfit)


def _brought(builtin: Mapping[str, Agent]) -> dict[str, Agent]:
    """Passes and agents of packages, by name."""
    return {
        name: _of_pass(PASSES[name]) if isinstance(each, Pass) else _guarded(each)
        for name, each in plugins.added("dojo.agents", (Pass, Agent), builtin).items()
    }


_LEARNING = (
    Agent(
        "perfllm",
        "guided by what was learned on other kernels; for a target without that, perfllm-scratch",
        _knowing,
        version=f"{Settings().digest}-{weights.digest()}",
    ),
    Agent(
        "perfllm-unguided",
        "perfllm's search without anything learned: what that is worth is the difference",
        _unguided,
    ),
    Agent(
        "perfllm-onward",
        "perfllm's search from the heuristic pass's line on",
        _onward,
        version=weights.digest(),
    ),
    *(Agent(name, about, _learning(s), version=s.digest) for name, (about, s) in VARIANTS.items()),
)
LEARNING = tuple(agent.name for agent in _LEARNING)
_OURS = (
    *(_of_pass(each) for each in PASSES.own.values()),
    *(search.agent() for search in SEARCHES.values()),
    *_LEARNING,
)
AGENTS: plugins.Extended[Agent] = plugins.Extended({agent.name: agent for agent in _OURS}, _brought)


@dataclass(frozen=True)
class Kind:
    """Agents whose name is a kind's and words behind a colon, written as ``form`` says. ``made`` reads such
    a text; ``offered`` are those that the app's players may choose."""

    form: str
    title: str
    made: Callable[[str], Agent]
    offered: Callable[[], list[str]] = list
    hint: str = ""  # told where none is offered


def _language_model(text: str) -> Agent:
    return llm.agent(llm_settings.read(text))


def _language_models() -> list[str]:
    return [settings.text for settings in llm_settings.offered()]


KINDS = {
    llm_settings.NAME: Kind(
        llm_settings.FORM, "Language models", _language_model, _language_models, llm_settings.HINT
    ),
    saved_game.NAME: Kind(saved_game.FORM, "Saved games", saved_game.agent),
}


def agent_groups() -> dict[str, list[Agent]]:
    """All agents that the app offers under the headings of their kinds, in the order of the registry. Each
    name is one that ``agent_named`` takes."""
    groups: dict[str, list[Agent]] = {}
    searches = {search.name for search in SEARCHES.values()}
    for name, agent in AGENTS.items():
        kind = "Of packages"
        if name in PASSES:
            kind = "Passes: one program, nothing measured on the way"
        elif name in LEARNING:
            kind = "Learning"
        elif name in searches:
            kind = "Searches: what they try next hangs on times"
        groups.setdefault(kind, []).append(agent)
    for each in KINDS.values():
        if offered := each.offered():
            groups[each.title] = [replace(each.made(text), name=text) for text in offered]
    return groups


class NoAgent(ValueError):
    """There is none of that name, or its cost model is none; ``str()`` is a sentence for a person."""


def is_agent(player: str) -> bool:
    """Whether that is an agent's name, of those that are here, in any of its forms."""
    return player.partition(":")[0].partition("+")[0] in {*AGENTS, *KINDS}


def agent_named(name: str) -> Agent:
    """An agent by its name; a search's with ``+model`` behind it is guided by this user's cost model. A
    kind's has words behind a colon, as ``llm:NAME@ADDRESS``.

    Raises NoAgent, and NotInstalled.
    """
    if name in LEARNING:
        need("learn", f"The agent {name}")
    if name in AGENTS:
        return AGENTS[name]
    kind_name, _, words = name.partition(":")
    kind = KINDS.get(kind_name)
    if kind is not None:
        if not words:
            raise NoAgent(f"Which one? {kind.title} are written {kind.form}.")
        try:
            return kind.made(name)
        except ValueError as wrong:
            raise NoAgent(str(wrong)) from None
    search = SEARCHES.get(name.removesuffix(MODEL))
    if search is None or not name.endswith(MODEL):
        guided = f"a search may have {MODEL} behind it"
        raise NoAgent(
            f"There is no agent {name!r}. The agents: {', '.join(AGENTS)}; "
            f"{'; '.join(each.form for each in KINDS.values())}; {guided}."
        )
    try:
        return search.guided(load(model_file()))
    except ValueError as wrong:
        raise NoAgent(str(wrong)) from None
