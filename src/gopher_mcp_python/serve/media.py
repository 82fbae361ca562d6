"""What a file is, by its first bytes: the client's word for it is no evidence.

The signatures are those of the formats' own specifications (PNG 1.2 section 3.1, GIF89a, JFIF, RIFF, ISO 32000 for
PDF, PKZIP APPNOTE 4.3.7, RFC 1952 for gzip, ISO 14496-12 for MP4).
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable

__all__ = ["HEAD", "MediaCheck", "allows", "is_media_type"]

HEAD = 512  # bytes that are looked at

_SIGNATURES: tuple[tuple[bytes, str], ...] = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", "application/pdf"),
    (b"PK\x03\x04", "application/zip"),
    (b"PK\x05\x06", "application/zip"),
    (b"\x1f\x8b\x08", "application/gzip"),
    (b"BM", "image/bmp"),
    (b"II*\x00", "image/tiff"),
    (b"MM\x00*", "image/tiff"),
    (b"ID3", "audio/mpeg"),
    (b"OggS", "audio/ogg"),
    (b"fLaC", "audio/flac"),
)
# What the signature can't tell apart: formats within a container of another name, and other names of one format.
_WITHIN_ZIP = frozenset(
    (
        "application/epub+zip",
        "application/vnd.oasis.opendocument.presentation",
        "application/vnd.oasis.opendocument.spreadsheet",
        "application/vnd.oasis.opendocument.text",
        "application/vnd.openxmlformats-officedocument.presentationml.presentation",
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        "application/x-zip-compressed",
    )
)
_LIKE_MP4 = frozenset(("audio/mp4", "image/avif", "image/heic", "video/quicktime"))
_SAME = {
    "image/jpg": "image/jpeg",
    "image/x-ms-bmp": "image/bmp",
    "application/x-gzip": "application/gzip",
    "audio/wave": "audio/wav",
    "audio/x-wav": "audio/wav",
    "text/x-markdown": "text/markdown",
}
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]{0,126}\Z")
_KNOWN = frozenset(kind for _, kind in _SIGNATURES) | {"image/webp", "audio/wav", "video/mp4"}
# Text by the name of its type; SVG and HTML are text as well, and are what they are said to be.
_TEXTS = frozenset(("application/json", "application/xml", "application/yaml", "application/csv", "image/svg+xml"))


def is_media_type(text: str) -> bool:
    """Whether it is `type/subtype` (RFC 6838, section 4.2), without parameters."""
    kind, slash, rest = text.partition("/")
    return bool(slash and _NAME.match(kind) and _NAME.match(rest))


def allows(patterns: Iterable[str], media_type: str) -> bool:
    """Whether one of the patterns ("image/png", "image/*", "*/*") takes this type. No patterns take everything."""
    patterns = [pattern.strip().lower() for pattern in patterns]
    main = media_type.partition("/")[0]
    return not patterns or any(pattern in ("*/*", f"{main}/*", media_type) for pattern in patterns)


class MediaCheck:
    """Finds out, while a file streams by, whether it is what its sender says.

    Args:
        claimed: the media type as sent, in lower case and without parameters.
    """

    def __init__(self, claimed: str) -> None:
        self._said, self._claimed = claimed, _plain(claimed)
        self._head = bytearray()
        self._decoder = codecs.getincrementaldecoder("utf-8")() if self._is_text else None

    @property
    def _is_text(self) -> bool:
        return self._claimed.startswith("text/") or self._claimed in _TEXTS or self._claimed.endswith(("+json", "+xml"))

    def feed(self, chunk: bytes) -> bool:
        """Takes the next bytes; False when they can't be of the claimed type."""
        if len(self._head) < HEAD:
            self._head += chunk[: HEAD - len(self._head)]
        return self._decoder is None or self._decoded(chunk, last=False)

    def early(self) -> bool:
        """False as soon as the first bytes tell that it is something else; True while nothing can be said."""
        return len(self._head) < 16 or self._may_be()

    def finish(self) -> str | None:
        """The media type as its sender says it; None when it is another."""
        whole = self._decoder is None or self._decoded(b"", last=True)
        return self._said if whole and self._may_be() else None

    def _may_be(self) -> bool:
        """By the first bytes alone. What is said to be just bytes is."""
        found, said = sniffed(bytes(self._head)), self._claimed
        if found == "application/zip" and said in _WITHIN_ZIP:
            return True
        if found == "video/mp4" and said in _LIKE_MP4:
            return True
        if found is not None:
            return said in (found, "application/octet-stream")
        return said not in _KNOWN and said not in _WITHIN_ZIP

    def _decoded(self, chunk: bytes, *, last: bool) -> bool:
        """Whether what is said to be text is UTF-8 without NUL."""
        if b"\x00" in chunk:
            return False
        try:
            if self._decoder is not None:
                self._decoder.decode(chunk, last)
        except UnicodeDecodeError:
            return False
        return True


def sniffed(head: bytes) -> str | None:
    """The media type by the first bytes; None for what has no signature here."""
    for signature, kind in _SIGNATURES:
        if head.startswith(signature):
            return kind if kind != "image/bmp" or head[6:10] == b"\0\0\0\0" else None
    if head[:4] == b"RIFF":
        return {b"WEBP": "image/webp", b"WAVE": "audio/wav"}.get(head[8:12])
    return "video/mp4" if head[4:8] == b"ftyp" else None


def _plain(media_type: str) -> str:
    return _SAME.get(media_type, media_type)
