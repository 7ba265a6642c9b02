"""The shop's pages. A script puts the tab's key from sessionStorage into each form: a tab without it cannot buy."""

from html import escape
from urllib.parse import urlencode

from examples.browser_agent.shop.desk import DELIVERIES

STYLE = """
body { font: 16px/1.5 Georgia, serif; margin: 0; color: #1d2b36; background: #f5f1e8 }
header { background: #17415c; color: #fff; padding: 12px 32px; display: flex; gap: 24px; align-items: baseline }
header a { color: #cfe4f1 } header strong { font-size: 22px }
main { max-width: 640px; margin: 24px auto; background: #fff; padding: 8px 32px 24px; border: 1px solid #d8cfbb }
label { display: block; margin: 8px 0 } button { font: inherit; padding: 4px 16px } li { margin: 6px 0 }
"""
KEEP_TAB = "<script>sessionStorage.setItem('tab', '{key}')</script>"
SEND_TAB = """<script>
for (const field of document.querySelectorAll('input[name=tab]')) field.value = sessionStorage.getItem('tab') || ''
</script>"""
TAB = '<input type="hidden" name="tab">'


def page(title, body, session, count, script=""):
    visitor = f"<span>Signed in as {escape(session.name)}</span>" if session else '<a href="/login">Sign in</a>'
    return (
        f"<!doctype html><html lang=en><head><meta charset=utf-8><title>{escape(title)} - Harbour Books</title>"
        f'<link rel="icon" href="data:,"><style>{STYLE}</style></head><body>'
        f'<header><strong>Harbour Books</strong><a href="/">Home</a><a href="/basket">Basket ({count})</a>{visitor}'
        f"</header><main><h1>{escape(title)}</h1>{body}</main>{script or SEND_TAB}</body></html>"
    )


def home():
    return (
        '<p>Books about the sea, and a few others.</p><form action="/search" role="search">'
        '<label>Search <input name="q"></label> <button>Find</button></form>'
    )


def login(wrong=False):
    said = '<p role="alert">Name and password do not fit.</p>' if wrong else ""
    return (
        f'{said}<form method="post" action="/login"><label>Name <input name="name"></label>'
        '<label>Password <input name="password" type="password"></label><button>Sign in</button></form>'
    )


def results(words, books, number, more):
    rows = "".join(f'<li><a href="/item/{code}">{escape(title)}</a> {price} €</li>' for code, title, price in books)
    following = f'<a href="/search?{urlencode({"q": words, "page": number + 1})}">Next page</a>' if more else ""
    return f"<p>Page {number} for “{escape(words)}”</p><ul>{rows}</ul><p>{following}</p>"


def item(book):
    code, _, price = book
    return (
        f'<p>Hardback, {price} €</p><form method="post" action="/basket">{TAB}'
        f'<input type="hidden" name="item" value="{code}"><button>Add to basket</button></form>'
    )


def basket(books):
    if not books:
        return "<p>Your basket is empty.</p>"
    rows = "".join(f"<li>{escape(title)} {price} €</li>" for _, title, price in books)
    return f'<ul>{rows}</ul><p><a href="/order">Go to the order form</a></p>'


def order_form():
    choices = "".join(
        f'<label><input type="radio" name="delivery" value="{value}"> {label}</label>'
        for value, label in DELIVERIES.items()
    )
    return (
        f'<form method="post" action="/order">{TAB}<label>Full name <input name="name"></label>'
        '<label>Street <input name="street"></label><label>City <input name="city"></label>'
        f"<fieldset><legend>Delivery</legend>{choices}</fieldset>"
        '<label>Your reference <input name="reference"></label>'
        "<button>Send order</button></form>"
    )


def order(one, titles):
    rows = "".join(f"<li>{escape(title)}</li>" for title in titles)
    return (
        f"<p>Thank you, {escape(one['name'])}. Your order <strong>{one['number']}</strong> is on its way.</p>"
        f"<ul>{rows}</ul><p>{DELIVERIES[one['delivery']]}, {escape(one['street'])}, {escape(one['city'])}</p>"
        f"<p>Total: {one['total']} €</p><p>Your reference: {escape(one['reference'])}</p>"
    )


def orders(found):
    rows = "".join(
        f'<li><a href="/orders/{one["number"]}">{one["number"]}</a> {one["total"]} €</li>' for one in found
    )
    return f"<ul>{rows}</ul>" if found else "<p>No such order.</p>"
