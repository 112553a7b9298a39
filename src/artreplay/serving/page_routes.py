"""The pages for people: one about each study, and a description of the addresses. They load nothing from elsewhere."""

from __future__ import annotations

import html
import threading
import time
from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, FastAPI, Path, Query
from starlette.responses import HTMLResponse, RedirectResponse, Response

from artreplay.serving.owner import Owner
from artreplay.serving.problems import Problem
from artreplay.studies import Study
from artreplay.studies.decision_columns import DecisionColumns

LISTED = 100  # decisions in one part of their list
FRESH_SECONDS = 1.0  # how long a page is shown again to others who ask
PATIENT_SECONDS = 0.5  # after these, whoever opens a page is told that the study is still being read
_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:60rem;padding:0 1rem}code{font-size:.95em}"
    ".wide{overflow-x:auto}td,th{text-align:left;padding:.2rem .8rem .2rem 0;white-space:nowrap}"
)
_SAFE = {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff"}


class LivePage:
    """The page about a study. Its sums are kept, and only what is new is added to them."""

    def __init__(self, owner: Owner) -> None:
        self._owner = owner
        self._columns: DecisionColumns | None = None
        self._lock = threading.Lock()
        self._made, self._main = -FRESH_SECONDS, ""
        self._page = ""

    def read(self, study: Study) -> None:
        """Read all decisions so far, so that the first page does not have to."""
        with self._lock:
            if self._columns is None:
                self._columns = DecisionColumns(study)
            self._columns.read()

    def show(self, study: Study, is_whole: bool) -> str | None:
        """Return the page, or the part of it that changes. There is no whole page yet while `read` takes long."""
        from artreplay.plots.study_page import main_of, page_of
        from artreplay.plots.study_view import view_of

        if not self._lock.acquire(timeout=PATIENT_SECONDS if is_whole and not self._page else -1):
            return None
        try:
            if self._columns is None:
                self._columns = DecisionColumns(study)
            if time.monotonic() - self._made > FRESH_SECONDS:
                view = view_of(study, self._columns)
                self._main, self._page = main_of(view, is_live=True), page_of(view, is_live=True)
                self._made = time.monotonic()
            return self._page if is_whole else self._main
        finally:
            self._lock.release()

    def progress(self) -> float:
        """Return which share of the study has been read."""
        return 0.0 if self._columns is None else self._columns.progress


def page_routes(owners: Mapping[str, Owner], app: FastAPI, pages: Mapping[str, LivePage]) -> APIRouter:
    """Make the addresses of the pages of some studies."""
    router = APIRouter(include_in_schema=False)

    @router.get("/studies/{study}")
    async def page(
        study: Annotated[str, Path()],
        part: Annotated[str | None, Query()] = None,
        before: Annotated[int | None, Query()] = None,
    ) -> Response:
        """Show a study to people, or a list of its decisions."""
        if study not in owners:
            raise Problem(404, f"this service has no study {study[:80]!r}. It has {', '.join(map(repr, owners))}")
        from artreplay.plots.study_page import content_policy

        if part == "decisions":
            return await owners[study].look(lambda inside: _decisions(study, inside, before))
        shown = await owners[study].look(lambda inside: pages[study].show(inside, part != "main"))
        if shown is None:
            share = f"{100 * pages[study].progress():.0f}&nbsp;%"
            words = f"The service has just started. It has read {share} of this study. "
            notice = _plain(html.escape(study), f"<p>{words}The page comes by itself.</p>")
            notice.headers["Refresh"] = "1"
            return notice
        return HTMLResponse(shown, headers=_SAFE | {"Content-Security-Policy": content_policy()})

    @router.get("/")
    async def first() -> Response:
        """Show the only study, or a list of studies."""
        if len(owners) == 1:
            return RedirectResponse(f"studies/{next(iter(owners))}", 302)
        links = "".join(f'<li><a href="studies/{name}">{html.escape(name)}</a></li>' for name in owners)
        return _plain("Studies", f"<ul>{links}</ul>")

    @router.get("/docs")
    async def docs() -> Response:
        """Describe all addresses in words."""
        schema = app.openapi()
        parts = [
            _operation(schema, path, method, operation)
            for path, methods in schema["paths"].items()
            for method, operation in methods.items()
        ]
        return _plain("Addresses of this service", '<p><a href="openapi.json">openapi.json</a></p>' + "".join(parts))

    return router


def _decisions(name: str, study: Study, before: int | None) -> Response:
    """List the decisions before one of them, the newest first."""
    from artreplay.plots.study_page import list_of

    made = sum(study.facts()["decisions"].values())
    end = made + 1 if before is None else min(max(before, 1), made + 1)
    first = max(end - LISTED, 1)
    listed = study.decisions(after=first - 1, limit=end - first)[::-1] if first < end else []
    links = [f'<a href="?part=decisions&amp;before={first}">older</a>'] * (first > 1)
    links += [f'<a href="?part=decisions&amp;before={end + LISTED}">newer</a>'] * (end <= made)
    shown = (
        f"<p>Decisions {first:,} to {end - 1:,} of {made:,}</p>" if listed else "<p>There are no decisions here.</p>"
    )
    page = f'<p><a href="?">back to the study</a></p>{shown}{list_of(listed)}<p>{" · ".join(links)}</p>'
    return _plain(f"Decisions of {html.escape(name)}", page)


def _operation(schema: dict[str, Any], path: str, method: str, operation: dict[str, Any]) -> str:
    lines = [f"<h2><code>{method.upper()} {html.escape(path)}</code></h2>"]
    lines.append(f"<p>{html.escape(operation.get('description', ''))}</p>")
    members = [(one["name"], one.get("description", "")) for one in operation.get("parameters", ())]
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    body = body.get("items", body)
    if "$ref" in body:
        body = schema["components"]["schemas"][body["$ref"].rpartition("/")[2]]
    required = body.get("required", ())
    members += [
        (name + (" (required)" if name in required else ""), one.get("description", ""))
        for name, one in body.get("properties", {}).items()
    ]
    rows = "".join(f"<li><code>{html.escape(name)}</code> {html.escape(words)}</li>" for name, words in members)
    return "".join(lines) + (f"<ul>{rows}</ul>" if rows else "")


def _plain(title: str, inside: str) -> Response:
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{title}</title>'
    text = f'<!doctype html><html lang="en"><head>{head}<style>{_STYLE}</style></head><body><h1>{title}</h1>{inside}'
    policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'"
    return HTMLResponse(f"{text}</body></html>", headers=_SAFE | {"Content-Security-Policy": policy})
