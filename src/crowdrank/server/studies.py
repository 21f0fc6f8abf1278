"""Several studies in one server: a folder with one database each, created, copied and archived in the browser.

Every study is a collection of its own under `/s/NAME`, with all pages and the whole API. The folder also has a
collection without items, `organiser.db`: its tokens are those of the organiser, and its log says who created what.
"""

from __future__ import annotations

import logging
import re
import shutil
import threading
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio.to_thread
from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.staticfiles import StaticFiles
from starlette.types import Receive, Scope, Send

from crowdrank import __version__
from crowdrank.errors import CrowdrankError, SettingError, UnknownNameError
from crowdrank.server import errors
from crowdrank.server.admin_actions import store_settings
from crowdrank.server.app import THREADS, add_middleware, create_app
from crowdrank.server.authentication import Authenticator
from crowdrank.server.privacy import apply_retention
from crowdrank.server.projection import Projection
from crowdrank.server.service import CLEANING_SECONDS, Options, Service
from crowdrank.storage import Collection, NewItem

_logger = logging.getLogger("crowdrank.server")
ORGANISER = "organiser"
"""The name of the collection that has no items."""
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
_NOT_FOUND = {"error": {"code": "not_found", "message": "This study does not exist.", "detail": None}}


class Studies:
    """The studies of a folder, each opened when it is first needed.

    Parameters
    ----------
    folder : Path
        Where the databases are. It is created if it does not exist.
    options : Options
        Options of all studies. Their prefix is that of the server.
    """

    def __init__(self, folder: Path, options: Options) -> None:
        self.folder, self.options = folder, options
        self.organisers: Authenticator | None = None  # whoever is signed in to the server may enter all studies
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._open: dict[str, FastAPI] = {}
        self._lock = threading.Lock()

    def names(self) -> list[str]:
        """Return the names of all studies, archived or not."""
        found = (path.stem for path in self.folder.glob("*.db"))
        return sorted(name for name in found if name != ORGANISER and _NAME.fullmatch(name))

    def is_archived(self, name: str) -> bool:
        return self._marker(name).exists()

    def app(self, name: str) -> FastAPI | None:
        """Return the application of a study; None if there is none, or if it is archived."""
        if not _NAME.fullmatch(name) or name == ORGANISER or self.is_archived(name):
            return None
        if name not in self._open and self._database(name).exists():
            with self._lock:
                if name not in self._open:
                    self._open[name] = self._start(name)
        return self._open.get(name)

    def service(self, name: str) -> Service:
        """Return the service of a study; raise UnknownNameError if there is none."""
        app = self.app(name)
        if app is None:
            raise UnknownNameError("study", name, [one for one in self.names() if not self.is_archived(one)])
        service: Service = app.state.service
        return service

    def create(self, name: str, values: Mapping[str, Any], *, copy_of: str | None = None) -> None:
        """Create a study.

        Parameters
        ----------
        name : str
            Lower-case letters, digits and hyphens; the study is at `/s/NAME`.
        values : mapping
            Settings that differ from the defaults, or from those of the study that is copied.
        copy_of : str, optional
            Copy the settings and items of this study, without annotators and votes.
        """
        if not _NAME.fullmatch(name) or name == ORGANISER:
            raise SettingError(f"Name studies with lower-case letters, digits and hyphens only, got {name[:60]!r}.")
        if self._database(name).exists():
            raise SettingError(f"There is a study {name!r} already: choose another name.")
        source = None if copy_of is None else self.service(copy_of)
        try:
            with Collection.open(self._database(name), timeout=self.options.timeout) as collection:
                projection = Projection(collection)
                settings = projection.settings
                if source is not None:
                    settings = replace(source.projection.catch_up().settings, webhooks=())
                    collection.items.add(_copied_items(source), actor=ORGANISER)
                    self._copy_media(str(copy_of), name)
                projection.catch_up()
                store_settings(collection, projection, settings.with_changes(values), ORGANISER, allow_internal=False)
        except CrowdrankError:
            self._delete(name)
            raise

    def archive(self, name: str) -> None:
        """Close a study and take it off the server. Its database stays in the folder."""
        service = self.service(name)
        service.collection.settings.close(actor=ORGANISER)
        self._marker(name).touch(mode=0o600)
        with self._lock:
            app = self._open.pop(name, None)
        if app is not None:
            service.stop()

    def restore(self, name: str) -> None:
        """Bring an archived study back. It stays closed until it is resumed."""
        if not self.is_archived(name):
            raise UnknownNameError("archived study", name, [one for one in self.names() if self.is_archived(one)])
        self._marker(name).unlink(missing_ok=True)

    def apply_retention(self) -> None:
        """Erase people from the studies whose retention period has ended; those that are open do it themselves."""
        for name in self.names():
            if name not in self._open:
                with Collection.open(self._database(name), timeout=self.options.timeout) as collection:
                    apply_retention(collection, time.time_ns() // 1000)

    def stop(self) -> None:
        with self._lock:
            apps, self._open = list(self._open.values()), {}
        for app in apps:
            app.state.service.stop()

    def _start(self, name: str) -> FastAPI:
        media = self._media(name)
        media.mkdir(mode=0o700, parents=True, exist_ok=True)
        backups = None if self.options.backups is None else replace(self.options.backups, name=name)
        options = replace(self.options, media=media, prefix=f"{self.options.prefix}/s/{name}", backups=backups)
        app = create_app(self._database(name), options)
        service: Service = app.state.service
        service.authenticator.parent, service.home = self.organisers, f"{self.options.prefix}/"
        service.start()
        return app

    def _database(self, name: str) -> Path:
        return self.folder / f"{name}.db"

    def _marker(self, name: str) -> Path:
        return self.folder / f"{name}.archived"

    def _media(self, name: str) -> Path:
        return self.folder / "media" / name

    def _copy_media(self, source: str, name: str) -> None:
        if self._media(source).is_dir():
            shutil.copytree(self._media(source), self._media(name), dirs_exist_ok=True)

    def _delete(self, name: str) -> None:
        for suffix in (".db", ".db-wal", ".db-shm", ".db.key"):
            with suppress(FileNotFoundError):
                (self.folder / f"{name}{suffix}").unlink()
        shutil.rmtree(self._media(name), ignore_errors=True)


def _copied_items(source: Service) -> list[NewItem]:
    items = source.projection.items.values()
    return [NewItem(label=one.label, query=one.query, content=one.content) for one in items if not one.hidden]


class StudiesApp:
    """Sends requests under `/s/NAME` to the study, and all others to the pages of the organiser."""

    def __init__(self, studies: Studies, organiser: FastAPI, prefix: str = "") -> None:
        self.studies, self.organiser, self._prefix = studies, organiser, prefix

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope.get("path", "").removeprefix(self._prefix)
        if scope["type"] != "http" or not path.startswith("/s/"):
            await self.organiser(scope, receive, send)
            return
        name, _, rest = path.removeprefix("/s/").partition("/")
        app = await anyio.to_thread.run_sync(self.studies.app, name)
        if app is None:
            await JSONResponse(_NOT_FOUND, 404)(scope, receive, send)
            return
        await app({**scope, "path": f"/{rest}", "raw_path": f"/{rest}".encode()}, receive, send)


def create_studies_app(folder: Path, options: Options) -> StudiesApp:
    """Create the application for all studies of a folder."""
    from crowdrank.server.routes import accounts
    from crowdrank.server.routes import studies as pages

    studies = Studies(folder, options)
    collection = Collection.open(folder / f"{ORGANISER}.db", timeout=options.timeout)
    service = Service(collection, replace(options, background=False))
    service.is_overview = True
    service.navigation = (("/", "Studies"), ("/admin/account", "Account"), ("/admin/audit", "Audit log"))
    studies.organisers = service.authenticator

    stopping = threading.Event()

    def clean() -> None:
        while True:
            try:
                studies.apply_retention()
            except Exception as error:  # tried again in the next round
                _logger.error("the retention period of a study could not be applied", exc_info=error)
            if stopping.wait(CLEANING_SECONDS):
                return

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        anyio.to_thread.current_default_thread_limiter().total_tokens = THREADS
        service.start()
        if options.background:
            threading.Thread(target=clean, name="retention", daemon=True).start()
        yield
        stopping.set()
        await anyio.to_thread.run_sync(studies.stop)
        await anyio.to_thread.run_sync(service.stop)

    app = FastAPI(
        title="crowdrank studies",
        version=__version__,
        description="The studies of a server. Each has its own API under `/s/NAME/api/v1`.",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/v1/openapi.json",
    )
    app.state.service, app.state.studies = service, studies
    errors.install_handlers(app)
    for router in (pages.router, accounts.router, pages.pages):  # the last one has the route /admin/{token}
        app.include_router(router)
    app.mount("/static", StaticFiles(directory=Path(__file__).parent / "static", check_dir=False), name="static")
    add_middleware(app, options)
    return StudiesApp(studies, app, options.prefix)


def studies_of(request: Request) -> Studies:
    """Return the studies of the application that received a request."""
    studies: Studies = request.app.state.studies
    return studies
