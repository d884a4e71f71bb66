"""A language model as a player: it is shown a position and its legal moves, and answers one of them.

    settings.py   which model, where, at what price, within how many tokens: the player's text
    chat.py       a chat model behind an address that speaks as OpenAI's does
    local.py      a model in a folder, by transformers
    prompt.py     a position as words
    reply.py      words as a choice
    player.py     the game: asked, understood or told what was wrong, measured, told what came of it

Whatever a model says is text: it names a move that is checked like a person's, or nothing. docs/llm.md.
"""
