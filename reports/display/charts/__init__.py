"""The five forms of charts, from plain points: ``speedup``, ``sweep``, ``forest``, ``parts`` and ``curves``. Pure.

``drawing`` has what they share. Colours are of Okabe and Ito's palette, darkened to a contrast of 3:1 on white.
"""

from altair.utils import schemapi

# Every figure is checked whole when it is done. By default its parts are too, each whenever something is made of it.
schemapi.disable_debug_mode()
