"""Renders one frame through EGL and OpenGL: ``python -m suite.env_check.probes.egl_frame DEVICE_INDEX``.

It prints one JSON object per stage; ``suite.env_check.graphics.frame.FrameSeen`` documents the keys.
"""

import array
import sys
from collections.abc import Callable
from typing import Any, Final

from suite.env_check.graphics import frame
from suite.env_check.probes.answer import open_answer

_SOFTWARE: Final = ("llvmpipe", "softpipe", "swrast", "swiftshader")
_VERTEX_SHADER: Final = "#version 330\nin vec2 corner;\nvoid main() { gl_Position = vec4(corner, 0.0, 1.0); }"
_FRAGMENT_SHADER: Final = "#version 330\nout vec4 colour;\nvoid main() { colour = vec4(%s); }"


def probe(device_index: int, answer: Callable[[object], None]) -> None:
    """Render on the EGL device ``device_index`` and answer at every stage."""
    seen: dict[str, Any] = {"stage": "import of moderngl"}
    answer(seen)
    try:
        import moderngl  # noqa: PLC0415  (only this process loads it, and it may be missing)

        create: Any = moderngl.create_standalone_context  # the keyword arguments in its stub are wrong
    except ModuleNotFoundError as error:
        answer({**seen, "package_missing": error.name})
        return
    seen["stage"] = f"OpenGL context on EGL device {device_index}"
    answer(seen)
    try:
        # Run-time packages install these names; only development packages install the ones without a version.
        context = create(backend="egl", device_index=device_index, libgl="libGL.so.1", libegl="libEGL.so.1")
    except Exception as error:  # noqa: BLE001  (the package raises bare Exception)
        answer({**seen, "error": str(error)})
        return
    renderer = context.info["GL_RENDERER"]
    seen |= {
        "device": f"{context.info['GL_VENDOR']} {renderer} (OpenGL {context.info['GL_VERSION']})",
        "is_software": any(word in renderer.lower() for word in _SOFTWARE),
        "stage": "rendering",
    }
    answer(seen)
    answer({**seen, "wrong_pixels": frame.count_wrong_pixels(_render(context)), "stage": "end"})


def _render(context: Any) -> bytes:
    """Return RGBA bytes, the top row first."""
    colour = ", ".join(map(str, frame.TRIANGLE_COLOUR))
    program = context.program(vertex_shader=_VERTEX_SHADER, fragment_shader=_FRAGMENT_SHADER % colour)
    corners = context.buffer(array.array("f", frame.VERTICES).tobytes())
    vertices = context.vertex_array(program, [(corners, "2f", "corner")])
    target = context.simple_framebuffer((frame.SIZE, frame.SIZE), components=4)
    target.use()
    target.clear(*frame.CLEAR_COLOUR)
    vertices.render()
    pixels = target.read(components=4)
    row_bytes = frame.SIZE * 4
    rows = [pixels[start : start + row_bytes] for start in range(0, len(pixels), row_bytes)]
    return b"".join(reversed(rows))  # OpenGL's first row is the bottom one


if __name__ == "__main__":
    probe(int(sys.argv[1]), open_answer())
