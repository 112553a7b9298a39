"""Who may do what: tokens with roles, and the role that each path needs."""

from __future__ import annotations

import base64
import binascii
import hmac
from pathlib import Path
from typing import Literal, get_args

from artreplay.errors import InvalidFile

Role = Literal["decide", "read", "admin"]

MIN_TOKEN = 16  # letters; shorter tokens can be guessed
_ANYONE = frozenset({"/healthz"})
_DECIDING = frozenset({"decisions", "rewards", "observations", "personalizer"})


class Tokens:
    """The tokens that a service knows, each with its roles. Without any, everyone may do everything.

    >>> tokens = Tokens.parse("read dashboard-4711-8c02f3\\nadmin admin-9b1f77a0c2d4")
    >>> sorted(tokens.roles_of("dashboard-4711-8c02f3")), sorted(tokens.roles_of("wrong"))
    (['read'], [])
    """

    def __init__(self, roles: dict[bytes, set[Role]]) -> None:
        self._roles = roles

    def __bool__(self) -> bool:
        return bool(self._roles)

    @classmethod
    def read(cls, path: Path) -> Tokens:
        """Read a file of tokens."""
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidFile(f"cannot be read: {getattr(error, 'strerror', None) or error}", file=path) from None
        return cls.parse(text, str(path))

    @classmethod
    def parse(cls, text: str, file: str = "the file of tokens") -> Tokens:
        """Parse lines of a role and a token. Empty lines and lines that start with # are skipped."""
        roles: dict[bytes, set[Role]] = {}
        for number, line in enumerate(text.splitlines(), 1):
            words = line.split()
            if not words or words[0].startswith("#"):
                continue
            if len(words) != 2 or words[0] not in get_args(Role):
                raise InvalidFile(
                    f"must have a role (decide, read or admin) and a token in each line. Line {number} has not",
                    file=file,
                )
            if len(words[1]) < MIN_TOKEN:
                raise InvalidFile(
                    f"must have tokens of at least {MIN_TOKEN} letters, and that in line {number} is shorter. "
                    "`openssl rand -hex 24` makes a good one",
                    file=file,
                )
            roles.setdefault(words[1].encode(), set()).add(words[0])  # type: ignore[arg-type]
        if not roles:
            raise InvalidFile("must have at least one line with a role and a token", file=file)
        return cls(roles)

    def roles_of(self, token: str) -> set[Role]:
        """Return the roles of a token. Takes equally long whichever token it is, and whether or not it is known."""
        sent, found = token.encode(errors="replace"), set[Role]()
        for known, roles in self._roles.items():
            if hmac.compare_digest(known, sent):
                found = roles
        return found


def token_of(headers: dict[bytes, bytes]) -> str | None:
    """Return the token of a request: Bearer, the password of Basic, or the key of a Personalizer client."""
    if (key := headers.get(b"ocp-apim-subscription-key")) is not None:
        return key.decode("latin-1").strip()
    kind, _, value = headers.get(b"authorization", b"").partition(b" ")
    if kind.lower() == b"bearer":
        return value.decode("latin-1").strip()
    if kind.lower() == b"basic":
        try:
            return base64.b64decode(value.strip(), validate=True).decode().partition(":")[2]
        except (binascii.Error, UnicodeDecodeError):
            return ""
    return None


def role_for(method: str, path: str) -> Role | None:
    """Return the role that a request needs, or None if anyone may make it.

    >>> role_for("GET", "/v1/studies"), role_for("POST", "/v1/studies/banners/decisions")
    ('read', 'decide')
    >>> role_for("POST", "/v1/studies/banners/arms"), role_for("GET", "/healthz")
    ('admin', None)
    """
    if path in _ANYONE:
        return None
    if method in ("GET", "HEAD"):
        return "read"
    words = path.split("/")
    inside = words[4:5] if path.startswith("/v1/studies/") else words[1:2]
    return "decide" if _DECIDING.intersection(inside) else "admin"
