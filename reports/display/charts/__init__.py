"""Charts that several topics have, from analysed results. Pure; topics have their own in ``chart.py``.

Colours are picked from Okabe and Ito's palette, darkened to a contrast of 3:1 on white; shapes and dashes repeat what
colours say. A chart without anything to show is a sentence that says so.
"""

from altair.utils import schemapi

# Every figure is checked whole when it is done. By default its parts are too, each whenever something is made of it.
schemapi.disable_debug_mode()
