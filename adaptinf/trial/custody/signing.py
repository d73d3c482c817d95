"""Ed25519 signatures of exported trails, with keys in PEM files."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from adaptinf.errors import FileError
from adaptinf.files import owners_alone, told
from adaptinf.trial.databases.libraries import (
    Ed25519PrivateKey,
    Ed25519PublicKey,
    InvalidSignature,
    UnsupportedAlgorithm,
    serialization,
)

_RAW = serialization.Encoding.Raw, serialization.PublicFormat.Raw
_SHOWN = 16
_MAKE = "create one with openssl genpkey -algorithm ed25519 -out FILE"
_PUBLIC = "extract it with openssl pkey -in FILE -pubout"


def signature(path: Path, text: bytes) -> tuple[bytes, str]:
    """The signature of a text by the private key in a file, and the fingerprint of its public key."""
    if owners_alone(path) is False:
        raise FileError(str(path), "read", f"other users can read this private key: run chmod 600 {path}")
    key = _loaded(path, lambda content: serialization.load_pem_private_key(content, password=None))
    if not isinstance(key, Ed25519PrivateKey):
        raise FileError(str(path), "read", f"it does not contain an unencrypted Ed25519 private key: {_MAKE}")
    return key.sign(text), fingerprint(key.public_key())


def public_key(path: Path) -> Ed25519PublicKey:
    """The public key in a file."""
    key = _loaded(path, serialization.load_pem_public_key)
    if not isinstance(key, Ed25519PublicKey):
        raise FileError(str(path), "read", f"it does not contain an Ed25519 public key: {_PUBLIC}")
    return key


def is_signed(key: Ed25519PublicKey, signed: bytes, text: bytes) -> bool:
    """Whether a signature of a text is by the holder of the private key."""
    try:
        key.verify(signed, text)
    except InvalidSignature:
        return False
    return True


def fingerprint(key: Ed25519PublicKey) -> str:
    """The beginning of the SHA-256 of a public key."""
    return hashlib.sha256(key.public_bytes(*_RAW)).hexdigest()[:_SHOWN]


def _loaded(path: Path, load: Any) -> Any:
    """The key in a file; None if the file contains no readable key."""
    with told(path, "read"):
        content = path.read_bytes()
    try:
        return load(content)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return None
