"""Charts of the report, from analysed results. Pure; the only folder that writes Altair.

Colours are picked from Okabe and Ito's palette, darkened to a contrast of 3:1 on white; shapes and dashes repeat what
colours say. A chart without anything to show is a sentence that says so.
"""

import sys

# Altair imports jsonschema, and that this package where it happens to be, which then builds 38 grammars: 1.7 s of
# processor time to check addresses in other alphabets than Latin, of which no chart has any.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
from altair.utils import schemapi  # noqa: E402 - after that

# Every figure is checked whole when it is done. By default its parts are too, each whenever something is made of it.
schemapi.disable_debug_mode()
