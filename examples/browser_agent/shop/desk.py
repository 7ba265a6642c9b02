"""What the shop knows: books, customers, sessions, baskets, orders; and what it counts and holds up for tests."""

import secrets
import threading
from collections import Counter

PER_PAGE = 4
HELD_AT_MOST_S = 30.0
SHELF = [
    ("tides", "Tides and Currents", 18),
    ("knots", "Knots for Every Day", 12),
    ("lights", "Lights of the Northern Sea", 24),
    ("charts", "Reading Sea Charts", 31),
    ("pilot", "The Coastal Pilot of the Sea", 27),
    ("birds", "Birds of the Sea", 16),
    ("ports", "Old Sea Ports", 22),
    ("weather", "Weather at Sea", 19),
    ("swell", "Swell: a Sea Novel", 14),
    ("signals", "Sea Signals and Flags", 21),
    ("rope", "Rope, Sail and Sea", 26),
    ("garden", "A Garden by the Wall", 15),
]
DELIVERIES = {"post": "By post", "shop": "Collect in the shop"}


class Customer:
    """What the shop has in its books under one name."""

    def __init__(self):
        self.basket = []
        self.orders = []
        self.done = Counter()  # login, add, order: what was done, however often it was asked for


class Session:
    """One signed-in visitor. `tab_key` is told to one tab, once; each form must bring it back."""

    def __init__(self, name):
        self.name = name
        self.tab_key = secrets.token_urlsafe(12)
        self.told = False


class Desk:
    """All of it, behind one lock."""

    def __init__(self, password):
        self.password = password
        self.shelf = list(SHELF)
        self.requests = Counter()
        self.gates = Gates()
        self._lock = threading.Lock()
        self._customers = {}
        self._sessions = {}
        self._numbers = 1000

    def sign_in(self, name, password):
        """The cookie of a new session; None for a wrong password."""
        if not secrets.compare_digest(password.encode(), self.password.encode()):
            return None
        with self._lock:
            self._customer(name).done["login"] += 1
            cookie = secrets.token_urlsafe(12)
            self._sessions[cookie] = Session(name)
            return cookie

    def session(self, cookie):
        with self._lock:
            return self._sessions.get(cookie)

    def forget_sessions(self):
        with self._lock:
            self._sessions.clear()

    def came(self, session):
        """Count a request, under the name it came from."""
        with self._lock:
            self.requests[session.name if session else ""] += 1

    def find(self, words, page):
        """One page of the books whose titles have the words, and whether more follow."""
        found = [book for book in self.shelf if words.lower() in book[1].lower()]
        start = (page - 1) * PER_PAGE
        return found[start : start + PER_PAGE], len(found) > start + PER_PAGE

    def book(self, code):
        return next((book for book in self.shelf if book[0] == code), None)

    def add(self, name, code):
        with self._lock:
            customer = self._customer(name)
            customer.basket.append(code)
            customer.done["add"] += 1

    def basket(self, name):
        with self._lock:
            return [self.book(code) for code in self._customer(name).basket]

    def order(self, name, form):
        """Take the order of what is in the basket. Nothing is compared: asked twice, it is ordered twice."""
        with self._lock:
            customer = self._customer(name)
            self._numbers += 1
            books = customer.basket or [one for order in customer.orders[-1:] for one in order["books"]]
            order = {**form, "number": f"H-{self._numbers}", "books": list(books)}
            order["total"] = sum(self.book(code)[2] for code in books)
            customer.orders.append(order)
            customer.basket = []
            customer.done["order"] += 1
            return order

    def orders(self, name, reference=""):
        with self._lock:
            return [one for one in self._customer(name).orders if not reference or one["reference"] == reference]

    def counts(self, name):
        with self._lock:
            customer = self._customer(name)
            return {
                "requests": self.requests[name],
                "login": customer.done["login"],
                "add": customer.done["add"],
                "order": customer.done["order"],
                "basket": list(customer.basket),
                "orders": [dict(one) for one in customer.orders],
            }

    def _customer(self, name):
        return self._customers.setdefault(name, Customer())


class Gates:
    """Where a test can hold up one request: as it has arrived, or once it is done and not yet answered."""

    def __init__(self):
        self._lock = threading.Lock()
        self._shut = {}
        self._waiting = set()

    def shut(self, name, action, when):
        with self._lock:
            self._shut[name, action, when] = threading.Event()

    def is_waiting(self, name, action, when):
        with self._lock:
            return (name, action, when) in self._waiting

    def open(self, name, action, when):
        with self._lock:
            gate = self._shut.pop((name, action, when), None)
        if gate is not None:
            gate.set()

    def go_through(self, name, action, when):
        """Wait until it is opened; only the first request does."""
        with self._lock:
            gate = self._shut.get((name, action, when))
            if gate is None or (name, action, when) in self._waiting:
                return
            self._waiting.add((name, action, when))
        gate.wait(HELD_AT_MOST_S)
