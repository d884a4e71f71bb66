"""PerfLLM: reinforcement learning over moves, a language model reading the program.

Source: PerfDojo, SC '25, section 3. Nothing here imports torch before it is needed (see docs/perfllm.md).
"""
