"""Where training runs are begun and found."""

from __future__ import annotations

from typing import Any

import streamlit as st

from agents.jobs import JobRefused
from agents.jobs.spec import TIMINGS
from agents.jobs.trainings import TrainingSpec, TrainingView
from agents.perfllm.settings import Settings
from dojo_core import kernels
from pages import runs
from pages.jobs import the_trainings

ENCODERS = {"ir": "our own, which reads programs line by line", "bag": "a bag of tokens, quick"}
SWITCHES = {
    "max_bellman": ("Max Q-learning", "The target is the best reward to come; off: the sum of rewards."),
    "double": ("Double DQN", "One network chooses, the other values."),
    "dueling": ("Dueling heads", "The value of a position and the advantage of a move, apart."),
    "replay": ("Experience replay", "Learn from all that was seen, not from the last moves only."),
    "target_network": ("Target network", "Targets from a copy that follows slowly."),
    "symlog": ("Logarithm of speed-ups", "2× to 4× counts as much as 10× to 20×."),
    "tightened": ("Tightened targets", "No target is below what moves already made have come to."),
    "tried": ("Tried actions only", "Targets look ahead through moves that were tried, not through guesses."),
    "kinds": ("Kinds of moves", "The network is told the kind of each move besides."),
}


def page(ready: bool) -> None:
    left, right = st.columns([5, 6], gap="large")
    with left:
        _start(ready)
    with right:
        none = (
            "None yet. A run goes on when this page is closed, and from its last checkpoint when it was "
            "stopped."
        )
        runs.show_list("train", the_trainings(), none, _description)


def _start(ready: bool) -> None:
    st.subheader("Start")
    name, shape = runs.choose_kernel("train")
    policy = runs.choose_policy("train", "What may change")
    one, two, three = st.columns(3)
    budget = one.number_input("Programs", 2, 100_000, 200, key="train_budget", help="So many are measured.")
    seed = two.number_input("Seed", 0, 10**6, 0, key="train_seed")
    encoder = three.selectbox("Encoder", list(ENCODERS), key="train_encoder", help=_explained(ENCODERS))
    timing = st.radio(
        "Score", list(TIMINGS), format_func=TIMINGS.__getitem__, key="train_timing", horizontal=True
    )
    chosen: dict[str, Any] = {}
    standard_settings = Settings()
    with st.expander("What it learns with"):
        columns = st.columns(2)
        for number, (field, (label, about)) in enumerate(SWITCHES.items()):
            chosen[field] = columns[number % 2].toggle(
                label, getattr(standard_settings, field), key=f"train_{field}", help=about
            )
        one, two = st.columns(2)
        chosen["restarts"] = one.number_input(
            "Restarts", 0.0, 1.0, standard_settings.restarts, key="train_restarts",
            help="The share of episodes that begin at a fast program met before.",
        )  # fmt: skip
        chosen["novelty"] = two.number_input(
            "Novelty", 0.0, 10.0, standard_settings.novelty, key="train_novelty",
            help="So much more counts, in choosing, a move never tried in its position.",
        )  # fmt: skip
        chosen["gamma"] = one.number_input("Discount γ", 0.0, 1.0, standard_settings.gamma, key="train_gamma")
        chosen["rate"] = two.number_input(
            "Learning rate", 1e-6, 1.0, standard_settings.rate, format="%.5f", key="train_rate"
        )
        chosen["epsilon_first"] = one.number_input(
            "ε at first", 0.0, 1.0, standard_settings.epsilon_first, key="train_epsilon_first"
        )
        chosen["epsilon_last"] = two.number_input(
            "ε at last", 0.0, 1.0, standard_settings.epsilon_last, key="train_epsilon_last"
        )
        chosen["episode_moves"] = one.number_input(
            "Moves of an episode", 1, 200, standard_settings.episode_moves, key="train_moves"
        )
        chosen["most_actions"] = two.number_input(
            "Moves looked at", 0, 1000, standard_settings.most_actions, key="train_actions",
            help="Of a position; 0: all that are legal.",
        )  # fmt: skip
        chosen["sampled"] = one.number_input(
            "Moves drawn", 0, 1000, standard_settings.sampled, key="train_sampled",
            help="A greedy move is the best of so many drawn at random; 0: the best of all.",
        )  # fmt: skip
    if not st.button("Start", type="primary", key="train_start", disabled=not ready):
        return
    settings = {name: value for name, value in chosen.items() if value != getattr(standard_settings, name)}
    try:
        sizes = kernels.get(name).shape(shape)
        spec = TrainingSpec.of(
            name, "x".join(map(str, sizes)), policy=policy, budget=int(budget), seed=int(seed),
            counting=timing == "count", encoder=encoder, settings=settings,
        )  # fmt: skip
        run = the_trainings().start(spec)
    except (JobRefused, ValueError, TypeError) as refusal:
        st.error(str(refusal))
        return
    runs.show("train", [run])


def _explained(choices: dict[str, str]) -> str:
    return "; ".join(f"{name}: {about}" for name, about in choices.items())


def _description(view: TrainingView) -> tuple[str, str]:
    """With which seed, and how far it has come."""
    moves = view.of("move")
    return (
        f"seed {view.spec.seed}",
        f"{moves[-1]['evaluation'] if moves else 0} of {view.spec.budget} programs",
    )
