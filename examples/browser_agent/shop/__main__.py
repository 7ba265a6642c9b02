"""Open the shop on a free port of this machine, and print its address: `python -m examples.browser_agent.shop`."""

import os

from examples.browser_agent.shop.server import open_shop

with open_shop(os.environ["SHOP_PASSWORD"]) as shop:
    print(f"http://127.0.0.1:{shop.server_port}", flush=True)
    shop.serve_forever()
