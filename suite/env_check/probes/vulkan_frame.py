"""Renders one frame through Vulkan, offscreen: ``python -m suite.env_check.probes.vulkan_frame``.

It prints one JSON object per stage; ``suite.env_check.graphics.frame.FrameSeen`` documents the keys. The first hardware
device renders; a software device renders only if there is no other.
"""

from collections.abc import Callable
from typing import Any, Final

from suite.env_check.graphics import frame
from suite.env_check.probes.answer import open_answer

_FORMAT: Final = "rgba8unorm"
_SHADER: Final = """
@vertex fn vertex(@builtin(vertex_index) i: u32) -> @builtin(position) vec4<f32> {{
    var corners = array<vec2<f32>, 3>({corners});
    return vec4<f32>(corners[i], 0.0, 1.0);
}}
@fragment fn fragment() -> @location(0) vec4<f32> {{ return vec4<f32>({colour}); }}
"""


def probe(answer: Callable[[object], None]) -> None:
    seen: dict[str, Any] = {"stage": "import of wgpu"}
    answer(seen)
    try:
        import wgpu  # noqa: PLC0415  (only this process loads it, and it may be missing)
        from wgpu.backends.wgpu_native.extras import set_instance_extras  # noqa: PLC0415
    except ModuleNotFoundError as error:
        answer({**seen, "package_missing": error.name})
        return
    seen["stage"] = "search for a Vulkan device"
    answer(seen)
    set_instance_extras(backends=["Vulkan"])
    adapters = sorted(wgpu.gpu.enumerate_adapters_sync(), key=lambda adapter: adapter.info["adapter_type"] == "CPU")
    if not adapters:
        answer({**seen, "error": "no Vulkan device"})
        return
    info = adapters[0].info
    seen |= {
        "device": f"{info['device']} ({info['description']})",
        "is_software": info["adapter_type"] == "CPU",
        "stage": "rendering",
    }
    answer(seen)
    try:
        pixels = _render(wgpu, adapters[0])
    except (RuntimeError, wgpu.GPUError) as error:
        answer({**seen, "error": f"{type(error).__name__}: {error}"})
        return
    answer({**seen, "wrong_pixels": frame.count_wrong_pixels(pixels), "stage": "end"})


def _render(wgpu: Any, adapter: Any) -> bytes:
    """Return RGBA bytes, the top row first."""
    device = adapter.request_device_sync()
    size = (frame.SIZE, frame.SIZE, 1)
    usage = wgpu.TextureUsage.RENDER_ATTACHMENT | wgpu.TextureUsage.COPY_SRC
    texture = device.create_texture(size=size, format=_FORMAT, usage=usage)
    pairs = zip(frame.VERTICES[::2], frame.VERTICES[1::2], strict=True)
    code = _SHADER.format(
        corners=", ".join(f"vec2({x}, {y})" for x, y in pairs), colour=", ".join(map(str, frame.TRIANGLE_COLOUR))
    )
    shader = device.create_shader_module(code=code)
    pipeline = device.create_render_pipeline(
        layout="auto",
        vertex={"module": shader, "entry_point": "vertex"},
        fragment={"module": shader, "entry_point": "fragment", "targets": [{"format": _FORMAT}]},
        primitive={"topology": "triangle-list"},
    )
    target = {
        "view": texture.create_view(),
        "load_op": "clear",
        "store_op": "store",
        "clear_value": frame.CLEAR_COLOUR,
    }
    encoder = device.create_command_encoder()
    render_pass = encoder.begin_render_pass(color_attachments=[target])
    render_pass.set_pipeline(pipeline)
    render_pass.draw(3)
    render_pass.end()
    device.queue.submit([encoder.finish()])
    return bytes(device.queue.read_texture({"texture": texture}, {"bytes_per_row": frame.SIZE * 4}, size))


if __name__ == "__main__":
    probe(open_answer())
