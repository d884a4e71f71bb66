"""What stands behind the door (app.py): the pages, for whoever may come in."""

from pages import shell
from pages.door import account

account()
shell.run()
