"""Search: three ways to choose where to go on, over two structures.

Source: PerfDojo, SC '25, section 4.2 and figure 13.
"""
