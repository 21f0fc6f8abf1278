"""The pages of organisers' accounts: sign in, one's own account, and for owners the accounts of all."""

from __future__ import annotations

import re
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from crowdrank.errors import CrowdrankError
from crowdrank.server.authentication import (
    ADMIN_COOKIE,
    ADMIN_SECONDS,
    DEVICE_COOKIE,
    DEVICE_SECONDS,
    FORM_COOKIE,
    Session,
)
from crowdrank.server.errors import RequestError
from crowdrank.server.rendering import page
from crowdrank.server.routes import Form, SubmittedForm, form_secret, public_url, redirect
from crowdrank.server.service import Service, service_of
from crowdrank.storage import Account
from crowdrank.storage.judgments import iso_time

router = APIRouter(include_in_schema=False)
_BROWSERS = (("Edg", "Edge"), ("OPR", "Opera"), ("Firefox", "Firefox"), ("Chrom", "Chrome"), ("Safari", "Safari"))
_SYSTEMS = (("Android", "Android"), ("iPhone", "iOS"), ("iPad", "iOS"), ("Windows", "Windows"), ("Mac OS", "macOS"))


@router.get("/admin/sign-in")
def sign_in_page(request: Request) -> Response:
    return _sign_in_page(request)


@router.post("/admin/sign-in")
def sign_in(request: Request, form: Form) -> Response:
    service = service_of(request)
    authenticator = service.authenticator
    authenticator.check_form(request, form.csrf, authenticator.cookie(request, FORM_COOKIE))
    try:
        account = service.accounts.sign_in(
            form["name"],
            form.fields.get("password", ""),
            form["code"],
            address=authenticator.client_address(request),
            device=authenticator.cookie(request, DEVICE_COOKIE),
        )
    except RequestError as error:
        return _sign_in_page(request, error)
    return _signed_in(request, service, account, _next_path(form["next"]))


@router.get("/admin/invitation/{token}")
def invitation_page(request: Request, token: str) -> Response:
    """Show the form that sets a password. The link works once, so it may stay in the address bar."""
    return _invitation_page(request, token)


@router.post("/admin/invitation/{token}")
def accept_invitation(request: Request, token: str, form: Form) -> Response:
    service = service_of(request)
    service.authenticator.check_form(request, form.csrf, service.authenticator.cookie(request, FORM_COOKIE))
    try:
        account = service.accounts.accept_invitation(token, _new_password(form))
    except CrowdrankError as error:
        return _invitation_page(request, token, str(error))
    return _signed_in(request, service, account, "/admin/account")


@router.get("/admin/account")
def account_page(request: Request) -> Response:
    return _account_page(request, service_of(request).authenticator.admin(request))


@router.post("/admin/account/password")
def change_password(request: Request, form: Form) -> Response:
    service = service_of(request)
    session, account = _own_account(request, form)
    try:
        old = form.fields.get("old", "")
        service.accounts.change_password(account, old, _new_password(form), keep=session.secret)
    except (CrowdrankError, RequestError) as error:
        return _account_page(request, session, problem=str(error))
    return redirect("/admin/account", "password_changed")


@router.post("/admin/account/codes")
def show_code(request: Request, form: Form) -> Response:
    """Show a new secret of one-time codes, which is stored once a code was entered."""
    session, account = _own_account(request, form)
    secret, uri, sealed = service_of(request).accounts.new_totp(account)
    return _account_page(request, session, totp={"secret": secret, "uri": uri, "sealed": sealed})


@router.post("/admin/account/codes/{action}")
def change_codes(request: Request, action: str, form: Form) -> Response:
    service = service_of(request)
    session, account = _own_account(request, form)
    try:
        if action == "confirm":
            service.accounts.set_up_totp(account, form["sealed"], form["code"])
        elif action == "remove":
            service.accounts.remove_totp(account, form.fields.get("password", ""))
        else:
            raise RequestError(404, "This page does not exist.")
    except (CrowdrankError, RequestError) as error:
        return _account_page(request, session, problem=str(error))
    return redirect("/admin/account", "saved")


