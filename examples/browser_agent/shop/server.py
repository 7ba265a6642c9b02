"""The shop's routes, over the standard library's HTTP server. `/desk/…` is for whoever counts, not for customers."""

import contextlib
import json
import sys
from http.cookies import SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlsplit

from examples.browser_agent.shop import pages
from examples.browser_agent.shop.desk import DELIVERIES, Desk

FORM_BYTES_MAX = 10_000
COOKIE = "visit"


class Shop(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, desk):
        self.desk = desk
        super().__init__(("127.0.0.1", 0), Visit)

    def handle_error(self, request, client_address):
        if not isinstance(sys.exception(), ConnectionError):  # a browser that died in the middle is no fault of ours
            super().handle_error(request, client_address)


def open_shop(password):
    return Shop(Desk(password))


class Visit(BaseHTTPRequestHandler):
    """One request."""

    def do_GET(self):
        self._arrive()
        if self.path.startswith("/desk/"):
            return self._desk()
        match self.place.split("/")[1:]:
            case [""]:
                return self._show("Welcome", pages.home())
            case ["login"]:
                return self._show("Sign in", pages.login())
            case ["signed-in"] if self.session:
                return self._tell_tab()
            case ["search"]:
                number = int(self.asked.get("page", 1))
                books, more = self.desk.find(self.asked["q"], number)
                return self._show("Search", pages.results(self.asked["q"], books, number, more))
            case ["item", code] if book := self.desk.book(code):
                return self._show(book[1], pages.item(book))
            case ["basket" | "order" | "orders", *rest]:
                return self._own(self.place.split("/")[1], rest)
        return self._refuse(404, "There is no such page.")

    def do_POST(self):
        self._arrive()
        size = int(self.headers.get("Content-Length", 0))
        if size > FORM_BYTES_MAX:
            return self._refuse(413, "That is too long.")
        form = dict(parse_qsl(self.rfile.read(size).decode()))
        if self.path.startswith("/desk/"):
            return self._desk_told(form)
        if self.place == "/login":
            return self._login(form)
        if self.session is None:
            return self._go("/login")
        if form.pop("tab", "") != self.session.tab_key:
            return self._refuse(403, "This tab has not signed in; please sign in again.")
        if self.place == "/basket" and self.desk.book(form.get("item")):
            return self._add(form["item"])
        if self.place == "/order":
            return self._order(form)
        return self._refuse(404, "There is no such page.")

    def _login(self, form):
        name = form.get("name", "")
        self.desk.gates.go_through(name, "login", "arrived")
        cookie = self.desk.sign_in(name, form.get("password", ""))
        if cookie is None:
            return self._show("Sign in", pages.login(wrong=True))
        self.desk.gates.go_through(name, "login", "done")
        return self._go("/signed-in", cookie)

    def _add(self, code):
        name = self.session.name
        self.desk.gates.go_through(name, "add", "arrived")
        self.desk.add(name, code)
        self.desk.gates.go_through(name, "add", "done")
        return self._go("/basket")

    def _order(self, form):
        name = self.session.name
        if missing := [field for field in ("name", "street", "city", "reference") if not form.get(field)]:
            return self._refuse(422, f"Please fill in: {', '.join(missing)}.")
        if form.get("delivery") not in DELIVERIES:
            return self._refuse(422, "Please choose a delivery.")
        self.desk.gates.go_through(name, "order", "arrived")
        order = self.desk.order(name, form)
        self.desk.gates.go_through(name, "order", "done")
        return self._go(f"/orders/{order['number']}")

    def _own(self, what, rest):
        """Pages that only a signed-in customer sees."""
        if self.session is None:
            return self._go("/login")
        name = self.session.name
        if what == "basket":
            return self._show("Your basket", pages.basket(self.desk.basket(name)))
        if what == "order":
            return self._show("Order form", pages.order_form())
        if not rest:
            return self._show("Your orders", pages.orders(self.desk.orders(name, self.asked.get("reference", ""))))
        for one in self.desk.orders(name):
            if one["number"] == rest[0]:
                titles = [self.desk.book(code)[1] for code in one["books"]]
                return self._show(f"Order {one['number']}", pages.order(one, titles))
        return self._refuse(404, "There is no such order.")

    def _tell_tab(self):
        """The tab's key, to the first that asks. Whoever opens this address later has it already, or never will."""
        script = "" if self.session.told else pages.KEEP_TAB.format(key=self.session.tab_key)
        self.session.told = True
        return self._show("You are signed in", pages.home(), script=script)

    # -- for whoever counts --------------------------------------------------------------------------------------

    def _desk(self):
        match self.place:
            case "/desk/counts":
                return self._say(self.desk.counts(self.asked["customer"]))
            case "/desk/waiting":
                return self._say(self.desk.gates.is_waiting(*self._gate(self.asked)))
        return self._refuse(404, "There is no such page.")

    def _desk_told(self, form):
        match self.place:
            case "/desk/shut":
                self.desk.gates.shut(*self._gate(form))
            case "/desk/open":
                self.desk.gates.open(*self._gate(form))
            case "/desk/forget":
                self.desk.forget_sessions()
            case "/desk/arrive":
                self.desk.shelf.insert(0, (form["code"], form["title"], int(form["price"])))
        return self._say({})

    @staticmethod
    def _gate(form):
        return form["customer"], form["action"], form["when"]

    # -- requests and answers ------------------------------------------------------------------------------------

    def _arrive(self):
        self.desk = self.server.desk
        parts = urlsplit(self.path)
        self.place, self.asked = parts.path, dict(parse_qsl(parts.query))
        cookie = SimpleCookie(self.headers.get("Cookie", "")).get(COOKIE)
        self.session = None if cookie is None else self.desk.session(cookie.value)
        self.desk.came(self.session)

    def _show(self, title, body, status=200, script=""):
        count = len(self.desk.basket(self.session.name)) if self.session else 0
        self._answer(status, pages.page(title, body, self.session, count, script), "text/html; charset=utf-8")

    def _refuse(self, status, why):
        self._show("Refused", f'<p role="alert">{why}</p>', status)

    def _say(self, value):
        self._answer(200, json.dumps(value), "application/json")

    def _answer(self, status, text, kind):
        data = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        with contextlib.suppress(ConnectionError):
            self.wfile.write(data)

    def _go(self, place, cookie=None):
        self.send_response(303)
        self.send_header("Location", place)
        if cookie is not None:
            self.send_header("Set-Cookie", f"{COOKIE}={cookie}; Path=/; HttpOnly; SameSite=Lax")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args):
        """Not a word: cookies and names stay out of logs."""
