"""xxHash64, with which Prometheus hashes label sets: `limit_ratio` then picks the very series that it would pick."""

from __future__ import annotations

from struct import unpack_from

from healthwatch.stream.series import LabelSet

_MASK = 2**64 - 1
_P1, _P2, _P3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
_P4, _P5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5


def label_hash(labels: LabelSet) -> int:
    """64 bits of a label set sorted by name, as `Labels.Hash` of Prometheus 3 (string labels) gives them."""
    parts = (part.encode("utf-8", "surrogateescape") for pair in labels for part in pair)
    return xxhash64(b"".join(_length(len(part)) + part for part in parts))


def _length(size: int) -> bytes:
    return bytes([size]) if size < 255 else b"\xff" + size.to_bytes(3, "little")


def xxhash64(data: bytes) -> int:
    """The hash with seed 0."""
    length, position = len(data), 0
    if length >= 32:
        lanes = [(_P1 + _P2) & _MASK, _P2, 0, -_P1 & _MASK]
        while position + 32 <= length:
            words = unpack_from("<4Q", data, position)
            lanes = [_round(lane, word) for lane, word in zip(lanes, words, strict=True)]
            position += 32
        rotated = (_rotate(lane, by) for lane, by in zip(lanes, (1, 7, 12, 18), strict=True))
        digest = sum(rotated) & _MASK
        for lane in lanes:
            digest = ((digest ^ _round(0, lane)) * _P1 + _P4) & _MASK
    else:
        digest = _P5
    return _avalanche(_tail(data, position, (digest + length) & _MASK))


def _tail(data: bytes, position: int, digest: int) -> int:
    """What is left over after the blocks of 32 bytes."""
    while position + 8 <= len(data):
        digest ^= _round(0, unpack_from("<Q", data, position)[0])
        digest = (_rotate(digest, 27) * _P1 + _P4) & _MASK
        position += 8
    if position + 4 <= len(data):
        digest ^= unpack_from("<I", data, position)[0] * _P1 & _MASK
        digest = (_rotate(digest, 23) * _P2 + _P3) & _MASK
        position += 4
    for byte in data[position:]:
        digest ^= byte * _P5 & _MASK
        digest = _rotate(digest, 11) * _P1 & _MASK
    return digest


def _round(lane: int, word: int) -> int:
    return _rotate((lane + word * _P2) & _MASK, 31) * _P1 & _MASK


def _rotate(value: int, by: int) -> int:
    return (value << by | value >> (64 - by)) & _MASK


def _avalanche(digest: int) -> int:
    digest = (digest ^ digest >> 33) * _P2 & _MASK
    digest = (digest ^ digest >> 29) * _P3 & _MASK
    return digest ^ digest >> 32