@router.post("/admin/account/sessions")
def end_sessions(request: Request, form: Form) -> Response:
    """End one of one's own sessions, or all others."""
    session, account = _own_account(request, form)
    accounts = service_of(request).collection.accounts
    accounts.revoke_session(account.id, form["key"] or None, actor=session.actor, keep=session.secret)
    return redirect("/admin/account", "sessions_ended")


@router.get("/admin/accounts")
def accounts_page(request: Request) -> Response:
    return _accounts_page(request, service_of(request).authenticator.admin(request, needs="owner"))


@router.post("/admin/accounts")
def add_account(request: Request, form: Form) -> Response:
    """Add an account, and show the link that sets its password. It cannot be read again later."""
    service = service_of(request)
    session = service.authenticator.admin(request, form.csrf, needs="owner")
    try:
        _, secret = service.collection.accounts.add(form["name"], form["role"], actor=session.actor)  # type: ignore[arg-type]
    except CrowdrankError as error:
        return _accounts_page(request, session, problem=str(error))
    return _accounts_page(request, session, invited=form["name"], secret=secret)


@router.post("/admin/accounts/{id_}/{action}")
def change_account(request: Request, id_: int, action: str, form: Form) -> Response:
    service = service_of(request)
    session = service.authenticator.admin(request, form.csrf, needs="owner")
    accounts, actor = service.collection.accounts, session.actor
    name = accounts.get(id_).name
    try:
        if action == "invite":
            return _accounts_page(request, session, invited=name, secret=accounts.invite(id_, actor=actor))
        if action == "role":
            accounts.set_role(id_, form["role"], actor=actor)  # type: ignore[arg-type]
        elif action == "sessions":
            accounts.revoke_session(id_, None, actor=actor, keep=session.secret)
        elif action == "remove":
            accounts.remove(id_, actor=actor)
        else:
            raise RequestError(404, "This page does not exist.")
    except CrowdrankError as error:
        return _accounts_page(request, session, problem=str(error))
    return redirect("/admin/accounts", {"remove": "removed", "sessions": "sessions_ended"}.get(action, "saved"))


@router.post("/admin/tokens")
def issue_token(request: Request, form: Form) -> Response:
    """Issue a token for scripts, and show it. It cannot be read again later."""
    service = service_of(request)
    session = service.authenticator.admin(request, form.csrf, needs="owner")
    return _accounts_page(request, session, token=service.collection.access.issue_role("admin", actor=session.actor))


@router.post("/admin/tokens/{row}/revoke")
def revoke_token(request: Request, row: int, form: Form) -> Response:
    service = service_of(request)
    session = service.authenticator.admin(request, form.csrf, needs="owner")
    access = service.collection.access
    if row not in [seq for seq, _, _ in access.valid_tokens("admin")]:
        raise RequestError(404, "This token does not exist or was revoked.")
    access.revoke(row, actor=session.actor)
    return redirect("/admin/accounts", "revoked")


@router.post("/admin/logout")
def log_out(request: Request, form: Form) -> Response:
    """End the session of this browser. A viewer may do that too."""
    service = service_of(request)
    authenticator = service.authenticator
    session = authenticator.admin(request, form.csrf, needs="viewer")
    holder = authenticator.parent if session.of_server and authenticator.parent is not None else authenticator
    holder.close(session)
    response = redirect("/admin/sign-in" if session.account is not None else "/")
    response.delete_cookie(holder.cookie_name(ADMIN_COOKIE), path="/")
    return response


def _own_account(request: Request, form: SubmittedForm) -> tuple[Session, Account]:
    """Return the session of an organiser with an account of this collection, whatever their role."""
    service = service_of(request)
    session = service.authenticator.admin(request, form.csrf, needs="viewer")
    if session.account is None or session.of_server:
        raise RequestError(403, "Only people who signed in to an account can do this.", code="role")
    return session, service.collection.accounts.get(session.account.account)


def _new_password(form: SubmittedForm) -> str:
    password = form.fields.get("password", "")
    if password != form.fields.get("again", ""):
        raise RequestError(422, "The two passwords differ.")
    return password


def _next_path(path: str) -> str:
    """Return where to go after signing in: a page of this server, whatever the form says."""
    return path if re.fullmatch(r"/admin(/[a-z0-9/-]*)?", path) else "/admin"


