"""Makes an MP4 file of an animated AVIF: the same AV1 frames in the container that a browser's video element takes.

Pillow encodes AVIF, and the worker environment has it; a program that writes MP4 would be one more to install. Boxes
are those of ISO/IEC 14496-12, and the frames' own description (``av1C``, ``colr``) is taken over.
"""

from collections.abc import Sequence
from struct import pack, unpack_from
from typing import Final

TIMESCALE: Final = 90_000  # units a second
_AS_IT_IS: Final = pack(">9I", 0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x40000000)  # the matrix that turns nothing
_HEADER: Final = 8  # bytes: size and name of a box
_ENTRY: Final = 78  # bytes of a visual sample entry before its boxes


def mp4_of(avif: bytes, *, width_px: int, height_px: int, frame_s: float) -> bytes:
    """Return the frames of an animated AVIF as an MP4 file; each is shown for ``frame_s``.

    Raises:
        ValueError: it is no animated AVIF whose frames lie one behind the other.
    """
    table = _box(avif, b"moov", b"trak", b"mdia", b"minf", b"stbl")
    described = _box(table, b"stsd")[8 + _HEADER + _ENTRY :]
    sizes_box, chunks = _box(table, b"stsz"), _box(table, b"stco")
    (num_frames,) = unpack_from(">I", sizes_box, 8)
    sizes = unpack_from(f">{num_frames}I", sizes_box, 12)
    num_chunks, offset = unpack_from(">2I", chunks, 4)
    if num_chunks != 1:
        raise ValueError(f"its frames lie in {num_chunks} places")
    frames = avif[offset : offset + sum(sizes)]
    description = b"".join(_boxed(name, _box(described, name)) for name in (b"av1C", b"colr"))
    file_type = _boxed(b"ftyp", b"isom", pack(">I", 0x200), b"isom", b"iso6", b"av01", b"mp41")
    key_frames = _box(table, b"stss")

    def movie(first: int) -> bytes:
        return _movie(
            _tables(description, sizes, key_frames, first, width_px, height_px, round(frame_s * TIMESCALE)),
            duration=num_frames * round(frame_s * TIMESCALE), width_px=width_px, height_px=height_px,
        )  # fmt: skip

    first = len(file_type) + len(movie(0)) + _HEADER
    return file_type + movie(first) + _boxed(b"mdat", frames)


def _movie(tables: bytes, *, duration: int, width_px: int, height_px: int) -> bytes:
    header = _full(
        b"mvhd", pack(">4IIH10x", 0, 0, TIMESCALE, duration, 0x10000, 0x100), _AS_IT_IS, bytes(24), pack(">I", 2)
    )
    track = _full(
        b"tkhd", pack(">5I16x", 0, 0, 1, 0, duration), _AS_IT_IS, pack(">2I", width_px << 16, height_px << 16), flags=3
    )
    media = _boxed(
        b"mdia",
        _full(b"mdhd", pack(">4I2H", 0, 0, TIMESCALE, duration, 0x55C4, 0)),  # language: undetermined
        _full(b"hdlr", bytes(4), b"vide", bytes(12), b"video\0"),
        _boxed(
            b"minf",
            _full(b"vmhd", bytes(8), flags=1),
            _boxed(b"dinf", _full(b"dref", pack(">I", 1), _full(b"url ", flags=1))),
            tables,
        ),
    )
    return _boxed(b"moov", header, _boxed(b"trak", track, media))


def _tables(
    description: bytes, sizes: Sequence[int], key_frames: bytes, first: int, width_px: int, height_px: int, delta: int
) -> bytes:
    """What the frames are, how long each lasts, and where they lie: all in one chunk."""
    entry = _boxed(
        b"av01",
        pack(">6xH16x2H2I4xH32x2H", 1, width_px, height_px, 0x480000, 0x480000, 1, 24, 0xFFFF),
        description,
    )
    count = len(sizes)
    return _boxed(
        b"stbl",
        _full(b"stsd", pack(">I", 1), entry),
        _full(b"stts", pack(">3I", 1, count, delta)),
        _full(b"stsc", pack(">4I", 1, 1, count, 1)),
        _full(b"stsz", pack(">2I", 0, count), pack(f">{count}I", *sizes)),
        _full(b"stco", pack(">2I", 1, first)),
        _boxed(b"stss", key_frames),
    )


def _boxed(name: bytes, *parts: bytes) -> bytes:
    content = b"".join(parts)
    return pack(">I", len(content) + _HEADER) + name + content


def _full(name: bytes, *parts: bytes, flags: int = 0) -> bytes:
    """Return a box that begins with a version, 0, and flags."""
    return _boxed(name, pack(">I", flags), *parts)


def _box(content: bytes, *names: bytes) -> bytes:
    """Return what is in the first box of this name, within the one of the name before."""
    at = 0
    while at + _HEADER <= len(content):
        size, name = unpack_from(">I4s", content, at)
        if size < _HEADER:
            break
        if name == names[0]:
            inside = content[at + _HEADER : at + size]
            return _box(inside, *names[1:]) if names[1:] else inside
        at += size
    raise ValueError(f"it has no box {names[0].decode()}")
