"""Signing in: Streamlit's own login with an OpenID Connect provider, which is a small one of our own here."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from tests.browser import PATIENCE_S, browsing, drawn, press, serve, visit
from tests.pages.workspaces import fill

pytest.importorskip("authlib", reason="Authlib comes with the extra web-login")

pytestmark = [pytest.mark.slow, pytest.mark.browser]

CLIENT, SECRET, EMAIL = "winnow-test", "not-a-secret", "ann@example.org"
SECRETS = f"""
[auth]
redirect_uri = "http://127.0.0.1:{{{{port}}}}/oauth2callback"
cookie_secret = "a long text that only this test knows"
client_id = "{CLIENT}"
client_secret = "{SECRET}"
server_metadata_url = "{{provider}}/.well-known/openid-configuration"
"""


def b64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class Provider(BaseHTTPRequestHandler):
    """Signs everybody in as `EMAIL` at once: discovery, authorisation, token and keys."""

    key: Any
    port: int
    nonces: dict[str, str]  # by code

    def do_GET(self) -> None:
        at, asked = urlsplit(self.path), {k: v[0] for k, v in parse_qs(urlsplit(self.path).query).items()}
        if at.path == "/.well-known/openid-configuration":
            self._json(
                {
                    "issuer": self.base,
                    "authorization_endpoint": f"{self.base}/authorize",
                    "token_endpoint": f"{self.base}/token",
                    "jwks_uri": f"{self.base}/keys",
                    "response_types_supported": ["code"],
                    "subject_types_supported": ["public"],
                    "id_token_signing_alg_values_supported": ["RS256"],
                }
            )
        elif at.path == "/keys":
            numbers = self.key.public_key().public_numbers()
            n, e = (b64(v.to_bytes((v.bit_length() + 7) // 8, "big")) for v in (numbers.n, numbers.e))
            self._json({"keys": [{"kty": "RSA", "kid": "1", "alg": "RS256", "use": "sig", "n": n, "e": e}]})
        elif at.path == "/authorize":
            code = f"code-{len(self.nonces)}"
            self.nonces[code] = asked.get("nonce", "")
            self.send_response(302)
            self.send_header(
                "Location", f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state']})}"
            )
            self.end_headers()
        else:
            self.send_error(404)

    def do_POST(self) -> None:
        form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        now = int(time.time())
        said = {
            "iss": self.base,
            "sub": "1",
            "aud": CLIENT,
            "iat": now,
            "exp": now + 600,
            "email": EMAIL,
            "nonce": self.nonces[form["code"][0]],
        }
        self._json(
            {"access_token": "x", "token_type": "Bearer", "expires_in": 600, "id_token": self._signed(said)}
        )

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def _signed(self, said: dict[str, object]) -> str:
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import padding

        head = b64(json.dumps({"alg": "RS256", "kid": "1", "typ": "JWT"}).encode())
        body = f"{head}.{b64(json.dumps(said).encode())}"
        return f"{body}.{b64(self.key.sign(body.encode(), padding.PKCS1v15(), hashes.SHA256()))}"

    def _json(self, value: object) -> None:
        data = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Quiet."""


@pytest.fixture
def provider() -> Iterator[str]:
    from cryptography.hazmat.primitives.asymmetric import rsa

    handler: type[Provider] = type(
        "Here", (Provider,), {"key": rsa.generate_private_key(65537, 2048), "nonces": {}}
    )
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        handler.port = server.server_address[1]
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def test_nothing_is_drawn_before_one_signed_in_and_decisions_are_kept_under_that_name(
    provider: str, tmp_path: Path
) -> None:
    fill(tmp_path / "workspace")
    secrets = tmp_path / "secrets.toml"
    secrets.write_text(SECRETS.format(provider=provider), encoding="utf-8")
    environ = {"STREAMLIT_SECRETS_FILES": str(secrets), "WINNOW_PUBLISHERS": EMAIL}
    with browsing() as browser, serve(tmp_path / "workspace", environ) as base:
        page = browser.new_page()
        visit(page, f"{base}/library", "Decisions are kept under the name that you sign in with.")
        assert page.get_by_text("Lessons that a person approved").count() == 0
        press(page, "sign_in")
        drawn(page, "signed in")
        assert page.locator(".w-who .name").inner_text() == EMAIL
        press(page, "sign_out")
        page.get_by_text("Decisions are kept under the name").wait_for(timeout=PATIENCE_S * 1000)
        page.close()
