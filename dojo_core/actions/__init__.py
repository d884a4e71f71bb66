"""What every door does with a game, and the sentences that it has for people: calls by MCP and HTTP,
notebooks, the command line, the app. Functions over games and programs, whoever's they are.
"""
