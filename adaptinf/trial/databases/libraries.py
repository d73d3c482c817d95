"""The packages of the extra `trial`, imported in one place; if one is missing, the error names the extra."""

from __future__ import annotations

from adaptinf.errors import MissingDependencyError

try:
    import sqlalchemy as sa
    from cryptography.exceptions import InvalidSignature, InvalidTag, UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM
except ImportError as error:
    raise MissingDependencyError("a live trial", "SQLAlchemy and cryptography", "trial") from error

__all__ = [
    "AESGCM",
    "Ed25519PrivateKey",
    "Ed25519PublicKey",
    "InvalidSignature",
    "InvalidTag",
    "UnsupportedAlgorithm",
    "sa",
    "serialization",
]
