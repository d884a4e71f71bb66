"""The bar on top of every page: the pages, the game that is open, the machine, the queue, Share.

A component of our own, so that it is 36 pixels high, stays while pages change and asks nothing of the server
until it is used. Its styles are not isolated: it is part of the page.
"""

from pages.components import component

bar = component("dojo_bar", "bar/bar.css", "bar/projector.js", "bar/bar.js", isolated=False)