def _signed_in(request: Request, service: Service, account: Account, path: str) -> Response:
    agent = request.headers.get("user-agent", "")
    secret = service.collection.accounts.open_session(account.id, client=_client(agent), seconds=ADMIN_SECONDS)
    home = "/" if service.is_overview and path == "/admin" else path
    response = redirect(home)
    service.authenticator.set_cookie(request, response, ADMIN_COOKIE, secret, ADMIN_SECONDS)
    device = service.accounts.device_of(account)
    service.authenticator.set_cookie(request, response, DEVICE_COOKIE, device, DEVICE_SECONDS)
    return response


def _client(agent: str) -> str:
    """Return the browser and the system in a User-Agent header, as far as people need to recognise their own."""
    browser = next((name for mark, name in _BROWSERS if mark in agent), "another program")
    system = next((name for mark, name in _SYSTEMS if mark in agent), "Linux" if "Linux" in agent else "")
    return f"{browser} on {system}" if system else browser


def _sign_in_page(request: Request, error: RequestError | None = None) -> Response:
    service = service_of(request)
    csrf, secret = form_secret(request)
    response = page(
        request,
        "sign_in.html",
        200 if error is None else error.status,
        csrf=csrf,
        problem=None if error is None else error.message,
        next=_next_path(request.query_params.get("next", "/admin")),
        has_accounts=bool(service.collection.accounts.all()),
    )
    response.headers.update({} if error is None else error.headers)
    service.authenticator.set_cookie(request, response, FORM_COOKIE, secret, None)
    return response


def _invitation_page(request: Request, token: str, problem: str | None = None) -> Response:
    service = service_of(request)
    account = service.collection.accounts.by_invitation(token)
    if account is None:
        raise RequestError(404, "This link was used already, or has expired: ask an owner for a new one.")
    csrf, secret = form_secret(request)
    response = page(
        request,
        "invitation.html",
        200 if problem is None else 422,
        csrf=csrf,
        problem=problem,
        name=account.name,
        token=token,
    )
    service.authenticator.set_cookie(request, response, FORM_COOKIE, secret, None)
    return response


def _account_page(
    request: Request, session: Session, *, problem: str | None = None, totp: dict[str, str] | None = None
) -> Response:
    service = service_of(request)
    own = session.account is not None and not session.of_server
    account = service.collection.accounts.get(session.account.account) if own and session.account else None
    sessions = [] if account is None else service.collection.accounts.sessions(account.id)
    return page(
        request,
        "account.html",
        200 if problem is None else 422,
        admin=True,
        csrf=session.csrf,
        problem=problem,
        name=None if session.account is None else session.account.name,
        own_role=session.role,
        account=account,
        totp=totp,
        sessions=[
            {
                "key": one.key,
                "client": one.client,
                "opened": iso_time(one.opened_at),
                "seen": iso_time(one.seen_at),
                "is_this": session.account is not None and one.key == session.account.key,
            }
            for one in sessions
        ],
    )


def _accounts_page(
    request: Request,
    session: Session,
    *,
    problem: str | None = None,
    invited: str | None = None,
    secret: str | None = None,
    token: str | None = None,
) -> Response:
    service = service_of(request)
    accounts = service.collection.accounts
    rows: list[dict[str, Any]] = []
    for one in accounts.all():
        opened = accounts.sessions(one.id)
        rows.append(
            {
                "id": one.id,
                "name": one.name,
                "role": one.role,
                "has_password": one.password is not None,
                "has_codes": one.totp is not None,
                "sessions": len(opened),
                "seen": iso_time(max(each.seen_at for each in opened)) if opened else None,
            }
        )
    tokens = service.collection.access.valid_tokens("admin")
    return page(
        request,
        "accounts.html",
        200 if problem is None else 422,
        admin=True,
        csrf=session.csrf,
        problem=problem,
        accounts=rows,
        invited=invited,
        link=None if secret is None else public_url(request, f"/admin/invitation/{secret}"),
        token=token,
        tokens=[{"row": row, "at": iso_time(at), "actor": actor} for row, at, actor in tokens],
    )
