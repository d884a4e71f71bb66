"""What is learned on some kernels makes others fast (docs/perfllm.md), in reading order:

problem.py     a kernel in a shape, what its programs take, and what a search may spend on it
search.py      the player: an archive by structure, moves without replacement as a guide weighs them
lines.py       lines edited, grafted onto each other (moves of another kernel at places like theirs), and
               minimised: every move dropped whose removal costs nothing
guides.py      who weighs moves: blind (each kind alike), how often kinds stand in good lines, a policy
features.py    programs, what a move changes of them, and the move's own text, as bags of n-grams
policy.py      the network over stop and moves, by n-grams or through the encoder of lines; its training
examples.py    what it is taught: the next move of good lines, among the moves that were legal
loop.py        rounds of search, minimising and training, until the teachers gain no more
saved.py       a policy in a folder, and those that come with the Dojo (weights/)
player.py      the agent ``perfllm``: a target's policy guides the search, and lends it lines

and what people are told of it:

asked.py       a policy's word on a position, for hints and for those who watch
folders.py     the teachers of a loop's folder, round by round, beside the expert
held_out.py    players on kernels that were left out, beside the expert

No file knows hardware or recipes, and none that learns knows an expert: moves, texts and times alone.
"""
