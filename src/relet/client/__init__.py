"""How a program asks: blocking and awaiting clients, the lease, the keeper of heartbeats."""
